//! DynamoDB's error responses to requests that exceed a limit.

use serde_json::{Value, json};

use crate::aws_json::EngineResponse;

const THROTTLED: &str = "Throughput exceeds the current capacity of your table or index. Please try again shortly.";
const CONFLICT: &str = "Transaction is ongoing for the item";
const TOO_LARGE: &str = "Collection size exceeded.";
/// Message for an item that is too large together with its entries in local indexes. DynamoDB's
/// message for this case is undocumented, so its message for an item that is too large by itself is
/// used.
pub(super) const ITEM_TOO_LARGE: &str = "Item size has exceeded the maximum allowed size";

/// Returns an error response with this code.
fn refused(code: &str, message: &str) -> EngineResponse {
    let body = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message });
    EngineResponse { status: 400, body: body.to_string() }
}

/// Returns the response to a request that finds no units left in its partition, for a table with
/// on-demand billing.
pub(super) fn throttled() -> EngineResponse {
    refused("ThrottlingException", THROTTLED)
}

/// Returns the response to a batch if none of its entries can be processed
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>).
pub(super) fn batch_throttled() -> EngineResponse {
    refused("ProvisionedThroughputExceededException", "The level of configured provisioned throughput was exceeded.")
}

/// Returns the response to an invalid request.
pub(super) fn invalid(message: &str) -> EngineResponse {
    let body = json!({ "__type": "com.amazon.coral.validate#ValidationException", "message": message });
    EngineResponse { status: 400, body: body.to_string() }
}

/// Returns the response to a write to an item that a transaction in flight holds.
pub(super) fn conflict() -> EngineResponse {
    refused("TransactionConflictException", CONFLICT)
}

/// Returns the response to a write that would make an item collection grow beyond its limit.
pub(super) fn collection_too_large() -> EngineResponse {
    refused("ItemCollectionSizeLimitExceededException", TOO_LARGE)
}

/// The reason why a part of a transaction cancelled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartRefusal {
    None,
    Throttled,
    Conflict,
    CollectionTooLarge,
    ItemTooLarge,
}

impl PartRefusal {
    /// Returns the code and message, as listed in
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>.
    fn texts(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::None => ("None", None),
            Self::Throttled => ("ThrottlingError", Some(THROTTLED)),
            Self::Conflict => ("TransactionConflict", Some(CONFLICT)),
            Self::CollectionTooLarge => ("ItemCollectionSizeLimitExceeded", Some(TOO_LARGE)),
            Self::ItemTooLarge => ("ValidationError", Some(ITEM_TOO_LARGE)),
        }
    }
}

/// Returns the response to a cancelled transaction, with one reason per part, in the order of the
/// parts.
pub(super) fn cancelled(reasons: &[PartRefusal]) -> EngineResponse {
    let codes: Vec<_> = reasons.iter().map(|reason| reason.texts().0).collect();
    let reasons: Vec<_> = reasons
        .iter()
        .map(|reason| match reason.texts() {
            (code, None) => json!({ "Code": code }),
            (code, Some(message)) => json!({ "Code": code, "Message": message }),
        })
        .collect::<Vec<Value>>();
    let codes = codes.join(", ");
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"),
        "CancellationReasons": reasons,
    });
    EngineResponse { status: 400, body: body.to_string() }
}
