//! Changes documents.
//!
//! Updates are optimistic: the first one is sent with conditions, without reading the document. If
//! it is refused, the response contains the current document, and the next attempt is planned from
//! it.

use crate::attributes::{FULL, PARAM_ROWS, PARAMS, TAGS};
use crate::entry_name;
use mlflow_api::Result;
use table::{Condition, Failure, Item, Table, Update, Write, number, text};

use crate::documents::document::{Document, DocumentChange, MAX_INLINE_VALUE_BYTES};
use crate::documents::entries::{MAX_MAPS_BYTES, last_of_each, maps_size};
use crate::documents::plan::{DocumentPlan, MAX_UPDATE_ENTRIES, plan_change};

/// Maximum size, in bytes, of changes that are first tried without reading the document. A larger
/// change is planned from the document.
const MAX_OPTIMISTIC_BYTES: usize = 16 << 10;
/// Maximum number of params for which an optimistic update checks that an existing value equals the
/// new one. With more params, the update only checks that the params are new, because an expression
/// may have at most 4 KB.
const MAX_CHECKED_PARAMS: usize = 20;

impl DocumentChange {
    fn bytes(&self) -> usize {
        self.params.iter().chain(&self.tags).map(|(key, value)| key.len() + value.len()).sum()
    }

    fn is_sure_to_fit(&self) -> bool {
        let values = || self.params.iter().chain(&self.tags).map(|(_, value)| value.len());
        let few = self.params.len().max(self.tags.len()) <= MAX_UPDATE_ENTRIES;
        few && values().all(|bytes| bytes <= MAX_INLINE_VALUE_BYTES) && self.bytes() <= MAX_OPTIMISTIC_BYTES
    }
}

/// Changes a document and returns its new state. Takes one request if no condition refuses it.
///
/// # Errors
/// Returns the document's own errors, and an error for params that have other values already.
/// Nothing is written in that case.
pub async fn change(table: &Table, document: &impl Document, change: DocumentChange) -> Result<Item> {
    change_with(table, document, change, &[]).await
}

/// Changes a document and sends other writes in the transaction that completes the change, even if
/// the document already is in the requested state. Without other writes, this is [`change()`]. With
/// other writes, the change takes one request more.
///
/// # Errors
/// Returns the errors of [`change()`].
pub async fn change_with(
    table: &Table,
    document: &impl Document,
    change: DocumentChange,
    others: &[Write],
) -> Result<Item> {
    let mut change = change;
    let mut seen = None;
    if !change.is_sure_to_fit() {
        seen = table.get(&document.key()).await?;
        document.check(seen.as_ref())?;
    }
    let mut attempts = table.attempts("a document");
    loop {
        attempts.next().await?;
        let plan = match &seen {
            None => optimistic(document, &change),
            Some(item) => plan_change(table, document, &change, item).await?,
        };
        let others = if plan.rest.is_none() { others } else { &[] };
        let nothing_to_do = plan.update.is_empty() && plan.rows.is_empty() && others.is_empty();
        if let Some(item) = seen.take_if(|_| nothing_to_do) {
            return Ok(item);
        }
        match carry_out(table, document, &plan, others).await {
            Ok(item) => {
                let Some(rest) = plan.rest else { return close_if_full(table, item).await };
                change = rest;
                seen = Some(item);
                attempts.progressed();
            }
            Err(Failure::Refused { item, .. }) => {
                document.check(item.as_ref())?;
                seen = item;
            }
            // Another request changed the document between the read and the transaction, or the
            // document has no room for entries that were not expected to need rows.
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
}

async fn carry_out(
    table: &Table,
    document: &impl Document,
    plan: &DocumentPlan,
    others: &[Write],
) -> table::Result<Item> {
    let has_update = !plan.update.is_empty();
    let update = if has_update { document.finished(plan.update.clone()) } else { plan.update.clone() };
    if plan.rows.is_empty() && others.is_empty() {
        return table.update(&update).await;
    }
    let of_document = if has_update {
        Write::Update(update)
    } else {
        Write::Check(document.key(), Condition::item_exists().and(document.writable()))
    };
    let rows = plan.rows.iter().map(|row| Write::Put(row.clone(), Condition::Always));
    let writes: Vec<_> = std::iter::once(of_document).chain(rows).chain(others.iter().cloned()).collect();
    table.transact(&writes).await?;
    let item = table.get(plan.update.key()).await?;
    item.ok_or_else(|| Failure::Unexpected("a document disappeared while it was being changed".to_owned()))
}

/// Sets the `full` flag of a document whose maps exceed their size limit.
async fn close_if_full(table: &Table, item: Item) -> Result<Item> {
    let Some(key) = item.key().filter(|_| !item.has(FULL) && maps_size(&item) > MAX_MAPS_BYTES) else {
        return Ok(item);
    };
    match table.update(&Update::new(key).set(FULL, number(1))).await {
        // A document that has been deleted in the meantime needs no flag.
        Err(Failure::Refused { .. }) => Ok(item),
        outcome => Ok(outcome?),
    }
}

/// Builds the update for a document that has not been read: everything is stored inline, and the
/// update is refused if any condition fails.
fn optimistic(document: &impl Document, change: &DocumentChange) -> DocumentPlan {
    let mut update = Update::new(document.key()).only_if(document.writable());
    for (attribute, value) in &change.set {
        update = update.set(*attribute, value.clone());
    }
    for attribute in &change.remove {
        update = update.remove(*attribute);
    }
    for (attribute, value) in &change.add {
        update = update.add(attribute.as_str(), value.clone());
    }
    let equality_too = change.params.len() <= MAX_CHECKED_PARAMS;
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
    DocumentPlan { update, rows: Vec::new(), rest: None }
}
