//! Batch reads and writes: many items in few requests, unordered and not atomic.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, PutRequest, WriteRequest};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::Key;

use crate::meter::CapacityKind;
use crate::table::attributes;
use crate::{Failure, Item, Result, Table};

/// A key of this table, or of another table in the same account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableKey {
    /// Name of the other table, or `None` for this table.
    pub table: Option<String>,
    /// The key.
    pub key: Key,
}

impl TableKey {
    /// Returns a key of this table.
    #[must_use]
    pub fn here(key: Key) -> Self {
        Self { table: None, key }
    }
}

/// DynamoDB's limits for the number of items in one request.
const MAX_BATCH_READS: usize = 100;
const MAX_BATCH_WRITES: usize = 25;
/// Maximum number of concurrent requests of one batch write.
const CONCURRENCY: usize = 16;

impl Table {
    /// Reads items with strong consistency. Missing items are absent from the result, and duplicate
    /// keys are allowed. Sends one request per 100 keys, or per 16 MB of items.
    pub async fn get_many(&self, keys: &[Key]) -> Result<HashMap<Key, Item>> {
        self.get_all(keys, true).await
    }

    /// Reads items with eventual consistency, for half the read units. The result may be slightly
    /// stale: an item that was written recently may be missing, or may have its old content. Use it
    /// only for items that never change, and only if the caller handles missing items.
    pub async fn get_many_eventually(&self, keys: &[Key]) -> Result<HashMap<Key, Item>> {
        self.get_all(keys, false).await
    }

    /// Reads items of this table and of other tables in the same requests, with strong consistency.
    /// Sends one request per 100 keys, or per 16 MB of items.
    pub async fn get_together(&self, keys: &[TableKey]) -> Result<HashMap<TableKey, Item>> {
        let mut seen = HashSet::new();
        let keys: Vec<_> = keys.iter().filter(|key| seen.insert(*key)).collect();
        let parts = try_join_all(keys.chunks(MAX_BATCH_READS).map(|keys| self.get_part_together(keys))).await?;
        Ok(parts.into_iter().flatten().collect())
    }

    async fn get_part_together(&self, keys: &[&TableKey]) -> Result<Vec<(TableKey, Item)>> {
        let name_of = |key: &TableKey| key.table.clone().unwrap_or_else(|| self.name.clone());
        let mut wanted: HashMap<String, Vec<_>> = HashMap::new();
        for key in keys {
            wanted.entry(name_of(key)).or_default().push(attributes(&key.key));
        }
        let mut found = Vec::new();
        let mut idle_rounds = 0;
        while !wanted.is_empty() {
            let request = wanted.into_iter().map(|(name, keys)| {
                let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
                keys.map(|keys| (name, keys)).map_err(|error| Failure::Unexpected(error.to_string()))
            });
            let request = request.collect::<Result<HashMap<_, _>>>()?;
            let answer = self
                .retry
                .run(|| {
                    self.count("BatchGetItem");
                    self.client
                        .batch_get_item()
                        .set_request_items(Some(request.clone()))
                        .set_return_consumed_capacity(self.wanted())
                        .send()
                })
                .await?;
            self.consumed(CapacityKind::Read, answer.consumed_capacity());
            let before = found.len();
            for (name, items) in answer.responses.unwrap_or_default() {
                let items: Vec<_> = items.into_iter().map(Item).collect();
                self.take(&items)?;
                let table = (name != self.name).then_some(name);
                let items = items.into_iter().filter_map(|item| Some((item.key()?, item)));
                found.extend(items.map(|(key, item)| (TableKey { table: table.clone(), key }, item)));
            }
            idle_rounds = if found.len() == before { idle_rounds + 1 } else { 0 };
            let left = answer.unprocessed_keys.unwrap_or_default();
            wanted =
                left.into_iter().map(|(name, keys)| (name, keys.keys)).filter(|(_, keys)| !keys.is_empty()).collect();
            if !wanted.is_empty() {
                self.rest(idle_rounds).await?;
            }
        }
        Ok(found)
    }

