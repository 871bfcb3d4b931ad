//! The size of item collections. A collection consists of all items of one partition key, with
//! their entries in local indexes
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/LSI.html#LSI.ItemCollections.SizeLimit>).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use super::error_responses::PartRefusal;
use super::limited_engine::LimitedEngine;
use super::requested_items::RequestedItem;
use super::schema::TableKeys;
use super::{error_responses, item_bytes};
use crate::Engine;
use crate::aws_json::EngineResponse;

/// Field of a response that reports the sizes of collections.
pub(super) const SIZE_REPORT_FIELD: &str = "ItemCollectionMetrics";
/// Maximum size of an item with its entries in five local indexes, in bytes.
const MAX_FOOTPRINT_BYTES: usize = 6 * 400 * 1_024;

impl LimitedEngine {
    /// Returns the error for a write that would make a collection grow beyond its limit. Writes
    /// that make the collection smaller, or keep its size, pass.
    pub(super) async fn outgrown(
        &self,
        operation: &str,
        body: &Value,
        named: &[RequestedItem],
    ) -> Result<Option<EngineResponse>, ConnectorError> {
        let Some(limit_of) = self.state().collection_limit.clone() else { return Ok(None) };
        let mut limits = BTreeMap::new();
        for one in named {
            if let Some(limit) = limit_of(&one.partition) {
                limits.insert((one.table.clone(), one.partition.clone()), limit);
            }
        }
        let mut rooms = BTreeMap::new();
        for ((table, partition), limit) in limits {
            let room = i64::try_from(limit).unwrap_or(i64::MAX) - self.collection_size(&table, &partition).await?;
            if room < i64::try_from(MAX_FOOTPRINT_BYTES * named.len()).unwrap_or(i64::MAX) {
                rooms.insert((table, partition), room);
            }
        }
        if rooms.is_empty() {
            return Ok(None);
        }
        let Some(growth) = self.growth(operation, body, named).await? else { return Ok(None) };
        for (one, growth) in named.iter().zip(&growth) {
            if let Some(room) = rooms.get_mut(&(one.table.clone(), one.partition.clone())) {
                *room -= growth;
            }
        }
        let is_outgrown = |(one, growth): (&RequestedItem, &i64)| {
            let room = rooms.get(&(one.table.clone(), one.partition.clone()));
            *growth > 0 && room.is_some_and(|room| *room < 0)
        };
        let outgrown: Vec<_> = named.iter().zip(&growth).map(is_outgrown).collect();
        Ok(outgrown.contains(&true).then(|| match operation {
            "TransactWriteItems" => {
                let reason =
                    |outgrown: &bool| if *outgrown { PartRefusal::CollectionTooLarge } else { PartRefusal::None };
                error_responses::cancelled(&outgrown.iter().map(reason).collect::<Vec<_>>())
            }
            _ => error_responses::collection_too_large(),
        }))
    }

    /// Returns DynamoDB's report of the size of a written collection, scaled as if its limit were
    /// 10 GB. `None` if the request does not ask for it, or the collection has no limit.
    pub(super) async fn size_report(
        &self,
        body: &Value,
        table: &str,
        partition: &str,
    ) -> Result<Option<Value>, ConnectorError> {
        let limit = self.state().collection_limit.clone().and_then(|limit_of| limit_of(partition));
        let Some(limit) = limit.filter(|_| body["ReturnItemCollectionMetrics"] == "SIZE") else { return Ok(None) };
        let size = self.collection_size(table, partition).await?;
        let at_least = 10 * size / i64::try_from(limit).unwrap_or(i64::MAX).max(1);
        let name = &self.schema(table).await?.keys.partition;
        Ok(Some(json!({
            "ItemCollectionKey": { name: { "S": partition } },
            "SizeEstimateRangeGB": [at_least, at_least + 1],
        })))
    }

    /// Returns the size reports of all collections that a request wrote to, by table. `None` if
    /// there is nothing to report.
    pub(super) async fn size_reports(
        &self,
        body: &Value,
        written: impl IntoIterator<Item = &RequestedItem>,
    ) -> Result<Option<Value>, ConnectorError> {
        let partitions: BTreeSet<_> = written.into_iter().map(|one| (&one.table, &one.partition)).collect();
        let mut reports = BTreeMap::<_, Vec<_>>::new();
        for (table, partition) in partitions {
            if let Some(report) = self.size_report(body, table, partition).await? {
                reports.entry(table).or_default().push(report);
            }
        }
        Ok((!reports.is_empty()).then(|| json!(reports)))
    }

