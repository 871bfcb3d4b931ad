//! Checks items against the rows that `key-schema` declares. An item that does not match its
//! declaration is unreadable. Without the check, an attribute of a wrong type would count as
//! missing, and a missing attribute often means a default.

use aws_sdk_dynamodb::primitives::Blob;
use key_schema::attributes::{AttributeDescription, Kind};
use key_schema::rows::RowDescription;

use crate::{Failure, Item, Result, Value};

/// Checks items that were read with all their attributes.
///
/// # Errors
/// [`Failure::Unreadable`] for the first item that lacks a required attribute, or has an attribute
/// of another type than its row declares.
pub(crate) fn check<'a>(items: impl IntoIterator<Item = &'a Item>) -> Result<()> {
    // The row of the previous item is tried first, because most items of a page belong to the same
    // row.
    let mut row: Option<&RowDescription> = None;
    for item in items {
        let Some(key) = item.key() else { return Err(Failure::Unreadable("an item without a key".to_owned())) };
        if !row.is_some_and(|row| (row.has_form)(&key)) {
            row = RowDescription::of(&key);
        }
        let unfit = row.and_then(|row| row.attributes().find(|attribute| !fits(item, attribute)));
        if let Some(attribute) = unfit {
            return Err(Failure::Unreadable(format!("{} of {} {}", attribute.name, key.pk, key.sk)));
        }
    }
    Ok(())
}

fn fits(item: &Item, attribute: &AttributeDescription) -> bool {
    if attribute.is_pattern() {
        let mut named = item.0.iter().filter(|(name, _)| attribute.is_named(name));
        return named.all(|(_, value)| holds(attribute.kind, value));
    }
    item.0.get(attribute.name).map_or(!attribute.is_required, |value| holds(attribute.kind, value))
}

fn holds(kind: Kind, value: &Value) -> bool {
    let is_text = |bytes: &Blob| std::str::from_utf8(bytes.as_ref()).is_ok();
    match value {
        Value::S(text) => kind.code == "S" && (kind.reads)(text),
        Value::N(digits) => kind.code == "N" && (kind.reads)(digits),
        Value::B(_) => kind.code == "B",
        Value::Bs(set) => kind.code == "BS" && (kind.values.is_none() || set.iter().all(is_text)),
        Value::M(map) => {
            kind.code == "M" && kind.values.is_some_and(|kind| map.values().all(|value| holds(*kind, value)))
        }
        Value::L(_) => kind.code == "L",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use key_schema::rows;
    use model::ExperimentId;

    use super::*;
    use crate::{Map, bytes, map, number, text};

    fn tag() -> Item {
        let key = rows::ExperimentTag::key(&ExperimentId::DEFAULT, &"k".into());
        Item::new(key).with("key", text("k")).with("value", text("v"))
    }

    fn experiment() -> Item {
        Item::new(rows::Experiment::key(&ExperimentId::DEFAULT))
            .with("name", text("e"))
            .with("location", text("s3://b"))
            .with("created", number(1))
            .with("updated", number(1))
            .with("stage", text("active"))
            .with("stage_version", number(0))
            .with("tags", map(Map::new()))
    }

    fn without(mut item: Item, attribute: &str) -> Item {
        item.0.remove(attribute);
        item
    }

    #[test]
    fn items_are_what_is_declared_of_their_rows() {
        assert_eq!(check(&[experiment(), tag(), experiment()]), Ok(()));
        let undeclared = tag().with("lsi1sk", number(1)).with("anything", number(1));
        assert_eq!(check(&[undeclared]), Ok(()), "indexes have keys of their own");
        let unreadable = [
            without(tag(), "value"),
            tag().with("value", number(1)),
            without(experiment(), "stage"),
            experiment().with("stage", text("asleep")),
            experiment().with("stage_version", number(-1)),
            experiment().with("created", Value::N("1.5".to_owned())),
            experiment().with("created", Value::N("99999999999999999999".to_owned())),
            experiment().with("tags", bytes(vec![1])),
            experiment().with("tags", map(Map::from([("k".to_owned(), number(1))]))),
            experiment().with("name", Value::Null(true)),
            experiment().with("workspace", number(1)),
        ];
        for item in unreadable {
            let failure = check(&[experiment(), item.clone()]);
            assert!(matches!(failure, Err(Failure::Unreadable(_))), "{:?} {failure:?}", item.0);
        }
    }

    #[test]
    fn each_metric_of_a_document_is_checked() {
        let run = model::RunId::new(1, ExperimentId::DEFAULT, 1);
        let document = Item::new(rows::RunMetrics::key(&run)).with("packed", number(1));
        let set = || crate::bytes_set([vec![1]]);
        assert_eq!(check(&[document.clone().with(".a", set()).with(".b", set())]), Ok(()));
        assert!(check(&[document.with(".a", set()).with(".b", text("x"))]).is_err());
    }
}
