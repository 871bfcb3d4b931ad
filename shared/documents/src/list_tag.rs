//! Tags that hold a JSON list, to which several may add at once.

use entities::attributes::{ROW_VALUE, TAG_ROWS, TAGS};
use entities::entries;
use mlflow_api::{Error, Result, python};
use serde_json::Value;
use table::{Condition, Failure, Item, Table, Update, Write, number, text};

use crate::{Document, row};

/// Adds an element to the list in a document's tag; one that is in it is not added again, so that the call may be repeated. Two
/// requests; one more each way if the document has rows of tags.
///
/// # Errors
/// The document's own.
pub async fn append_to_tag(table: &Table, document: &impl Document, tag: &str, element: &Value) -> Result<()> {
    for attempt in 0..table.retry().attempts {
        table.retry().pause(attempt).await;
        let item = table.get(&document.key()).await?;
        document.check(item.as_ref())?;
        let item = item.unwrap_or_default();
        let row = if item.has(TAG_ROWS) { table.get(&document.tag_row(&tag.into())).await? } else { None };
        let all = entries(&item, TAGS, row.as_slice());
        let old = all.iter().find(|(key, _)| key == tag).map(|(_, value)| value.as_str());
        let mut list: Vec<Value> = match old {
            Some(old) if !old.is_empty() => {
                serde_json::from_str(old).map_err(|_| Error::internal(format!("the tag {tag} holds no list")))?
            }
            _ => Vec::new(),
        };
        if list.contains(element) {
            return Ok(());
        }
        list.push(element.clone());
        let new = python::json_spaced(&Value::Array(list));
        if swap(table, document, &item, tag, old, &new).await? {
            return Ok(());
        }
    }
    Err(Error::unavailable("a tag kept changing"))
}

/// Replaces the value of a tag if it is still the old one; whether it was.
async fn swap(
    table: &Table,
    document: &impl Document,
    item: &Item,
    tag: &str,
    old: Option<&str>,
    new: &str,
) -> Result<bool> {
    let path = || (TAGS, tag);
    let held = item.map(TAGS).is_some_and(|tags| tags.contains_key(tag));
    let unchanged = match old {
        Some(old) if held => Condition::Equals(path().into(), text(old)),
        _ => Condition::Missing(path().into()),
    };
    let update = document.finished(Update::new(document.key())).only_if(document.writable()).only_if(unchanged);
    let outcome = if new.len() <= document.inline_value() && !item.has(TAG_ROWS) {
        let no_rows = Condition::Missing(TAG_ROWS.into());
        table.update(&update.set(path(), text(new)).only_if(no_rows)).await.map(|_| ())
    } else {
        let update = if held { update.remove(path()) } else { update };
        let row_unchanged = match old {
            // What is in a row does not count beside what is in the document.
            _ if held => Condition::All(Vec::new()),
            Some(old) => Condition::Equals(ROW_VALUE.into(), text(old)),
            None => Condition::item_missing(),
        };
        let row = row(document.tag_row(&tag.into()), tag, new);
        table.transact(&[Write::Update(update.set(TAG_ROWS, number(1))), Write::Put(row, row_unchanged)]).await
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(Failure::Refused { .. } | Failure::Cancelled(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}
