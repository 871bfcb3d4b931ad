//! Partial execution of batches. DynamoDB may leave a part of any batch unprocessed.

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Map, Value};

use crate::aws_json;
use crate::batch_json::{add, entries, unprocessed};

/// Executes the first half of a batch, and reports the second half as unprocessed in the
/// response.
pub(super) async fn execute_half(
    inner: &SharedHttpConnector,
    request: HttpRequest,
) -> Result<HttpResponse, ConnectorError> {
    let unprocessed = unprocessed(aws_json::operation(&request));
    let (request, mut batch) = aws_json::read(request).await?;
    let held_back = hold_back(&mut batch);
    let response = inner.call(aws_json::with_request(request, &batch)).await?;
    if !response.status().is_success() {
        return Ok(response);
    }
    let (response, mut answer) = aws_json::read_answer(response).await?;
    for (table, rest) in held_back {
        add(&mut answer[unprocessed], table, rest);
    }
    Ok(aws_json::with_answer(response, &answer))
}

/// Removes the second half of each table's entries from a batch and returns it. At least one entry
/// of each table stays.
fn hold_back(batch: &mut Value) -> Map<String, Value> {
    let mut held_back = Map::new();
    let Some(tables) = batch["RequestItems"].as_object_mut() else { return held_back };
    for (table, request) in tables {
        let Some(all) = entries(request) else { continue };
        let rest = all.split_off(all.len().div_ceil(2));
        if !rest.is_empty() {
            // A copy of the request, including its projection, to which the unprocessed keys are
            // added.
            let mut again = request.clone();
            if let Some(entries) = entries(&mut again) {
                *entries = rest;
            }
            held_back.insert(table.clone(), again);
        }
    }
    held_back
}
