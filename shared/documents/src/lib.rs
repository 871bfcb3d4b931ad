//! Documents: items that hold their params and tags in maps of their own, and let rows take what is too big.
//!
//! A value of more than [`INLINE_VALUE`] bytes gets a row of its own. So does a new key once the document is **full**, which it
//! then stays. An entry in the document always counts for more than a row of the same key. A document says whether it
//! may have rows, so one that has none is read and written alone.
//!
//! Writing is optimistic: the update is sent as if nothing stood in its way, with conditions; a refusal brings the document as
//! it is, and the next attempt is planned from that.

mod list_tag;
mod logged_model;

use std::collections::BTreeMap;

pub use list_tag::append_to_tag;
pub use logged_model::LoggedModelDocument;

use entities::attributes::{PARAM_ROWS, PARAMS, ROW_KEY, ROW_VALUE, TAG_ROWS, TAGS};
use entities::entry_name;
use key_schema::{Key, Name};
use mlflow_api::{Error, Result, python};
use table::{Condition, Failure, Item, Map, Table, Update, Value, Write, map, number, text};

/// Longest value, in bytes, that stands in the document itself.
pub const INLINE_VALUE: usize = 1_024;
/// Size of a document's maps, in bytes, from which on new keys get rows: each change of a document costs its whole size.
pub const FULL_AT: usize = 48 << 10;
/// A change of more bytes than this is planned from the document, not sent on the off-chance.
const OPTIMISTIC: usize = 16 << 10;
/// Params whose equality an optimistic update checks; of more it only checks that they are new. An expression has 4 KB.
const CHECKED_PARAMS: usize = 20;
/// Params, and tags, in one update: an expression has 4 KB. What is more goes into the next.
const ENTRIES: usize = 100;
/// Rows in one transaction, beside the document.
const ROWS: usize = 99;
/// Bytes of rows in one transaction, which takes 4 MB with the document.
const ROW_BYTES: usize = 3 << 20;

/// Largest entry, in bytes of key and value: a row has room for 400 KB, its key and names included.
const ENTRY: usize = 380 << 10;

/// New keys get rows.
const FULL: &str = "full";

/// A document that can be changed.
pub trait Document {
    /// Its key.
    fn key(&self) -> Key;
    /// The key of a param's row. Of what has no params, the key of a tag's row will do: it is never used.
    fn param_row(&self, param: &Name) -> Key {
        self.tag_row(param)
    }
    /// The key of a tag's row.
    fn tag_row(&self, tag: &Name) -> Key;
    /// Longest value, in bytes, of a tag that stands in the document itself while it is not full.
    fn inline_value(&self) -> usize {
        INLINE_VALUE
    }
    /// The condition under which it may be written.
    fn writable(&self) -> Condition;
    /// The write as it is sent: what else a change of the document changes.
    fn finished(&self, update: Update) -> Update {
        update
    }
    /// MLflow's error if it may not be written as it is.
    fn check(&self, item: Option<&Item>) -> Result<()>;
    /// MLflow's error about params that have another value already.
    fn params_differ(&self, conflicts: &[Conflict]) -> Error {
        Error::invalid(format!("Params have other values already: {}", print_conflicts(conflicts)))
    }
}

/// A param that has another value already.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The param.
    pub key: String,
    /// The value it has.
    pub old_value: String,
    /// The value it was to get.
    pub new_value: String,
}

/// A change of a document. Of a key that comes twice, the last value counts.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Params; one that is there with another value is an error.
    pub params: Vec<(String, String)>,
    /// Tags; one that is there gets the new value.
    pub tags: Vec<(String, String)>,
    /// Other attributes to set.
    pub set: Vec<(&'static str, Value)>,
}

impl Change {
    fn bytes(&self) -> usize {
        self.params.iter().chain(&self.tags).map(|(key, value)| key.len() + value.len()).sum()
    }

    fn is_sure_to_fit(&self) -> bool {
        let values = || self.params.iter().chain(&self.tags).map(|(_, value)| value.len());
        let few = self.params.len().max(self.tags.len()) <= ENTRIES;
        few && values().all(|bytes| bytes <= INLINE_VALUE) && self.bytes() <= OPTIMISTIC
    }
}

