//! Errors of DynamoDB that the engine itself never returns.

use std::io;

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use crate::aws_json::{self, EngineResponse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InjectedRefusal {
    Throttled,
    OverProvisionedThroughput,
    Conflict,
    Cancelled,
}

/// Why a call has no access to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    /// A policy does not allow it.
    NoPermission,
    /// The table's encryption key is disabled.
    KeyDisabled,
}

/// Returns the ways in which DynamoDB may refuse a call. Empty for operations that are not subject
/// to faults.
pub(super) fn refusals(operation: &str) -> &'static [InjectedRefusal] {
    use InjectedRefusal::{Cancelled, Conflict, OverProvisionedThroughput, Throttled};
    match operation {
        "GetItem" | "Query" | "Scan" | "BatchGetItem" | "BatchWriteItem" => &[Throttled, OverProvisionedThroughput],
        "PutItem" | "UpdateItem" | "DeleteItem" => &[Throttled, OverProvisionedThroughput, Conflict],
        "TransactGetItems" | "TransactWriteItems" => &[Throttled, OverProvisionedThroughput, Cancelled],
        _ => &[],
    }
}

/// Returns the smallest `turn` for which [`refuse`] simulates a conflict of this operation. `None`
/// if the operation cannot conflict.
pub(super) fn conflict(operation: &str) -> Option<u64> {
    let is_conflict =
        |refusal: &InjectedRefusal| matches!(refusal, InjectedRefusal::Conflict | InjectedRefusal::Cancelled);
    refusals(operation).iter().position(is_conflict).and_then(|turn| u64::try_from(turn).ok())
}

/// Checks whether an operation is a batch. DynamoDB may leave some items of a batch unprocessed.
pub(super) fn is_batch(operation: &str) -> bool {
    matches!(operation, "BatchGetItem" | "BatchWriteItem")
}

/// Returns the response to a refused call. `turn` selects one of the alternating reasons.
pub(super) async fn refuse(operation: &str, turn: u64, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let refusals = refusals(operation);
    let body = match refusals[index(turn, refusals.len())] {
        InjectedRefusal::Throttled => json!({
            "__type": "com.amazon.coral.availability#ThrottlingException",
            "message": "Rate of requests exceeds the allowed throughput.",
        }),
        InjectedRefusal::OverProvisionedThroughput => json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message": "The level of configured provisioned throughput for the table was exceeded.",
        }),
        InjectedRefusal::Conflict => json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
            "message": "Transaction is ongoing for the item",
        }),
        InjectedRefusal::Cancelled => {
            let (_, transaction) = aws_json::read(request).await?;
            cancelled(transaction["TransactItems"].as_array().map_or(0, Vec::len), turn)
        }
    };
    EngineResponse { status: 400, body: body.to_string() }.into_sdk_response()
}

/// Returns a cancellation in which one item is in conflict. `turn` selects the item.
fn cancelled(items: usize, turn: u64) -> Value {
    let mut reasons = vec![json!({ "Code": "None" }); items];
    let mut codes = vec!["None"; items];
    if items > 0 {
        let conflicting = index(turn, items);
        reasons[conflicting] =
            json!({ "Code": "TransactionConflict", "Message": "Transaction is ongoing for the item" });
        codes[conflicting] = "TransactionConflict";
    }
    let codes = codes.join(", ");
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"),
        "CancellationReasons": reasons,
    })
}

/// Returns the error that the caller gets when no server listens at the address.
pub(super) fn disconnected() -> Result<HttpResponse, ConnectorError> {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
    Err(ConnectorError::io(refused.into()))
}

/// Returns the response to a call without access to the table.
pub(super) fn denied(denial: Denial) -> Result<HttpResponse, ConnectorError> {
    let (kind, message) = match denial {
        Denial::NoPermission => {
            ("com.amazon.coral.service#AccessDeniedException", "User is not authorized to perform this operation")
        }
        Denial::KeyDisabled => ("com.amazonaws.dynamodb.v20120810#KMSDisabledException", "The key is disabled"),
    };
    EngineResponse { status: 400, body: json!({ "__type": kind, "message": message }).to_string() }.into_sdk_response()
}

/// Returns the error that the caller gets for an executed call whose response is lost. `turn`
/// selects one of the alternating causes.
pub(super) fn lost(turn: u64) -> Result<HttpResponse, ConnectorError> {
    if turn.is_multiple_of(2) {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "the response was lost");
        return Err(ConnectorError::io(reset.into()));
    }
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
        "message": "Internal server error",
    });
    EngineResponse { status: 500, body: body.to_string() }.into_sdk_response()
}

fn index(turn: u64, length: usize) -> usize {
    usize::try_from(turn).unwrap_or_default() % length
}