    async fn get_all(&self, keys: &[Key], is_consistent: bool) -> Result<HashMap<Key, Item>> {
        // DynamoDB rejects requests that contain a key twice.
        let mut seen = HashSet::new();
        let keys: Vec<_> = keys.iter().filter(|key| seen.insert(*key)).collect();
        let parts = try_join_all(keys.chunks(MAX_BATCH_READS).map(|keys| self.get_part(keys, is_consistent))).await?;
        let items = parts.into_iter().flatten().filter_map(|item| Some((item.key()?, item)));
        Ok(items.collect())
    }

    async fn get_part(&self, keys: &[&Key], is_consistent: bool) -> Result<Vec<Item>> {
        let mut wanted: Vec<_> = keys.iter().map(|key| attributes(key)).collect();
        let mut found = Vec::new();
        let mut idle_rounds = 0;
        loop {
            let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(is_consistent).build();
            let request = request.map_err(|error| Failure::Unexpected(error.to_string()))?;
            let answer = self
                .retry
                .run(|| {
                    self.count("BatchGetItem");
                    self.client
                        .batch_get_item()
                        .request_items(&self.name, request.clone())
                        .set_return_consumed_capacity(self.wanted())
                        .send()
                })
                .await?;
            self.consumed(CapacityKind::Read, answer.consumed_capacity());
            let items = answer.responses.and_then(|mut tables| tables.remove(&self.name)).unwrap_or_default();
            // If the response has items, the unprocessed keys exceeded the limit of 16 MB. If it
            // has none, the table is throttling.
            idle_rounds = if items.is_empty() { idle_rounds + 1 } else { 0 };
            found.extend(items.into_iter().map(Item));
            let left = answer.unprocessed_keys.and_then(|mut tables| tables.remove(&self.name));
            match left {
                Some(left) if !left.keys().is_empty() => wanted = left.keys,
                _ => {
                    self.take(&found)?;
                    return Ok(found);
                }
            }
            self.rest(idle_rounds).await?;
        }
    }

    /// Writes and deletes items without conditions, in any order. Sends one request per 25 items.
    pub async fn write_many(&self, puts: Vec<Item>, deletes: &[Key]) -> Result<()> {
        let puts = puts.into_iter().map(|item| {
            let put = PutRequest::builder().set_item(Some(item.0)).build();
            put.map(|put| WriteRequest::builder().put_request(put).build())
        });
        let deletes = deletes.iter().map(|key| {
            let delete = DeleteRequest::builder().set_key(Some(attributes(key))).build();
            delete.map(|delete| WriteRequest::builder().delete_request(delete).build())
        });
        let requests = puts.chain(deletes).collect::<std::result::Result<Vec<_>, _>>();
        let requests = requests.map_err(|error| Failure::Unexpected(error.to_string()))?;
        let parts: Vec<_> = requests.chunks(MAX_BATCH_WRITES).map(|part| self.write_part(part.to_vec())).collect();
        stream::iter(parts).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    async fn write_part(&self, mut requests: Vec<WriteRequest>) -> Result<()> {
        let mut idle_rounds = 0;
        loop {
            let sent = requests.len();
            let answer = self
                .retry
                .run(|| {
                    self.count("BatchWriteItem");
                    self.client
                        .batch_write_item()
                        .request_items(&self.name, requests.clone())
                        .set_return_consumed_capacity(self.wanted())
                        .set_return_item_collection_metrics(self.sizes_wanted())
                        .send()
                })
                .await?;
            self.consumed(CapacityKind::Write, answer.consumed_capacity());
            self.look_at_sizes_of(answer.item_collection_metrics());
            requests = answer.unprocessed_items.and_then(|mut tables| tables.remove(&self.name)).unwrap_or_default();
            if requests.is_empty() {
                return Ok(());
            }
            idle_rounds = if requests.len() == sent { idle_rounds + 1 } else { 0 };
            self.rest(idle_rounds).await?;
        }
    }

    /// Pauses before the unprocessed items of a batch are sent again. `idle_rounds` is the number
    /// of consecutive rounds in which no item was processed. Gives up when it reaches the policy's
    /// limit for throttled attempts.
    async fn rest(&self, idle_rounds: u32) -> Result<()> {
        if self.retry.gives_up_throttled(idle_rounds) {
            return Err(Failure::Throttled("a batch stayed unprocessed".to_owned()));
        }
        match idle_rounds {
            0 => self.retry.pause(1).await,
            _ => self.retry.pause_throttled(idle_rounds).await,
        }
        Ok(())
    }
}