/// What to send, and what to do after.
struct Plan {
    update: Update,
    rows: Vec<Item>,
    /// What did not go into this transaction.
    rest: Option<Change>,
}

/// Changes a document; returns it as it is then. One request where nothing stands in the way.
///
/// # Errors
/// The document's own, and that of params that differ; then nothing was written.
pub async fn change(table: &Table, document: &impl Document, change: Change) -> Result<Item> {
    let mut change = change;
    let mut seen = None;
    if !change.is_sure_to_fit() {
        seen = table.get(&document.key()).await?;
        document.check(seen.as_ref())?;
    }
    let mut attempt = 0;
    while attempt < table.retry().attempts {
        if attempt > 1 {
            table.retry().pause(attempt - 1).await;
        }
        attempt += 1;
        let plan = match &seen {
            None => optimistic(document, &change),
            Some(item) => plan_change(table, document, &change, item).await?,
        };
        let nothing_to_do = plan.update.is_empty() && plan.rows.is_empty();
        if let Some(item) = seen.take_if(|_| nothing_to_do) {
            return Ok(item);
        }
        match carry_out(table, document, &plan).await {
            Ok(item) => {
                let Some(rest) = plan.rest else { return close_if_full(table, item).await };
                change = rest;
                seen = Some(item);
                attempt = 0;
            }
            Err(Failure::Refused { item, .. }) => {
                document.check(item.as_ref())?;
                seen = item;
            }
            // Somebody else changed it between our read and our transaction, or it has no room for what we did not know
            // to need rows.
            Err(failure @ (Failure::Cancelled(_) | Failure::TooLarge)) => {
                if seen.is_some() && failure == Failure::TooLarge {
                    return Err(failure.into());
                }
                seen = table.get(&document.key()).await?;
                document.check(seen.as_ref())?;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Err(Error::unavailable("a document kept changing"))
}

async fn carry_out(table: &Table, document: &impl Document, plan: &Plan) -> table::Result<Item> {
    let update = document.finished(plan.update.clone());
    if plan.rows.is_empty() {
        return table.update(&update).await;
    }
    let rows = plan.rows.iter().map(|row| Write::Put(row.clone(), Condition::All(Vec::new())));
    let writes: Vec<_> = std::iter::once(Write::Update(update)).chain(rows).collect();
    table.transact(&writes).await?;
    let item = table.get(plan.update.key()).await?;
    item.ok_or_else(|| Failure::Unexpected("a document vanished".to_owned()))
}

/// Marks a document full when it has become so.
async fn close_if_full(table: &Table, item: Item) -> Result<Item> {
    let Some(key) = item.key().filter(|_| !item.has(FULL) && maps_size(&item) > FULL_AT) else { return Ok(item) };
    match table.update(&Update::new(key).set(FULL, number(1))).await {
        // A document that is gone by now needs no mark.
        Err(Failure::Refused { .. }) => Ok(item),
        outcome => Ok(outcome?),
    }
}

/// Plans a change from the document as it was seen.
async fn plan_change(table: &Table, document: &impl Document, change: &Change, item: &Item) -> Result<Plan> {
    let new_params = new_params(table, document, change, item).await?;
    let is_full = item.has(FULL);
    let mut room = if is_full { 0 } else { FULL_AT.saturating_sub(maps_size(item)) };
    let mut update = Update::new(document.key()).only_if(document.writable());
    for (attribute, value) in &change.set {
        update = update.set(*attribute, value.clone());
    }
    let mut rows = Rows::default();
    let mut rest = Change::default();
    let (mut param_rows, mut tag_rows, mut inline_keys, mut overflow) = (false, false, false, false);

    for (position, (key, value)) in new_params.iter().enumerate() {
        let bytes = key.len() + value.len();
        if position >= ENTRIES {
            rest.params.push((key.clone(), value.clone()));
            continue;
        }
        update = update.only_if(Condition::Missing((PARAMS, entry_name(key).as_ref()).into()));
        if value.len() <= INLINE_VALUE && bytes <= room {
            room -= bytes;
            inline_keys = true;
            update = update.set((PARAMS, entry_name(key).as_ref()), text(value));
        } else if rows.take(bytes) {
            overflow |= value.len() <= INLINE_VALUE;
            param_rows = true;
            rows.items.push(row(document.param_row(&Name::from(key.as_str())), key, value));
        } else {
            rest.params.push((key.clone(), value.clone()));
        }
    }
    for (position, (key, value)) in last_of_each(&change.tags).into_iter().enumerate() {
        if position >= ENTRIES {
            rest.tags.push((key.to_owned(), value.to_owned()));
            continue;
        }
        let name = entry_name(key);
        let held = item.map(TAGS).and_then(|tags| tags.get(name.as_ref()));
        let path = || (TAGS, name.as_ref());
        let bytes = key.len() + value.len();
        if held.is_some_and(|held| held.as_s().is_ok_and(|held| held == value)) {
            continue;
        }
        let replaces = held.is_some() && value.len() <= INLINE_VALUE;
        if value.len() <= document.inline_value() && (replaces || bytes <= room) {
            room = if replaces { room } else { room - bytes };
            inline_keys |= held.is_none();
            update = update.set(path(), text(value));
        } else if rows.take(bytes) {
            overflow |= value.len() <= INLINE_VALUE;
            tag_rows = true;
            update = if held.is_some() { update.remove(path()) } else { update };
            rows.items.push(row(document.tag_row(&Name::from(key)), key, value));
        } else {
            rest.tags.push((key.to_owned(), value.to_owned()));
        }
    }

    if inline_keys {
        update = update.only_if(Condition::Missing(FULL.into()));
    }
    if !new_params.is_empty() {
        update = update.only_if(match item.number(PARAM_ROWS) {
            None => Condition::Missing(PARAM_ROWS.into()),
            Some(count) => Condition::Equals(PARAM_ROWS.into(), number(count)),
        });
    }
    if param_rows {
        update = update.add(PARAM_ROWS, number(1));
    }
    if tag_rows {
        update = update.set(TAG_ROWS, number(1));
    }
    if overflow && !is_full {
        update = update.set(FULL, number(1));
    }
    let rest = (!rest.params.is_empty() || !rest.tags.is_empty()).then_some(rest);
    Ok(Plan { update, rows: rows.items, rest })
}

/// Rows of one transaction.
#[derive(Default)]
struct Rows {
    items: Vec<Item>,
    bytes: usize,
}

impl Rows {
    /// Whether there is room for one row more. There always is for the first: what is too large for an item, DynamoDB refuses.
    fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.items.is_empty() || (self.items.len() < ROWS && self.bytes + bytes <= ROW_BYTES);
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }
}

/// The params of a change that the document does not have yet; an error if it has one with another value.
async fn new_params(
    table: &Table,
    document: &impl Document,
    change: &Change,
    item: &Item,
) -> Result<Vec<(String, String)>> {
    let empty = Map::new();
    let held = item.map(PARAMS).unwrap_or(&empty);
    let mut conflicts = Vec::new();
    let mut new = Vec::new();
    for (key, value) in &change.params {
        match held.get(entry_name(key).as_ref()).and_then(|held| held.as_s().ok()) {
            None => new.push((key.clone(), value.clone())),
            Some(old) if old != value => conflicts.push(conflict(key, old, value)),
            Some(_) => {}
        }
    }
    if item.has(PARAM_ROWS) && !new.is_empty() {
        let keys: Vec<_> = new.iter().map(|(key, _)| document.param_row(&Name::from(key.as_str()))).collect();
        let rows = table.get_many(&keys).await?;
        let mut missing = Vec::new();
        for ((key, value), row_key) in new.into_iter().zip(keys) {
            match rows.get(&row_key).and_then(|row| row.text(ROW_VALUE)) {
                None => missing.push((key, value)),
                Some(old) if old != value => conflicts.push(conflict(&key, old, &value)),
                Some(_) => {}
            }
        }
        new = missing;
    }
    if conflicts.is_empty() { Ok(new) } else { Err(document.params_differ(&conflicts)) }
}

/// Removes a tag; whether it was there. One request where the document has no rows of tags.
pub async fn remove_tag(table: &Table, document: &impl Document, key: &str) -> Result<bool> {
    let name = entry_name(key);
    let path = || (TAGS, name.as_ref());
    let alone = Update::new(document.key())
        .remove(path())
        .only_if(document.writable())
        .only_if(Condition::Exists(path().into()))
        .only_if(Condition::Missing(TAG_ROWS.into()));
    let alone = document.finished(alone);
    let (item, after_lost_answer) = match table.update(&alone).await {
        Ok(_) => return Ok(true),
        Err(Failure::Refused { item, after_lost_answer }) => (item, after_lost_answer),
        Err(failure) => return Err(failure.into()),
    };
    document.check(item.as_ref())?;
    let item = item.unwrap_or_default();
    let in_document = item.map(TAGS).is_some_and(|tags| tags.contains_key(name.as_ref()));
    let row_key = document.tag_row(&Name::from(key));
    let in_row = item.has(TAG_ROWS) && table.get(&row_key).await?.is_some();
    if !in_document && !in_row {
        return Ok(after_lost_answer);
    }
    let removal = Update::new(document.key()).remove(path()).only_if(document.writable());
    let writes = [Write::Update(document.finished(removal)), Write::Delete(row_key, Condition::All(Vec::new()))];
    match table.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(Failure::Cancelled(_)) => {
            document.check(table.get(&document.key()).await?.as_ref())?;
            Err(Error::unavailable("a document changed while a tag was removed"))
        }
        Err(failure) => Err(failure.into()),
    }
}
/// The update to send when nothing is known of the document: all of it inline, refused if anything stands against it.
fn optimistic(document: &impl Document, change: &Change) -> Plan {
    let mut update = Update::new(document.key()).only_if(document.writable());
    for (attribute, value) in &change.set {
        update = update.set(*attribute, value.clone());
    }
    let equality_too = change.params.len() <= CHECKED_PARAMS;
    for (key, value) in &change.params {
        let path = || (PARAMS, entry_name(key).as_ref()).into();
        let missing = Condition::Missing(path());
        let equal = || Condition::Equals(path(), text(value));
        update = update.set((PARAMS, entry_name(key).as_ref()), text(value));
        update = update.only_if(if equality_too { Condition::Any(vec![missing, equal()]) } else { missing });
    }
    for (key, value) in last_of_each(&change.tags) {
        update = update.set((TAGS, entry_name(key).as_ref()), text(value));
    }
    if !change.params.is_empty() {
        update = update.only_if(Condition::Missing(PARAM_ROWS.into()));
    }
    if !change.params.is_empty() || !change.tags.is_empty() {
        update = update.only_if(Condition::Missing(FULL.into()));
    }
    Plan { update, rows: Vec::new(), rest: None }
}

/// What a new document begins with: its map of tags and flags, and the rows beside it.
#[must_use]
pub fn new_document(item: Item, tags: &[(String, String)], row_key: impl Fn(&Name) -> Key) -> (Item, Vec<Item>) {
    new_document_with(INLINE_VALUE, item, tags, row_key)
}

/// The same for a document whose values may be of another length ([`Document::inline_value`]).
#[must_use]
pub fn new_document_with(
    inline_value: usize,
    item: Item,
    tags: &[(String, String)],
    row_key: impl Fn(&Name) -> Key,
) -> (Item, Vec<Item>) {
    let mut room = FULL_AT;
    let mut rows = Vec::new();
    (begin(inline_value, item, (TAGS, TAG_ROWS), tags, row_key, &mut room, &mut rows), rows)
}

/// What a new document with params begins with, likewise.
#[must_use]
pub fn new_document_with_params(
    item: Item,
    params: &[(String, String)],
    tags: &[(String, String)],
    document: &impl Document,
) -> (Item, Vec<Item>) {
    let mut room = FULL_AT;
    let mut rows = Vec::new();
    let param_row = |param: &Name| document.param_row(param);
    let tag_row = |tag: &Name| document.tag_row(tag);
    let inline = document.inline_value();
    let item = begin(inline, item, (PARAMS, PARAM_ROWS), params, param_row, &mut room, &mut rows);
    (begin(inline, item, (TAGS, TAG_ROWS), tags, tag_row, &mut room, &mut rows), rows)
}

/// Gives a new document one of its maps, with what it has room for, and the flag that there are rows of the others.
fn begin(
    inline_value: usize,
    item: Item,
    (attribute, flag): (&str, &str),
    entries: &[(String, String)],
    row_key: impl Fn(&Name) -> Key,
    room: &mut usize,
    rows: &mut Vec<Item>,
) -> Item {
    let mut inline = Map::new();
    let mut item = item;
    for (key, value) in last_of_each(entries) {
        let bytes = key.len() + value.len();
        if value.len() <= inline_value && bytes <= *room {
            *room -= bytes;
            inline.insert(entry_name(key).into_owned(), text(value));
        } else {
            if value.len() <= INLINE_VALUE {
                item = item.with(FULL, number(1));
            }
            rows.push(row(row_key(&Name::from(key)), key, value));
            item = item.with(flag, number(1));
        }
    }
    item.with(attribute, map(inline))
}

/// Adds rows to the transaction that makes their document, as many as it takes; returns the others, to be written after it.
pub fn take_rows(writes: &mut Vec<Write>, rows: Vec<Item>) -> Vec<Item> {
    let mut taken = Rows::default();
    let room = ROWS + 1 - writes.len();
    let mut rest = Vec::new();
    for row in rows {
        if rest.is_empty() && taken.items.len() < room && taken.take(row.size()) {
            taken.items.push(row);
        } else {
            rest.push(row);
        }
    }
    writes.extend(taken.items.into_iter().map(|row| Write::Put(row, Condition::All(Vec::new()))));
    rest
}

/// The row of a param or tag that is too big for its document.
#[must_use]
pub fn row(key: Key, name: &str, value: &str) -> Item {
    Item::new(key).with(ROW_KEY, text(name)).with(ROW_VALUE, text(value))
}

fn conflict(key: &str, old_value: &str, new_value: &str) -> Conflict {
    Conflict { key: key.to_owned(), old_value: old_value.to_owned(), new_value: new_value.to_owned() }
}

/// The conflicts as Python prints them.
#[must_use]
pub fn print_conflicts(conflicts: &[Conflict]) -> String {
    let printed: Vec<_> = conflicts
        .iter()
        .map(|conflict| {
            let [key, old, new] =
                [&conflict.key, &conflict.old_value, &conflict.new_value].map(|text| python::repr(text));
            format!("{{'key': {key}, 'old_value': {old}, 'new_value': {new}}}")
        })
        .collect();
    format!("[{}]", printed.join(", "))
}

fn maps_size(item: &Item) -> usize {
    [PARAMS, TAGS]
        .iter()
        .filter_map(|name| item.map(name))
        .flatten()
        .map(|(key, value)| key.len() + value_len(value))
        .sum()
}

fn value_len(value: &Value) -> usize {
    value.as_s().map_or(0, String::len)
}

/// Checks that rows can hold entries of this size: none of a run's or an experiment's is too large, as MLflow limits them.
pub fn check_sizes(entries: &[(String, String)]) -> Result<()> {
    let is_too_large = |(key, value): &(String, String)| key.len() + value.len() > ENTRY;
    if entries.iter().any(is_too_large) { Err(Failure::TooLarge.into()) } else { Ok(()) }
}

/// The first key that comes twice.
#[must_use]
pub fn repeated_key(entries: &[(String, String)]) -> Option<&str> {
    let mut keys = std::collections::HashSet::new();
    entries.iter().map(|(key, _)| key.as_str()).find(|key| !keys.insert(*key))
}

/// Each key once, with its last value, in the order of keys.
fn last_of_each(entries: &[(String, String)]) -> BTreeMap<&str, &str> {
    entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_counts() {
        let entries = [("a", "1"), ("b", "2"), ("a", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(last_of_each(&entries).into_iter().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
    }
}
