//! Removal of a document's tags.

use crate::attributes::{TAG_ROWS, TAGS};
use crate::entry_name;
use key_schema::Name;
use mlflow_api::{Error, Result};
use table::{ChangePlan, Condition, Failure, Item, Table, Update, Write};

use crate::documents::document::Document;

/// Removes a tag, and returns whether it existed. Takes one request if the document has no rows of
/// tags.
pub async fn remove_tag(table: &Table, document: &impl Document, key: &str) -> Result<bool> {
    let name = entry_name(key);
    let path = || (TAGS, name.as_ref());
    let alone = Update::new(document.key())
        .remove(path())
        .only_if(document.writable())
        .only_if(Condition::Exists(path().into()))
        .only_if(Condition::Missing(TAG_ROWS.into()));
    let alone = document.finished(alone);
    let (item, after_lost_answer) = match table.apply(&alone).await {
        Ok(()) => return Ok(true),
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
    let writes = [Write::Update(document.finished(removal)), Write::Delete(row_key, Condition::Always)];
    match table.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(Failure::Cancelled(_)) => {
            document.check(table.get(&document.key()).await?.as_ref())?;
            Err(Error::unavailable("a document changed while a tag was removed"))
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Removes a tag, if it exists, and sends other writes in the same transaction, which is sent even
/// if the tag does not exist. Takes two requests, or one if the caller has just read the document
/// and passes it as `item`.
pub async fn remove_tag_with(
    table: &Table,
    document: &impl Document,
    item: Option<&Item>,
    key: &str,
    others: &[Write],
) -> Result<()> {
    let name = entry_name(key);
    let name = name.as_ref();
    table
        .change("a document", |refusal| async move {
            let item = match item.filter(|_| refusal.0.is_empty()) {
                Some(item) => Some(item.clone()),
                None => match refusal.item(0) {
                    Some(item) => Some(item),
                    None => table.get(&document.key()).await?,
                },
            };
            document.check(item.as_ref())?;
            let item = item.unwrap_or_default();
            let is_unchanged = document.writable().and(Condition::unchanged(&item, TAG_ROWS));
            let mut writes = Vec::new();
            if item.has(TAG_ROWS) || item.map(TAGS).is_some_and(|tags| tags.contains_key(name)) {
                let removal = Update::new(document.key()).remove((TAGS, name)).only_if(is_unchanged);
                writes.push(Write::Update(document.finished(removal)));
            } else {
                writes.push(Write::Check(document.key(), Condition::item_exists().and(is_unchanged)));
            }
            if item.has(TAG_ROWS) {
                writes.push(Write::Delete(document.tag_row(&Name::from(key)), Condition::Always));
            }
            writes.extend_from_slice(others);
            Ok::<_, Error>(ChangePlan::Write(writes, ()))
        })
        .await
}
