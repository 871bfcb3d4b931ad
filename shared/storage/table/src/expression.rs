//! Conditions and updates as values, and their rendering into DynamoDB's expression syntax.

use std::collections::HashMap;
use std::fmt::{self, Write};

use key_schema::attributes::Attribute;
use key_schema::definition::{Index, PK};
use key_schema::{IndexKey, Key};

use crate::{Item, Value};

/// An attribute, or an entry of a map attribute. The parts are literal names and are never parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributePath(Vec<String>);

impl From<&str> for AttributePath {
    fn from(attribute: &str) -> Self {
        Self(vec![attribute.to_owned()])
    }
}

impl From<String> for AttributePath {
    fn from(attribute: String) -> Self {
        Self(vec![attribute])
    }
}

impl<T: ?Sized> From<Attribute<T>> for AttributePath {
    fn from(attribute: Attribute<T>) -> Self {
        attribute.name().into()
    }
}

impl<T: ?Sized> From<(Attribute<T>, &str)> for AttributePath {
    /// Returns the path of an entry of a map attribute.
    fn from((attribute, entry): (Attribute<T>, &str)) -> Self {
        (attribute.name(), entry).into()
    }
}

impl From<(&str, &str)> for AttributePath {
    /// Returns the path of an entry of a map attribute.
    fn from((attribute, entry): (&str, &str)) -> Self {
        Self(vec![attribute.to_owned(), entry.to_owned()])
    }
}

/// A condition that an item must meet for a write to succeed. Its `Debug` output has placeholders
/// for values.
#[derive(Clone, PartialEq)]
pub enum Condition {
    /// The attribute exists.
    Exists(AttributePath),
    /// The attribute does not exist.
    Missing(AttributePath),
    /// The attribute exists and has this value.
    Equals(AttributePath, Value),
    /// The attribute exists and is less than this value.
    Below(AttributePath, Value),
    /// Always holds.
    Always,
    /// All of these conditions hold.
    All(Vec<Condition>),
    /// At least one of these conditions holds.
    Any(Vec<Condition>),
    /// This condition does not hold.
    Not(Box<Condition>),
}

impl Condition {
    /// Returns the condition that the item exists.
    #[must_use]
    pub fn item_exists() -> Self {
        Self::Exists(PK.into())
    }

    /// Returns the condition that the item does not exist yet.
    #[must_use]
    pub fn item_missing() -> Self {
        Self::Missing(PK.into())
    }

    /// Returns the condition that an attribute is unchanged since an item was read: it has the
    /// value that it has in the item, or is still missing.
    #[must_use]
    pub fn unchanged<T: ?Sized>(item: &Item, attribute: Attribute<T>) -> Self {
        match item.value(attribute) {
            Some(value) => Self::Equals(attribute.into(), value.clone()),
            None => Self::Missing(attribute.into()),
        }
    }

    /// Returns the condition that both conditions hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::Always => other,
            Self::All(mut conditions) => {
                conditions.push(other);
                Self::All(conditions)
            }
            first => Self::All(vec![first, other]),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&Expressions::default().condition(self).unwrap_or_default())
    }
}

/// A change of one item. An update never creates an item: it carries the condition that the item
/// exists, unless it was built with [`Update::upsert`]. Its `Debug` output has placeholders for
/// names and values.
#[derive(Clone, PartialEq)]
pub struct Update {
    pub(crate) key: Key,
    pub(crate) condition: Condition,
    set: Vec<(AttributePath, Value)>,
    add: Vec<(AttributePath, Value)>,
    delete: Vec<(AttributePath, Value)>,
    remove: Vec<AttributePath>,
}

impl fmt::Debug for Update {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = Expressions::default().update(self);
        formatter.debug_struct("Update").field("key", &self.key).field("change", &change).finish_non_exhaustive()
    }
}

impl Update {
    /// Returns an update of the item with this key, which must exist.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self { condition: Condition::item_exists(), ..Self::upsert(key) }
    }

    /// Returns an update that creates the item if it is missing.
    #[must_use]
    pub fn upsert(key: Key) -> Self {
        let (set, add, delete, remove) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { key, condition: Condition::Always, set, add, delete, remove }
    }

    /// Sets an attribute, or an entry of an existing map.
    #[must_use]
    pub fn set(mut self, path: impl Into<AttributePath>, value: Value) -> Self {
        self.set.push((path.into(), value));
        self
    }

    /// Sets the item's key in an index.
    #[must_use]
    pub fn indexed(mut self, key: IndexKey) -> Self {
        self.set.extend(key.0.into_iter().map(|(attribute, place)| (attribute.into(), Value::S(place))));
        self
    }

    /// Removes the item from a local index.
    #[must_use]
    pub fn not_indexed(self, index: &Index) -> Self {
        self.remove(index.sort)
    }

    /// Adds a value to a number or elements to a set. The attribute is created if it is missing.
    /// Supported for top-level attributes only.
    #[must_use]
    pub fn add(mut self, attribute: impl Into<AttributePath>, value: Value) -> Self {
        self.add.push((attribute.into(), value));
        self
    }

    /// Removes elements from a set. Removing the last one removes the attribute. Supported for
    /// top-level attributes only.
    #[must_use]
    pub fn delete(mut self, attribute: impl Into<AttributePath>, value: Value) -> Self {
        self.delete.push((attribute.into(), value));
        self
    }

    /// Removes an attribute, or an entry of a map.
    #[must_use]
    pub fn remove(mut self, path: impl Into<AttributePath>) -> Self {
        self.remove.push(path.into());
        self
    }

    /// Adds a condition that must hold in addition to the existing one.
    #[must_use]
    pub fn only_if(mut self, condition: Condition) -> Self {
        self.condition = self.condition.and(condition);
        self
    }

    /// Returns the key of the item to update.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns whether the update changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.delete.is_empty() && self.remove.is_empty()
    }
}

