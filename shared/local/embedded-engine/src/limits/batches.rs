//! Batches. The parts of a batch that address different partitions are processed or left
//! unprocessed independently.

use std::collections::BTreeSet;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Map, Value, json};

use super::collection_size::SIZE_REPORT_FIELD;
use super::limited_engine::{LimitedEngine, read};
use super::requested_items::{self, RequestedItem};
use super::throughput::CapacityKind;
use super::{consumed_capacity, error_responses, item_bytes};
use crate::aws_json::EngineResponse;
use crate::batch_json::{add, entries, unprocessed};

/// Maximum size of one partition's items in a response, in bytes: "more than 1MB per partition is
/// requested"
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>).
const MAX_READ_BYTES: usize = 1 << 20;

/// The part of a batch request that addresses one partition of one table.
struct PartitionBatch {
    table: String,
    partition: String,
    /// The batch's request for the table, without any entries.
    empty: Value,
    entries: Vec<(RequestedItem, Value)>,
}

impl PartitionBatch {
    /// Returns the request for the table with only these entries.
    fn request<'a>(&self, some: impl IntoIterator<Item = &'a (RequestedItem, Value)>) -> Value {
        let mut request = self.empty.clone();
        if let Some(entries) = entries(&mut request) {
            entries.extend(some.into_iter().map(|(_, entry)| entry.clone()));
        }
        request
    }
}

/// The response to a batch, assembled from the responses for its partitions.
struct BatchResponse {
    answer: Value,
    unprocessed: &'static str,
}

impl BatchResponse {
    fn leave<'a>(&mut self, part: &PartitionBatch, some: impl IntoIterator<Item = &'a (RequestedItem, Value)>) {
        add(&mut self.answer[self.unprocessed], part.table.clone(), part.request(some));
    }

    /// Merges the response for one partition into the batch's response.
    fn merge(&mut self, mut answer: Value) {
        consumed_capacity::add(&mut self.answer, &answer);
        for (table, rest) in taken(&mut answer, self.unprocessed) {
            add(&mut self.answer[self.unprocessed], table, rest);
        }
        for lists in ["Responses", SIZE_REPORT_FIELD] {
            for (table, list) in taken(&mut answer, lists) {
                let all = &mut self.answer[lists][&table];
                match (all.as_array_mut(), list) {
                    (Some(all), Value::Array(list)) => all.extend(list),
                    (_, list) => *all = list,
                }
            }
        }
    }
}

fn taken(answer: &mut Value, name: &str) -> Map<String, Value> {
    match answer[name].take() {
        Value::Object(tables) => tables,
        _ => Map::new(),
    }
}

impl LimitedEngine {
    pub(super) async fn batch(&self, operation: &str, mut body: Value) -> Result<EngineResponse, ConnectorError> {
        let direction = CapacityKind::of(operation);
        // If the batch cannot be split, the engine rejects it as a whole.
        let Some(parts) = self.parts(operation, &body).await? else { return self.run(operation, &body).await };
        let is_wanted = consumed_capacity::ask(&mut body);
        let unprocessed = unprocessed(operation);
        let mut whole = BatchResponse { answer: json!({ unprocessed: {} }), unprocessed };
        if direction == CapacityKind::Read {
            whole.answer["Responses"] = json!({});
        }
        let mut is_throttled = true;
        for part in parts {
            if !self.admits(&part.partition, direction) {
                whole.leave(&part, &part.entries);
                continue;
            }
            is_throttled = false;
            let refused = match direction {
                CapacityKind::Read => self.read_part(&mut body, &part, &mut whole).await?,
                CapacityKind::Write => self.write_part(&mut body, &part, &mut whole).await?,
            };
            if let Some(refused) = refused {
                return Ok(refused);
            }
        }
        if is_throttled {
            return Ok(error_responses::batch_throttled());
        }
        if !is_wanted {
            consumed_capacity::drop(&mut whole.answer);
        }
        Ok(EngineResponse::ok(whole.answer.to_string()))
    }

