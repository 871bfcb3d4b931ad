//! Requests for single items, and queries: each concerns one partition.

use std::slice::from_ref;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::collections::SIZES;
use super::limited::{Limited, read};
use super::throughput::Direction;
use super::touch::{self, Named};
use super::{consumed, refusal, size};
use crate::wire::Answer;

impl Limited {
    pub(super) async fn single(&self, operation: &str, mut body: Value) -> Result<Answer, ConnectorError> {
        let table = body["TableName"].as_str().unwrap_or_default();
        let schema = self.schema(table).await?;
        let named = touch::of_single(&body).map(|item| Named::of(table, item, &schema.keys));
        let partition = named.as_ref().map_or_else(|| touch::of_query(&body, &schema), |named| named.partition.clone());
        let direction = Direction::of(operation);
        if !self.admits(&partition, direction) {
            return Ok(refusal::throttled());
        }
        let written = named.filter(|_| direction == Direction::Write);
        let held = written.as_ref().map(|written| self.in_flight.write(written.item_key()));
        if let Some(None) = held {
            return Ok(refusal::conflict());
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
        let is_wanted = consumed::ask(&mut body);
        let mut answer = self.run(operation, &body).await?;
        if direction == Direction::Write {
            self.last(held).await;
        }
        let mut read = read(&answer)?;
        let units = if answer.status == 200 { consumed::units(&read, direction) } else { of_refusal(&read) };
        self.charge(&partition, direction, units);
        if answer.status == 200 {
            if !is_wanted {
                consumed::drop(&mut read);
            }
            if let Some(written) = &written
                && let Some(report) = self.size_report(&body, &written.table, &written.partition).await?
            {
                read[SIZES] = report;
            }
            answer.body = read.to_string();
        }
        Ok(answer)
    }
}

/// Returns the units of a failed request. A write whose condition does not hold consumes the units
/// of writing the existing item, which are only known if the response contains it. Other errors
/// consume nothing.
fn of_refusal(answer: &Value) -> f64 {
    let is_refusal = answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException"));
    if is_refusal { size::write_units(size::of_item(&answer["Item"])) } else { 0.0 }
}
