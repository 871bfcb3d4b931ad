//! The table, and the requests about one item.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    ConsumedCapacity, ItemCollectionMetrics, ReturnConsumedCapacity, ReturnItemCollectionMetrics, ReturnValue,
    ReturnValuesOnConditionCheckFailure as OnRefusal,
};
use key_schema::Key;
use key_schema::definition::{PK, SK};

use crate::collection_size::CollectionSizes;
use crate::expression::Expressions;
use crate::meter::{Direction, Meter, ReadBytes};
use crate::{Condition, Failure, Item, Result, Retry, Update, Value, declared};

/// A handle on the table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) retry: Retry,
    meter: Option<Meter>,
    read_bytes: Option<ReadBytes>,
    collection_sizes: Option<CollectionSizes>,
}

impl Table {
    /// The table `name`, reached through `client`. The client's own retries should be off: this crate has its own.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self {
            client,
            name: name.into(),
            retry: Retry::default(),
            meter: None,
            read_bytes: None,
            collection_sizes: None,
        }
    }

    /// Another table, reached in the same way.
    #[must_use]
    pub fn beside(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), collection_sizes: None, ..self.clone() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same table, its calls counted by `meter`.
    #[must_use]
    pub fn metered(&self, meter: Meter) -> Self {
        Self { meter: Some(meter), ..self.clone() }
    }

    /// The same table; the bytes that are read through it are added up in `read_bytes`.
    #[must_use]
    pub fn counting(&self, read_bytes: &ReadBytes) -> Self {
        Self { read_bytes: Some(read_bytes.clone()), ..self.clone() }
    }

    /// The same table, which says in the log when a partition that is written to is nearly full. The embedded engine would have to read the
    /// whole partition for that with each write.
    #[must_use]
    pub fn telling_of_full_partitions(self) -> Self {
        Self { collection_sizes: Some(CollectionSizes::default()), ..self }
    }

    /// The same table with another patience.
    #[must_use]
    pub fn with_retry(&self, retry: Retry) -> Self {
        Self { retry, ..self.clone() }
    }

    /// The same table for work that nobody waits for, which tries a throttled request as often as any other.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { retry: self.retry.in_background(), ..self }
    }

    /// How this handle tries again; for callers whose own step can be refused and repeated.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// Reads one item, consistently. One request; a read unit per 4 KB.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if it is not as its row declares, as for every read of whole items.
    pub async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let answer = self
            .retry
            .run(|| {
                self.count("GetItem");
                self.client
                    .get_item()
                    .table_name(&self.name)
                    .set_key(Some(attributes(key)))
                    .consistent_read(true)
                    .set_return_consumed_capacity(self.wanted())
                    .send()
            })
            .await?;
        self.consumed(Direction::Read, answer.consumed_capacity.as_slice());
        let item = answer.item.map(Item);
        self.take(item.as_slice())?;
        Ok(item)
    }

    /// Writes an item, whole, if the condition holds for the existing one.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold.
    pub async fn put(&self, item: Item, condition: &Condition) -> Result<()> {
        self.put_noting(&mut false, item, condition).await
    }

    /// The same; sets `lost` if the answer to an attempt was lost.
    pub(crate) async fn put_noting(&self, lost: &mut bool, item: Item, condition: &Condition) -> Result<()> {
        let mut expressions = Expressions::default();
        let condition = expressions.condition(condition);
        let answer = self
            .retry
            .run_noting(lost, || {
                self.count("PutItem");
                self.client
                    .put_item()
                    .table_name(&self.name)
                    .set_item(Some(item.0.clone()))
                    .set_condition_expression(condition.clone())
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .set_return_consumed_capacity(self.wanted())
                    .set_return_item_collection_metrics(self.sizes_wanted())
                    .send()
            })
            .await
            .inspect_err(|failure| self.count_refusal(failure))?;
        self.consumed(Direction::Write, answer.consumed_capacity.as_slice());
        self.look_at_sizes(answer.item_collection_metrics());
        Ok(())
    }

    /// Changes one item and returns it as it is then. One request; a write unit per KB of the larger of before and after,
    /// and one per index key that changes, two if it was there before.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold; it brings the item as it is, so that no read is needed to find
    /// out why.
    pub async fn update(&self, update: &Update) -> Result<Item> {
        let item = self.update_returning(update, ReturnValue::AllNew).await?;
        let item = item.ok_or_else(|| Failure::Unexpected("an update returned no item".to_owned()))?;
        declared::check([&item])?;
        Ok(item)
    }

    /// The same for an item that nobody looks at afterwards: it is not returned, which spares the embedded engine reading and writing its JSON.
    ///
    /// # Errors
    /// As [`Table::update`].
    pub async fn apply(&self, update: &Update) -> Result<()> {
        self.update_returning(update, ReturnValue::None).await.map(|_| ())
    }

    async fn update_returning(&self, update: &Update, returned: ReturnValue) -> Result<Option<Item>> {
        let mut expressions = Expressions::default();
        let change = expressions.update(update);
        let condition = expressions.condition(&update.condition);
        let answer = self
            .retry
            .run(|| {
                self.count("UpdateItem");
                self.client
                    .update_item()
                    .table_name(&self.name)
                    .set_key(Some(attributes(&update.key)))
                    .update_expression(&change)
                    .set_condition_expression(condition.clone())
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values(returned.clone())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .set_return_consumed_capacity(self.wanted())
                    .set_return_item_collection_metrics(self.sizes_wanted())
                    .send()
            })
            .await
            .inspect_err(|failure| self.count_refusal(failure))?;
        self.consumed(Direction::Write, answer.consumed_capacity.as_slice());
        self.look_at_sizes(answer.item_collection_metrics());
        Ok(answer.attributes.map(Item))
    }

    /// Deletes an item if the condition holds for it. One request; a write unit per KB of the item.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold. Where the answer to an attempt was lost, an item that is gone may have been
    /// deleted by it.
    pub async fn delete(&self, key: &Key, condition: &Condition) -> Result<()> {
        let mut expressions = Expressions::default();
        let condition = expressions.condition(condition);
        let answer = self
            .retry
            .run(|| {
                self.count("DeleteItem");
                self.client
                    .delete_item()
                    .table_name(&self.name)
                    .set_key(Some(attributes(key)))
                    .set_condition_expression(condition.clone())
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .set_return_consumed_capacity(self.wanted())
                    .send()
            })
            .await
            .inspect_err(|failure| self.count_refusal(failure))?;
        self.consumed(Direction::Write, answer.consumed_capacity.as_slice());
        Ok(())
    }

    /// Which report of consumed capacity to ask for.
    pub(crate) fn wanted(&self) -> Option<ReturnConsumedCapacity> {
        match &self.meter {
            Some(_) => Some(ReturnConsumedCapacity::Indexes),
            None => Meter::of_task().map(|_| ReturnConsumedCapacity::Total),
        }
    }

    /// Whether to ask for the sizes of partitions.
    pub(crate) fn sizes_wanted(&self) -> Option<ReturnItemCollectionMetrics> {
        self.collection_sizes.as_ref().map(|_| ReturnItemCollectionMetrics::Size)
    }

    pub(crate) fn look_at_sizes<'a>(&self, metrics: impl IntoIterator<Item = &'a ItemCollectionMetrics>) {
        if let Some(sizes) = &self.collection_sizes {
            sizes.look(metrics);
        }
    }

    /// The same for an answer that tells of several partitions, by table.
    pub(crate) fn look_at_sizes_of(&self, metrics: Option<&HashMap<String, Vec<ItemCollectionMetrics>>>) {
        self.look_at_sizes(metrics.into_iter().flat_map(|of_tables| of_tables.values().flatten()));
    }

    fn count_refusal(&self, failure: &Failure) {
        if let Failure::Refused { item, .. } = failure {
            self.meters().for_each(|meter| meter.count_refusal(item.as_ref().map(Item::size).unwrap_or_default()));
        }
    }

    pub(crate) fn count(&self, operation: &'static str) {
        self.meters().for_each(|meter| meter.count_request(operation));
    }

    /// Counts items that were read whole, and looks whether they can be.
    pub(crate) fn take(&self, items: &[Item]) -> Result<()> {
        self.count_items(items);
        declared::check(items)
    }

    /// Counts items that were read.
    pub(crate) fn count_items(&self, items: &[Item]) {
        if let Some(read_bytes) = &self.read_bytes {
            read_bytes.add(items.iter().map(Item::size).sum());
        }
    }

    pub(crate) fn consumed(&self, direction: Direction, consumed: &[ConsumedCapacity]) {
        self.meters().for_each(|meter| meter.count_capacity(direction, consumed));
    }

    /// All that count this call: one of the handle, and one of the request that it is made for.
    fn meters(&self) -> impl Iterator<Item = Meter> {
        self.meter.clone().into_iter().chain(Meter::of_task())
    }
}

/// A key as DynamoDB takes it.
pub(crate) fn attributes(key: &Key) -> HashMap<String, Value> {
    HashMap::from([(PK.to_owned(), Value::S(key.pk.clone())), (SK.to_owned(), Value::S(key.sk.clone()))])
}
