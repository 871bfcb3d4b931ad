//! The table handle, and requests for single items.

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
use crate::meter::{CapacityKind, ReadBytes, UsageMeter};
use crate::{Condition, Failure, Item, Result, RetryPolicy, Update, Value, item_check};

/// A handle to the table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) retry: RetryPolicy,
    meter: Option<UsageMeter>,
    read_bytes: Option<ReadBytes>,
    collection_sizes: Option<CollectionSizes>,
}

impl Table {
    /// Returns a handle to the table `name`, accessed through `client`. Disable the client's
    /// retries, because this crate retries requests itself.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self {
            client,
            name: name.into(),
            retry: RetryPolicy::default(),
            meter: None,
            read_bytes: None,
            collection_sizes: None,
        }
    }

    /// Returns a handle to another table, accessed through the same client.
    #[must_use]
    pub fn beside(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), collection_sizes: None, ..self.clone() }
    }

    /// Returns the table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a handle whose requests are counted by `meter`.
    #[must_use]
    pub fn metered(&self, meter: UsageMeter) -> Self {
        Self { meter: Some(meter), ..self.clone() }
    }

    /// Returns a handle that adds the size of all items read through it to `read_bytes`.
    #[must_use]
    pub fn counting(&self, read_bytes: &ReadBytes) -> Self {
        Self { read_bytes: Some(read_bytes.clone()), ..self.clone() }
    }

    /// Returns a handle that logs a warning when it writes to a partition that is nearly full. Do
    /// not use it with the embedded engine, which would have to read the whole partition at each
    /// write.
    #[must_use]
    pub fn telling_of_full_partitions(self) -> Self {
        Self { collection_sizes: Some(CollectionSizes::default()), ..self }
    }

    /// Returns a handle with other retry limits.
    #[must_use]
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// Returns a handle for background work, which retries throttled requests as often as requests
    /// that failed for other reasons.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { retry: self.retry.in_background(), ..self }
    }

    /// Returns the retry limits of this handle, for callers that implement their own retries of a
    /// refused step.
    #[must_use]
    pub fn retry(&self) -> RetryPolicy {
        self.retry
    }

    /// Reads one item with strong consistency. Sends one request, which costs a read unit per 4 KB.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if the item does not match the declaration of its row in
    /// `key-schema`, as in all reads of whole items.
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
        self.consumed(CapacityKind::Read, answer.consumed_capacity.as_slice());
        let item = answer.item.map(Item);
        self.take(item.as_slice())?;
        Ok(item)
    }

    /// Writes a whole item if the condition holds for the existing one.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold.
    pub async fn put(&self, item: Item, condition: &Condition) -> Result<()> {
        self.put_noting(&mut false, item, condition).await
    }

    /// Writes a whole item if the condition holds for the existing one. Sets `lost` if the response
    /// to an attempt was lost.
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
        self.consumed(CapacityKind::Write, answer.consumed_capacity.as_slice());
        self.look_at_sizes(answer.item_collection_metrics());
        Ok(())
    }

    /// Updates one item and returns its new state. Sends one request. Costs a write unit per KB of
    /// the old or the new item, whichever is larger, one for each new index key, and two for each
    /// changed index key.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold. It contains the current item, so that
    /// no read is needed to find the reason.
    pub async fn update(&self, update: &Update) -> Result<Item> {
        let item = self.update_returning(update, ReturnValue::AllNew).await?;
        let item = item.ok_or_else(|| Failure::Unexpected("an update returned no item".to_owned()))?;
        item_check::check([&item])?;
        Ok(item)
    }

    /// Updates one item without returning it. This saves the embedded engine from serializing the
    /// item as JSON.
    ///
    /// # Errors
    /// See [`Table::update`].
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
        self.consumed(CapacityKind::Write, answer.consumed_capacity.as_slice());
        self.look_at_sizes(answer.item_collection_metrics());
        Ok(answer.attributes.map(Item))
    }

    /// Deletes an item if the condition holds for it. Sends one request, which costs a write unit
    /// per KB of the item.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the condition does not hold. If the item is missing and the response
    /// to an earlier attempt was lost, that attempt may have deleted it.
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
        self.consumed(CapacityKind::Write, answer.consumed_capacity.as_slice());
        Ok(())
    }

    /// Returns the level of detail at which DynamoDB is to report consumed capacity. `None` if no
    /// meter counts the request.
    pub(crate) fn wanted(&self) -> Option<ReturnConsumedCapacity> {
        match &self.meter {
            Some(_) => Some(ReturnConsumedCapacity::Indexes),
            None => UsageMeter::of_task().map(|_| ReturnConsumedCapacity::Total),
        }
    }

    /// Returns the value that makes DynamoDB report the sizes of partitions. `None` unless this
    /// handle warns about full partitions.
    pub(crate) fn sizes_wanted(&self) -> Option<ReturnItemCollectionMetrics> {
        self.collection_sizes.as_ref().map(|_| ReturnItemCollectionMetrics::Size)
    }

    pub(crate) fn look_at_sizes<'a>(&self, metrics: impl IntoIterator<Item = &'a ItemCollectionMetrics>) {
        if let Some(sizes) = &self.collection_sizes {
            sizes.look(metrics);
        }
    }

    /// Logs warnings for nearly full partitions, given the sizes in a response that lists them by
    /// table.
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

    /// Counts the size of items that were read whole, and checks them against the declarations of
    /// their rows.
    pub(crate) fn take(&self, items: &[Item]) -> Result<()> {
        self.count_items(items);
        item_check::check(items)
    }

    /// Counts the size of items that were read.
    pub(crate) fn count_items(&self, items: &[Item]) {
        if let Some(read_bytes) = &self.read_bytes {
            read_bytes.add(items.iter().map(Item::size).sum());
        }
    }

    pub(crate) fn consumed(&self, direction: CapacityKind, consumed: &[ConsumedCapacity]) {
        self.meters().for_each(|meter| meter.count_capacity(direction, consumed));
    }

    /// Returns all meters that count this request: the one of the handle, and the one of the
    /// current task.
    fn meters(&self) -> impl Iterator<Item = UsageMeter> {
        self.meter.clone().into_iter().chain(UsageMeter::of_task())
    }
}

/// Returns the attributes of a key.
pub(crate) fn attributes(key: &Key) -> HashMap<String, Value> {
    HashMap::from([(PK.to_owned(), Value::S(key.pk.clone())), (SK.to_owned(), Value::S(key.sk.clone()))])
}
