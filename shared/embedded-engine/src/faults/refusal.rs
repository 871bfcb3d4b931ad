//! Errors of DynamoDB that the engine never answers with.

use std::io;

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use crate::wire::{self, Answer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Throttled,
    OverProvisionedThroughput,
    Conflict,
    Cancelled,
}

/// How DynamoDB may refuse a call, if it is one that meets faults.
pub(super) fn refusals(operation: &str) -> &'static [Refusal] {
    use Refusal::{Cancelled, Conflict, OverProvisionedThroughput, Throttled};
    match operation {
        "GetItem" | "Query" | "Scan" | "BatchGetItem" | "BatchWriteItem" => &[Throttled, OverProvisionedThroughput],
        "PutItem" | "UpdateItem" | "DeleteItem" => &[Throttled, OverProvisionedThroughput, Conflict],
        "TransactGetItems" | "TransactWriteItems" => &[Throttled, OverProvisionedThroughput, Cancelled],
        _ => &[],
    }
}

/// The turn in which a call is refused for a conflict, if it may be.
pub(super) fn conflict(operation: &str) -> Option<u64> {
    let is_conflict = |refusal: &Refusal| matches!(refusal, Refusal::Conflict | Refusal::Cancelled);
    refusals(operation).iter().position(is_conflict).and_then(|turn| u64::try_from(turn).ok())
}

/// Whether a call of this operation is about several items. DynamoDB may leave some of them for
/// later.
pub(super) fn is_batch(operation: &str) -> bool {
    matches!(operation, "BatchGetItem" | "BatchWriteItem")
}

/// The answer to the refused call that has this turn.
pub(super) async fn refuse(operation: &str, turn: u64, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let refusals = refusals(operation);
    let body = match refusals[index(turn, refusals.len())] {
        Refusal::Throttled => json!({
            "__type": "com.amazon.coral.availability#ThrottlingException",
            "message": "Rate of requests exceeds the allowed throughput.",
        }),
        Refusal::OverProvisionedThroughput => json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message": "The level of configured provisioned throughput for the table was exceeded.",
        }),
        Refusal::Conflict => json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
            "message": "Transaction is ongoing for the item",
        }),
        Refusal::Cancelled => {
            let (_, transaction) = wire::read(request).await?;
            cancelled(transaction["TransactItems"].as_array().map_or(0, Vec::len), turn)
        }
    };
    Answer { status: 400, body: body.to_string() }.into_sdk_response()
}

/// One of the items is in conflict, each time another.
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

/// The caller's view of a server that nobody listens for.
pub(super) fn disconnected() -> Result<HttpResponse, ConnectorError> {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
    Err(ConnectorError::io(refused.into()))
}

/// The answer to a call that a policy does not allow.
pub(super) fn denied() -> Result<HttpResponse, ConnectorError> {
    let body = json!({
        "__type": "com.amazon.coral.service#AccessDeniedException",
        "message": "User is not authorized to perform this operation",
    });
    Answer { status: 400, body: body.to_string() }.into_sdk_response()
}

/// The caller's view of an executed call whose answer is lost.
pub(super) fn lost(turn: u64) -> Result<HttpResponse, ConnectorError> {
    if turn.is_multiple_of(2) {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "the answer was lost");
        return Err(ConnectorError::io(reset.into()));
    }
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
        "message": "Internal server error",
    });
    Answer { status: 500, body: body.to_string() }.into_sdk_response()
}

fn index(turn: u64, length: usize) -> usize {
    usize::try_from(turn).unwrap_or_default() % length
}
