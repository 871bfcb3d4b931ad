//! Requests for single items, and queries: each concerns one partition.

use std::slice::from_ref;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::collection_size::SIZE_REPORT_FIELD;
use super::limited_engine::{LimitedEngine, read};
use super::requested_items::{self, RequestedItem};
use super::throughput::CapacityKind;
use super::{consumed_capacity, error_responses, item_bytes};
use crate::aws_json::EngineResponse;

impl LimitedEngine {
    pub(super) async fn single(&self, operation: &str, mut body: Value) -> Result<EngineResponse, ConnectorError> {
        let table = body["TableName"].as_str().unwrap_or_default();
        let schema = self.schema(table).await?;
        let named = requested_items::of_single(&body).map(|item| RequestedItem::of(table, item, &schema.keys));
        let partition =
            named.as_ref().map_or_else(|| requested_items::of_query(&body, &schema), |named| named.partition.clone());
        let direction = CapacityKind::of(operation);
        if !self.admits(&partition, direction) {
            return Ok(error_responses::throttled());
        }
        let written = named.filter(|_| direction == CapacityKind::Write);
        let held = written.as_ref().map(|written| self.in_flight.write(written.item_key()));
        if let Some(None) = held {
            return Ok(error_responses::conflict());
        }
        if let Some(written) = &written {
            let (named, parts) = (from_ref(written), from_ref(&body));
            if let Some(refused) = self.too_large(operation, &body, named, parts).await? {
                return Ok(refused);
            }
            if let Some(refused) = self.outgrown(operation, &body, named).await? {
                return Ok(refused);
            }
        }
        let is_wanted = consumed_capacity::ask(&mut body);
        let mut answer = self.run(operation, &body).await?;
        if direction == CapacityKind::Write {
            self.last(held).await;
        }
        let mut read = read(&answer)?;
        let units = if answer.status == 200 { consumed_capacity::units(&read, direction) } else { of_refusal(&read) };
        self.charge(&partition, direction, units);
        if answer.status == 200 {
            if !is_wanted {
                consumed_capacity::drop(&mut read);
            }
            if let Some(written) = &written
                && let Some(report) = self.size_report(&body, &written.table, &written.partition).await?
            {
                read[SIZE_REPORT_FIELD] = report;
            }
            answer.body = read.to_string();
        }
        Ok(answer)
    }
}

/// Returns the units of a failed request. A write whose condition does not hold consumes the units
/// of writing the existing item. If the response does not contain the item, one unit is assumed.
/// Other errors consume nothing.
fn of_refusal(answer: &Value) -> f64 {
    let is_refusal = answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException"));
    if is_refusal { item_bytes::write_units(item_bytes::of_item(&answer["Item"])) } else { 0.0 }
}
