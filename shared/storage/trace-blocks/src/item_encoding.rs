//! Encoding of items as bytes: all attributes except the key, of any type, in the order of their
//! names.

use table::{Map, Value, bytes, bytes_set, map, text};

use crate::bytes::{ByteReader, put_bytes, put_count};

/// Maximum nesting depth of maps and lists. This is DynamoDB's own limit.
const MAX_DEPTH: usize = 32;

const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const BYTES: u8 = 2;
const BYTES_SET: u8 = 3;
const MAP: u8 = 4;
const LIST: u8 = 5;
const NO: u8 = 6;
const YES: u8 = 7;
const NULL: u8 = 8;
const TEXT_SET: u8 = 9;
const NUMBER_SET: u8 = 10;

/// Appends the wanted attributes of a map. Returns `None` if one of them has an unknown type.
pub(crate) fn put_map(written: &mut Vec<u8>, map: &Map, is_wanted: impl Fn(&str) -> bool) -> Option<()> {
    put_entries(written, map, &is_wanted, MAX_DEPTH)
}

fn put_entries(written: &mut Vec<u8>, map: &Map, is_wanted: &dyn Fn(&str) -> bool, deepest: usize) -> Option<()> {
    let mut entries: Vec<_> = map.iter().filter(|(name, _)| is_wanted(name)).collect();
    // Entries are sorted so that equal maps have equal bytes, and similar entries are next to each
    // other.
    entries.sort_unstable_by_key(|(name, _)| *name);
    put_count(written, entries.len());
    for (name, value) in entries {
        put_bytes(written, name.as_bytes());
        put_value(written, value, deepest)?;
    }
    Some(())
}

fn put_value(written: &mut Vec<u8>, value: &Value, deepest: usize) -> Option<()> {
    let deeper = deepest.checked_sub(1)?;
    let mut put_set = |kind, members: Vec<&[u8]>| {
        written.push(kind);
        put_count(written, members.len());
        for member in members {
            put_bytes(written, member);
        }
    };
    match value {
        Value::Bs(set) => put_set(BYTES_SET, set.iter().map(AsRef::as_ref).collect()),
        Value::Ss(set) => put_set(TEXT_SET, set.iter().map(String::as_bytes).collect()),
        Value::Ns(set) => put_set(NUMBER_SET, set.iter().map(String::as_bytes).collect()),
        Value::S(text) => put_simple(written, TEXT, text.as_bytes()),
        Value::N(digits) => put_simple(written, NUMBER, digits.as_bytes()),
        Value::B(content) => put_simple(written, BYTES, content.as_ref()),
        Value::Bool(is) => written.push(if *is { YES } else { NO }),
        Value::Null(_) => written.push(NULL),
        Value::M(entries) => {
            written.push(MAP);
            put_entries(written, entries, &|_| true, deeper)?;
        }
        Value::L(list) => {
            written.push(LIST);
            put_count(written, list.len());
            for value in list {
                put_value(written, value, deeper)?;
            }
        }
        _ => return None,
    }
    Some(())
}

fn put_simple(written: &mut Vec<u8>, kind: u8, content: &[u8]) {
    written.push(kind);
    put_bytes(written, content);
}

/// Reads the next map of attributes.
pub(crate) fn read_map(reader: &mut ByteReader) -> Option<Map> {
    read_entries(reader, MAX_DEPTH)
}

fn read_entries(reader: &mut ByteReader, deepest: usize) -> Option<Map> {
    let count = reader.count()?;
    let mut entries = Map::with_capacity(count);
    for _ in 0..count {
        let name = reader.text()?.to_owned();
        entries.insert(name, read_value(reader, deepest)?);
    }
    (entries.len() == count).then_some(entries)
}

fn read_value(reader: &mut ByteReader, deepest: usize) -> Option<Value> {
    let deeper = deepest.checked_sub(1)?;
    let value = match reader.byte()? {
        TEXT => text(reader.text()?),
        NUMBER => Value::N(reader.text()?.to_owned()),
        BYTES => bytes(reader.bytes()?.to_vec()),
        BYTES_SET => bytes_set(read_many(reader, |reader| Some(reader.bytes()?.to_vec()))?),
        TEXT_SET => Value::Ss(read_many(reader, |reader| Some(reader.text()?.to_owned()))?),
        NUMBER_SET => Value::Ns(read_many(reader, |reader| Some(reader.text()?.to_owned()))?),
        NO => Value::Bool(false),
        YES => Value::Bool(true),
        NULL => Value::Null(true),
        MAP => map(read_entries(reader, deeper)?),
        LIST => Value::L(read_many(reader, |reader| read_value(reader, deeper))?),
        _ => return None,
    };
    Some(value)
}

fn read_many<T>(reader: &mut ByteReader, read: impl Fn(&mut ByteReader) -> Option<T>) -> Option<Vec<T>> {
    let count = reader.count()?;
    (0..count).map(|_| read(reader)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let bytes_of = || prop::collection::vec(any::<u8>(), 0..20);
        let simple = prop_oneof![
            ".{0,20}".prop_map(text),
            any::<i64>().prop_map(table::number),
            bytes_of().prop_map(bytes),
            prop::collection::vec(bytes_of(), 1..4).prop_map(bytes_set),
            prop::collection::vec(".{0,5}", 1..4).prop_map(Value::Ss),
            prop::collection::vec("[0-9]{1,5}", 1..4).prop_map(Value::Ns),
            any::<bool>().prop_map(Value::Bool),
            Just(Value::Null(true)),
        ];
        simple.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::L),
                prop::collection::hash_map(".{0,8}", inner, 0..5).prop_map(map),
            ]
        })
    }

    proptest! {
        #[test]
        fn attributes_come_back(map in prop::collection::hash_map(".{0,8}", value(), 0..6)) {
            let mut written = Vec::new();
            put_map(&mut written, &map, |_| true).unwrap();
            let mut reader = ByteReader(&written);
            prop_assert_eq!(read_map(&mut reader), Some(map));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn other_bytes_do_no_harm(bytes: Vec<u8>) {
            let _ = read_map(&mut ByteReader(&bytes));
        }
    }

    #[test]
    fn only_what_is_wanted_is_written_and_nothing_that_is_too_deep() {
        let two = Map::from([("a".to_owned(), text("1")), ("b".to_owned(), text("2"))]);
        let mut written = Vec::new();
        put_map(&mut written, &two, |name| name != "a").unwrap();
        assert_eq!(read_map(&mut ByteReader(&written)), Some(Map::from([("b".to_owned(), text("2"))])));
        let deep = (0..MAX_DEPTH).fold(text("x"), |value, _| Value::L(vec![value]));
        assert_eq!(put_map(&mut Vec::new(), &Map::from([("a".to_owned(), deep)]), |_| true), None);
        let lists = [vec![1, 1, b'a'], [LIST, 1].repeat(1_000)].concat();
        assert_eq!(read_map(&mut ByteReader(&lists)), None);
    }
}