    /// Returns the size of a collection in bytes.
    pub(super) async fn collection_size(&self, table: &str, partition: &str) -> Result<i64, ConnectorError> {
        let schema = self.schema(table).await?;
        let mut query = json!({
            "TableName": table,
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": { "#p": schema.keys.partition },
            "ExpressionAttributeValues": { ":p": { "S": partition } },
            "ConsistentRead": true,
        });
        let mut sum = 0;
        loop {
            let page = self.read("Query", &query).await?;
            sum += page["Items"].as_array().into_iter().flatten().map(|item| footprint(item, &schema)).sum::<i64>();
            if page["LastEvaluatedKey"].is_null() {
                return Ok(sum);
            }
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
        }
    }

    /// Returns how many bytes each of the named items would grow by. `None` if the request would
    /// fail.
    async fn growth(
        &self,
        operation: &str,
        body: &Value,
        named: &[RequestedItem],
    ) -> Result<Option<Vec<i64>>, ConnectorError> {
        let footprints = self.footprints(operation, body, named).await?;
        Ok(footprints.map(|all| all.into_iter().map(|(before, after)| after - before).collect()))
    }

    /// Returns the size in bytes of each named item with its index entries, before and after a
    /// request. The size after the request is determined by executing it on a copy of the items.
    /// `None` if the request would fail.
    pub(super) async fn footprints(
        &self,
        operation: &str,
        body: &Value,
        named: &[RequestedItem],
    ) -> Result<Option<Vec<(i64, i64)>>, ConnectorError> {
        let mut scratch = self.scratch.lock().await;
        if scratch.is_none() {
            let engine = Engine::memory().map_err(|error| ConnectorError::other(error.into(), None))?;
            *scratch = Some(Self::new(&engine, Arc::new(|| Duration::ZERO)));
        }
        let Some(scratch) = &*scratch else { return Ok(None) };
        let mut before = Vec::new();
        for one in named {
            self.copy_table(scratch, &one.table).await?;
            let item = self.item(&one.table, &one.key).await?;
            if item.is_object() {
                scratch.run("PutItem", &json!({ "TableName": one.table, "Item": item })).await?;
            }
            before.push(footprint(&item, self.schema(&one.table).await?.as_ref()));
        }
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            // The copy has not seen this token, and must execute the request.
            body.remove("ClientRequestToken");
        }
        let outcome = scratch.run(operation, &body).await?;
        let mut footprints = Vec::new();
        for (one, before) in named.iter().zip(before) {
            let item = scratch.item(&one.table, &one.key).await?;
            footprints.push((before, footprint(&item, self.schema(&one.table).await?.as_ref())));
            scratch.run("DeleteItem", &json!({ "TableName": one.table, "Key": one.key })).await?;
        }
        Ok((outcome.status == 200).then_some(footprints))
    }

    /// Creates the table in the scratch engine if it is missing there.
    async fn copy_table(&self, scratch: &Self, table: &str) -> Result<(), ConnectorError> {
        let name = json!({ "TableName": table });
        if scratch.run("DescribeTable", &name).await?.status == 200 {
            return Ok(());
        }
        let description = self.read("DescribeTable", &name).await?["Table"].take();
        let indexes = |kind: &str| {
            let parts = ["IndexName", "KeySchema", "Projection"];
            let index = |index: &Value| parts.map(|part| (part.to_owned(), index[part].clone())).into_iter().collect();
            let indexes: Vec<Value> = description[kind].as_array().into_iter().flatten().map(index).collect();
            (!indexes.is_empty()).then_some(indexes)
        };
        let mut create = json!({
            "TableName": table,
            "AttributeDefinitions": description["AttributeDefinitions"],
            "KeySchema": description["KeySchema"],
            "BillingMode": "PAY_PER_REQUEST",
        });
        for kind in ["LocalSecondaryIndexes", "GlobalSecondaryIndexes"] {
            if let Some(indexes) = indexes(kind) {
                create[kind] = indexes.into();
            }
        }
        scratch.run("CreateTable", &create).await?;
        Ok(())
    }
}

/// Returns the size in bytes of an item with its entries in local indexes. 0 if there is no item.
pub(super) fn footprint(item: &Value, schema: &TableKeys) -> i64 {
    let projected = schema.local.values().filter_map(|index| {
        let sort = index.keys.sort.as_ref()?;
        let is_in_index = !item[sort].is_null();
        is_in_index.then(|| item_bytes::of_attributes(item, |name| index.holds(name, &schema.keys)))
    });
    let bytes = item_bytes::of_item(item) + projected.sum::<usize>();
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