    /// Reads as many items of a partition as fit into one response.
    async fn read_part(
        &self,
        body: &mut Value,
        part: &PartitionBatch,
        whole: &mut BatchResponse,
    ) -> Result<Option<EngineResponse>, ConnectorError> {
        let mut some = part.entries.as_slice();
        loop {
            body["RequestItems"] = json!({ &part.table: part.request(some) });
            let answer = self.run("BatchGetItem", body).await?;
            if answer.status != 200 {
                return Ok(Some(answer));
            }
            let answer = read(&answer)?;
            let fitting = fitting(some, answer["Responses"][&part.table].as_array().map_or(&[], Vec::as_slice));
            if fitting == some.len() {
                self.charge(&part.partition, CapacityKind::Read, consumed_capacity::units(&answer, CapacityKind::Read));
                whole.merge(answer);
                break;
            }
            some = &some[..fitting];
        }
        let rest = &part.entries[some.len()..];
        if !rest.is_empty() {
            whole.leave(part, rest);
        }
        Ok(None)
    }

    /// Writes to a partition, except to items of transactions in flight, which stay unprocessed.
    async fn write_part(
        &self,
        body: &mut Value,
        part: &PartitionBatch,
        whole: &mut BatchResponse,
    ) -> Result<Option<EngineResponse>, ConnectorError> {
        let (mut held, mut free, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for entry in &part.entries {
            match self.in_flight.write(entry.0.item_key()) {
                Some(one) => {
                    held.push(one);
                    free.push(entry);
                }
                None => rest.push(entry),
            }
        }
        if !rest.is_empty() {
            whole.leave(part, rest);
        }
        if free.is_empty() {
            return Ok(None);
        }
        body["RequestItems"] = json!({ &part.table: part.request(free.iter().copied()) });
        let (named, entries): (Vec<_>, Vec<_>) = free.into_iter().cloned().unzip();
        if let Some(refused) = self.too_large("BatchWriteItem", body, &named, &entries).await? {
            return Ok(Some(refused));
        }
        if let Some(refused) = self.outgrown("BatchWriteItem", body, &named).await? {
            return Ok(Some(refused));
        }
        let answer = self.run("BatchWriteItem", body).await?;
        self.last(held).await;
        if answer.status != 200 {
            return Ok(Some(answer));
        }
        let mut answer = read(&answer)?;
        self.charge(&part.partition, CapacityKind::Write, consumed_capacity::units(&answer, CapacityKind::Write));
        if let Some(report) = self.size_report(body, &part.table, &part.partition).await? {
            answer[SIZE_REPORT_FIELD] = json!({ &part.table: [report] });
        }
        whole.merge(answer);
        Ok(None)
    }

    /// Splits a batch by partitions, in the order in which it names them. Returns `None` for a
    /// batch that is empty, has too many entries or names a key twice.
    async fn parts(&self, operation: &str, body: &Value) -> Result<Option<Vec<PartitionBatch>>, ConnectorError> {
        let most = if operation == "BatchGetItem" { 100 } else { 25 };
        let (mut parts, mut seen) = (Vec::<PartitionBatch>::new(), BTreeSet::new());
        for (table, request) in body["RequestItems"].as_object().into_iter().flatten() {
            let schema = self.schema(table).await?;
            let mut empty = request.clone();
            for entry in std::mem::take(entries(&mut empty).unwrap_or(&mut Vec::new())) {
                let named = RequestedItem::of(table, requested_items::of_batch(&entry), &schema.keys);
                if !seen.insert(named.item_key()) {
                    return Ok(None);
                }
                let is_same = |part: &&mut PartitionBatch| part.table == *table && part.partition == named.partition;
                if let Some(part) = parts.iter_mut().find(is_same) {
                    part.entries.push((named, entry));
                } else {
                    let (partition, empty) = (named.partition.clone(), empty.clone());
                    parts.push(PartitionBatch {
                        table: table.clone(),
                        partition,
                        empty,
                        entries: vec![(named, entry)],
                    });
                }
            }
        }
        Ok((!seen.is_empty() && seen.len() <= most).then_some(parts))
    }
}

/// Returns how many of the entries fit into a response with the items that were found for them. The
/// result is at least one.
fn fitting(entries: &[(RequestedItem, Value)], items: &[Value]) -> usize {
    let is_of =
        |item: &Value, key: &Value| key.as_object().into_iter().flatten().all(|(name, value)| item[name] == *value);
    let mut bytes = 0;
    let first_beyond = entries.iter().position(|(named, _)| {
        let size = items.iter().find(|item| is_of(item, &named.key)).map_or(0, item_bytes::of_item);
        let is_beyond = bytes > 0 && bytes + size > MAX_READ_BYTES;
        bytes += size;
        is_beyond
    });
    first_beyond.unwrap_or(entries.len())
}
