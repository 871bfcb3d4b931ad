//! Tags that contain a JSON list and support concurrent additions.

use crate::attributes::{ROW_VALUE, TAG_ROWS, TAGS};
use crate::entries;
use mlflow_api::json::read_value;
use mlflow_api::{Error, Result, python};
use serde_json::Value;
use table::{Condition, Failure, Item, Table, Update, Write, number, text};

use crate::documents::{Document, row};

/// Adds an element to the list in a document's tag. An element that is already in the list is not
/// added again, so the call may be repeated. Takes two requests, or four if the document has rows
/// of tags.
///
/// # Errors
/// Returns the document's own errors.
pub async fn append_to_tag(table: &Table, document: &impl Document, tag: &str, element: &Value) -> Result<()> {
    let mut attempts = table.attempts("a tag");
    loop {
        attempts.next().await?;
        let writes = appended_to_tag(table, document, tag, element).await?;
        let outcome = match writes.as_slice() {
            [] => return Ok(()),
            [Write::Update(update)] => table.apply(update).await,
            writes => table.transact(writes).await,
        };
        match outcome {
            Ok(()) => return Ok(()),
            Err(Failure::Refused { .. } | Failure::Cancelled(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

/// Returns the writes that add an element to the list in a document's tag, on condition that the
/// tag has not been changed in the meantime. Returns no writes if the element is already in the
/// list, and one or two otherwise. Takes one request, or two if the document has rows of tags.
///
/// # Errors
/// Returns the document's own errors, and `INVALID_PARAMETER_VALUE` if the tag's value is not a
/// list.
pub async fn appended_to_tag(
    table: &Table,
    document: &impl Document,
    tag: &str,
    element: &Value,
) -> Result<Vec<Write>> {
    let item = table.get(&document.key()).await?;
    document.check(item.as_ref())?;
    let item = item.unwrap_or_default();
    let row = if item.has(TAG_ROWS) { table.get(&document.tag_row(&tag.into())).await? } else { None };
    let all = entries(&item, TAGS, row.as_slice())?;
    let old = all.iter().find(|(key, _)| key == tag).map(|(_, value)| value.as_str());
    let mut list: Vec<Value> = match old {
        Some(old) if !old.is_empty() => match read_value(old.as_bytes()) {
            Ok(Value::Array(list)) => list,
            _ => return Err(Error::invalid(format!("The value of the tag {tag} is not a JSON list."))),
        },
        _ => Vec::new(),
    };
    if list.contains(element) {
        return Ok(Vec::new());
    }
    list.push(element.clone());
    Ok(swapped(document, &item, tag, old, &python::json_spaced(&Value::Array(list))))
}

/// Returns the writes that replace a tag's value on condition that it is still the old one.
fn swapped(document: &impl Document, item: &Item, tag: &str, old: Option<&str>, new: &str) -> Vec<Write> {
    let path = || (TAGS, tag);
    let held = item.map(TAGS).is_some_and(|tags| tags.contains_key(tag));
    let unchanged = match old {
        Some(old) if held => Condition::Equals(path().into(), text(old)),
        _ => Condition::Missing(path().into()),
    };
    let update = document.finished(Update::new(document.key())).only_if(document.writable()).only_if(unchanged);
    if new.len() <= document.inline_value() && !item.has(TAG_ROWS) {
        let no_rows = Condition::Missing(TAG_ROWS.into());
        return vec![Write::Update(update.set(path(), text(new)).only_if(no_rows))];
    }
    let update = if held { update.remove(path()) } else { update };
    let row_unchanged = match old {
        // The tag is in the document, so its row does not matter: a value in the document takes
        // precedence.
        _ if held => Condition::Always,
        Some(old) => Condition::Equals(ROW_VALUE.into(), text(old)),
        None => Condition::item_missing(),
    };
    let row = row(document.tag_row(&tag.into()), tag, new);
    vec![Write::Update(update.set(TAG_ROWS, number(1))), Write::Put(row, row_unchanged)]
}
