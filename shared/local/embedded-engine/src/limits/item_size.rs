//! The size of an item with its entries in local indexes, which is limited to 400 KB, like the size
//! of the item alone
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/LSI.html#LSI.StorageConsiderations>,
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-items>).

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::collection_size::footprint;
use super::error_responses::{self, PartRefusal};
use super::item_bytes;
use super::limited_engine::LimitedEngine;
use super::requested_items::RequestedItem;
use crate::aws_json::EngineResponse;

/// Maximum size of an item with its entries, in bytes.
const MAX_ITEM_BYTES: i64 = 400 * 1_024;
/// If the sizes of the stored item and of the request add up to at most this many bytes, the update
/// cannot make the item too large, even with its index entries.
const SAFE_BYTES: usize = 100 * 1_024;

impl LimitedEngine {
    /// Returns the error for a write that would make an item too large, including its entries in
    /// local indexes. `parts` has the part of the request for each named item: the entries of a
    /// batch or a transaction, or otherwise the request itself.
    pub(super) async fn too_large(
        &self,
        operation: &str,
        body: &Value,
        named: &[RequestedItem],
        parts: &[Value],
    ) -> Result<Option<EngineResponse>, ConnectorError> {
        let mut sizes = Vec::new();
        let mut is_to_be_tried = false;
        for (one, part) in named.iter().zip(parts) {
            let schema = self.schema(&one.table).await?;
            sizes.push(match put(part) {
                Some(item) => footprint(item, &schema),
                None if !schema.local.is_empty() && is_update(operation, part) => {
                    let stored = item_bytes::of_item(&self.item(&one.table, &one.key).await?);
                    is_to_be_tried |= stored + part.to_string().len() > SAFE_BYTES;
                    0
                }
                None => 0,
            });
        }
        if is_to_be_tried && let Some(tried) = self.footprints(operation, body, named).await? {
            sizes = tried.into_iter().map(|(_, after)| after).collect();
        }
        let are_too_large: Vec<_> = sizes.iter().map(|size| *size > MAX_ITEM_BYTES).collect();
        Ok(are_too_large.contains(&true).then(|| match operation {
            "TransactWriteItems" => {
                let reason =
                    |is_too_large: &bool| if *is_too_large { PartRefusal::ItemTooLarge } else { PartRefusal::None };
                error_responses::cancelled(&are_too_large.iter().map(reason).collect::<Vec<_>>())
            }
            _ => error_responses::invalid(error_responses::ITEM_TOO_LARGE),
        }))
    }
}

/// Returns the item that a part of a request puts.
fn put(part: &Value) -> Option<&Value> {
    let items = [&part["Item"], &part["Put"]["Item"], &part["PutRequest"]["Item"]];
    items.into_iter().find(|item| item.is_object())
}

fn is_update(operation: &str, part: &Value) -> bool {
    operation == "UpdateItem" || part["Update"].is_object()
}