/// The expressions of one request, with the names and values that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    names: HashMap<String, String>,
    values: HashMap<String, Value>,
}

impl Expressions {
    /// Returns the names by placeholder. `None` if there are no names, because DynamoDB rejects an
    /// empty map.
    pub(crate) fn names(&self) -> Option<HashMap<String, String>> {
        let names: HashMap<_, _> =
            self.names.iter().map(|(name, placeholder)| (placeholder.clone(), name.clone())).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Returns the values by placeholder. `None` if there are no values.
    pub(crate) fn values(&self) -> Option<HashMap<String, Value>> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }

    /// Renders a condition. Returns `None` for a condition that always holds.
    pub(crate) fn condition(&mut self, condition: &Condition) -> Option<String> {
        match condition {
            Condition::Exists(path) => Some(format!("attribute_exists({})", self.path(path))),
            Condition::Missing(path) => Some(format!("attribute_not_exists({})", self.path(path))),
            Condition::Equals(path, value) => Some(format!("{}={}", self.path(path), self.value(value))),
            Condition::Below(path, value) => Some(format!("{}<{}", self.path(path), self.value(value))),
            Condition::All(parts) => self.join(parts, " AND "),
            Condition::Any(parts) => self.join(parts, " OR "),
            Condition::Always => None,
            Condition::Not(part) => self.condition(part).map(|part| format!("NOT({part})")),
        }
    }

    fn join(&mut self, parts: &[Condition], word: &str) -> Option<String> {
        let rendered: Vec<_> = parts
            .iter()
            .filter_map(|part| {
                let text = self.condition(part)?;
                let joined = matches!(part, Condition::All(_) | Condition::Any(_));
                Some(if joined { format!("({text})") } else { text })
            })
            .collect();
        (!rendered.is_empty()).then(|| rendered.join(word))
    }

    /// Renders an update.
    pub(crate) fn update(&mut self, update: &Update) -> String {
        let mut text = String::new();
        self.section(&mut text, "SET ", &update.set, "=");
        self.section(&mut text, "ADD ", &update.add, " ");
        self.section(&mut text, "DELETE ", &update.delete, " ");
        for (position, path) in update.remove.iter().enumerate() {
            text.push_str(if position == 0 { "REMOVE " } else { "," });
            let path = self.path(path);
            text.push_str(&path);
        }
        text
    }

    fn section(&mut self, text: &mut String, word: &str, changes: &[(AttributePath, Value)], between: &str) {
        for (position, (path, value)) in changes.iter().enumerate() {
            text.push_str(if position == 0 { word } else { "," });
            let (path, value) = (self.path(path), self.value(value));
            let _ = write!(text, "{path}{between}{value}");
        }
        if !changes.is_empty() {
            text.push(' ');
        }
    }

    /// Returns the placeholders of a path. A name that is used twice has one placeholder.
    pub(crate) fn path(&mut self, path: &AttributePath) -> String {
        let parts: Vec<_> = path.0.iter().map(|name| self.name(name)).collect();
        parts.join(".")
    }

    fn name(&mut self, name: &str) -> String {
        if let Some(placeholder) = self.names.get(name) {
            return placeholder.clone();
        }
        let placeholder = format!("#{}", short(self.names.len()));
        self.names.insert(name.to_owned(), placeholder.clone());
        placeholder
    }

    /// Returns a new placeholder for a value.
    pub(crate) fn value(&mut self, value: &Value) -> String {
        let placeholder = format!(":{}", short(self.values.len()));
        self.values.insert(placeholder.clone(), value.clone());
        placeholder
    }
}

/// Returns a short name for a number. Names have to be short because an expression is limited to
/// 4,096 characters, and a batch refers to hundreds of attributes.
fn short(mut number: usize) -> String {
    const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut name = String::new();
    loop {
        name.push(char::from(DIGITS[number % DIGITS.len()]));
        number /= DIGITS.len();
        if number == 0 {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{number, text};

    fn key() -> Key {
        Key { pk: "P".to_owned(), sk: "S".to_owned() }
    }

    #[test]
    fn updates_are_rendered_with_placeholders_only() {
        let update = Update::new(key())
            .set("status", text("DONE"))
            .set(("tags", "a.b #c"), text("x"))
            .add("count", number(1))
            .delete("points", crate::bytes_set([vec![1]]))
            .remove(("tags", "old"));
        let mut expressions = Expressions::default();
        assert_eq!(expressions.update(&update), "SET #a=:a,#b.#c=:b ADD #d :c DELETE #e :d REMOVE #b.#f");
        assert_eq!(expressions.condition(&update.condition).unwrap(), "attribute_exists(#g)");
        assert_eq!(expressions.names().unwrap()["#c"], "a.b #c");
    }

    #[test]
    fn conditions_nest() {
        let condition = Condition::item_exists()
            .and(Condition::Any(vec![Condition::Missing("full".into()), Condition::Below("size".into(), number(7))]))
            .and(Condition::Not(Box::new(Condition::Equals("stage".into(), text("deleted")))));
        let rendered = Expressions::default().condition(&condition).unwrap();
        assert_eq!(rendered, "attribute_exists(#a) AND (attribute_not_exists(#b) OR #c<:a) AND NOT(#d=:b)");
        assert_eq!(Expressions::default().condition(&Condition::All(vec![])), None);
    }

    #[test]
    fn placeholders_are_short_and_distinct() {
        let names: std::collections::HashSet<_> = (0..5_000).map(short).collect();
        assert_eq!(names.len(), 5_000);
        assert!(names.iter().all(|name| name.len() <= 3));
    }
}
