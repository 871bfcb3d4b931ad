//! A cache of clients' views, by the content of the table.
//!
//! Most faults of a write lead to one of a few tables: unchanged, completed, or with some of the
//! write's items. A client's view depends only on the items, so it is read once for each kind of
//! table. Two tables are of the same kind if the same items have changed in the same way, apart
//! from random ids and times. These are numbered by first occurrence, so that equal values stay
//! equal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use key_schema::Key;
use key_schema::rows::RowDescription;
use serde_json::Value;
use test_site::{TableChanges, TableDump, TestEnvironment};

use super::execution_comparison::{is_end, is_long};

/// Number of items of each row type.
pub(crate) type Rows = BTreeMap<&'static str, usize>;

/// Maximum length of texts in which ids are looked for. Longer texts do not contain ids.
const LONGEST: usize = 4_096;

/// Views of copies of a table, by the changes in them.
pub(crate) struct Seen<T> {
    before: TableDump,
    /// Ids, and texts in the form of ids, that the table contained before the write.
    known: HashSet<String>,
    rows: Rows,
    found: Mutex<HashMap<String, Arc<T>>>,
}

/// Changes in a copy.
pub(crate) struct State {
    pub(crate) rows: Rows,
    /// A text that is equal for copies of the table with equivalent changes.
    pub(crate) kind: String,
}

impl<T> Seen<T> {
    /// Creates a cache for copies of this table, to which only `written` is written.
    pub(crate) async fn of(site: &TestEnvironment, written: &str) -> Self {
        let before = site.dump().await;
        let mut known: HashSet<_> = written.split(is_end).filter(is_long).map(str::to_owned).collect();
        let mut rows = Rows::new();
        for (key, item) in &before {
            *rows.entry(row_of(key)).or_default() += 1;
            each_text(item, &mut |text| {
                known.extend(text.split(is_end).filter(is_long).map(str::to_owned));
            });
        }
        Self { before, known, rows, found: Mutex::default() }
    }

    /// Returns the state of a copy.
    pub(crate) async fn state(&self, site: &TestEnvironment) -> State {
        let changes = site.changes(&self.before).await;
        let mut rows = self.rows.clone();
        for (key, item) in &changes {
            let count = rows.entry(row_of(key)).or_default();
            match (self.before.contains_key(key), item.is_some()) {
                (false, true) => *count += 1,
                (true, false) => *count -= 1,
                _ => {}
            }
        }
        rows.retain(|_, count| *count > 0);
        State { rows, kind: self.kind(&changes) }
    }

    /// Returns the view of another copy of the same kind.
    pub(crate) fn found(&self, state: &State) -> Option<Arc<T>> {
        self.found.lock().unwrap().get(&state.kind).cloned()
    }

    /// Stores the view of a copy of this kind.
    pub(crate) fn keep(&self, state: &State, found: T) -> Arc<T> {
        let found = Arc::new(found);
        self.found.lock().unwrap().insert(state.kind.clone(), Arc::clone(&found));
        found
    }

    fn kind(&self, changes: &TableChanges) -> String {
        let mut text = Text { known: &self.known, numbers: HashMap::new(), written: String::new() };
        // Packed traces are only in blocks, whose content cannot be compared apart from ids and times.
        // Each table with changed blocks is therefore of its own kind.
        if changes.iter().any(|(key, item)| is_block(key) && item.is_some()) {
            static TABLES: AtomicUsize = AtomicUsize::new(0);
            write!(text.written, "{} ", TABLES.fetch_add(1, Ordering::Relaxed)).unwrap();
        }
        for (key, item) in changes {
            text.write(key);
            match item {
                Some(item) => text.value(item, is_block(key)),
                None => text.written.push('-'),
            }
        }
        text.written
    }
}

fn row_of(key: &str) -> &'static str {
    let (pk, sk) = key.split_once(' ').unwrap();
    RowDescription::of(&Key { pk: pk.to_owned(), sk: sk.to_owned() }).unwrap().name
}

/// Returns whether the item has packed content, which
/// [`trace_invariants`](crate::faults::trace_invariants) compares with documents and spans.
fn is_block(key: &str) -> bool {
    key.starts_with("TS#") || key.starts_with("TR#") && key.contains(" B#")
}

/// Calls `look` with all texts of a value that may contain ids.
fn each_text(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| !is_binary(name)) {
                look(name);
                each_text(value, look);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| each_text(value, look)),
        Value::String(text) if text.len() <= LONGEST => look(text),
        _ => {}
    }
}

/// Returns whether this is DynamoDB's name for the type of bytes, or of sets of bytes.
fn is_binary(name: &str) -> bool {
    matches!(name, "B" | "BS")
}

/// A text in which new ids and times are replaced by numbers.
struct Text<'a> {
    known: &'a HashSet<String>,
    numbers: HashMap<String, usize>,
    written: String,
}

impl Text<'_> {
    fn value(&mut self, value: &Value, is_block: bool) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                self.written.push('{');
                for (name, value) in fields {
                    if is_binary(name) {
                        let value = if is_block { &Value::Null } else { value };
                        write!(self.written, "{value}").unwrap();
                    } else {
                        self.write(name);
                        self.value(value, is_block);
                    }
                }
                self.written.push('}');
            }
            Value::Array(values) => {
                self.written.push('[');
                for value in values {
                    self.value(value, is_block);
                }
                self.written.push(']');
            }
            Value::String(text) if text.len() <= LONGEST => self.write(text),
            other => write!(self.written, "{other}").unwrap(),
        }
    }

    fn write(&mut self, text: &str) {
        for word in text.split_inclusive(is_end) {
            let bare = word.trim_end_matches(is_end);
            if is_long(&bare) && !self.known.contains(bare) {
                let next = self.numbers.len();
                let number = *self.numbers.entry(bare.to_owned()).or_insert(next);
                write!(self.written, "NEW{number}{}", &word[bare.len()..]).unwrap();
            } else {
                self.written.push_str(word);
            }
        }
        self.written.push('\u{1}');
    }
}
