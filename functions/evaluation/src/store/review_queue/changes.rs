//! Changing review queues.

use access::Granted;
use entities::attributes::{ATTACHED, CHANGES, CREATED_BY, NAME, SCHEMAS, UPDATED, USERS};
use entities::now_ms;
use key_schema::rows;
use mlflow_api::review_queues::{
    ReviewQueue, ReviewQueueType, custom_queue_name, normalized_schema_ids, normalized_users, queue_owner,
};
use mlflow_api::{Error, ExperimentId, Result, ReviewQueueId};
use table::{ChangePlan, Condition, Item, Query, Update, Write, number, text};

use super::queue_items::{check_experiment, name_key, name_row, queue_key, queue_of, taken, text_set};
use crate::store::Store;

/// A change of a review queue, as in a request. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct ReviewQueueChange {
    /// New users.
    pub users: Option<Vec<String>>,
    /// New label schemas.
    pub schema_ids: Option<Vec<String>>,
    /// New name.
    pub name: Option<String>,
    /// New owner.
    pub new_owner: Option<String>,
}

impl ReviewQueueChange {
    fn is_empty(&self) -> bool {
        self.users.is_none() && self.schema_ids.is_none() && self.name.is_none() && self.new_owner.is_none()
    }
}

impl Store {
    /// Changes a custom queue. Takes two requests, and two more to change its label schemas.
    pub async fn review_queue_update(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
        change: &ReviewQueueChange,
    ) -> Result<ReviewQueue> {
        check_experiment(experiment, queue)?;
        let now = now_ms();
        self.table
            .change("a review queue", |refused| async move {
                let item = self.table.get(&queue_key(queue)).await?;
                let item = item.ok_or_else(|| ReviewQueueId::not_found(queue.as_str()))?;
                let current = queue_of(&item)?;
                if current.queue_type == ReviewQueueType::User {
                    return Err(Error::invalid(
                        "A user queue's name, assigned user, schemas, and owner are fixed and cannot be updated.",
                    ));
                }
                if change.is_empty() {
                    return Ok(ChangePlan::Done(current));
                }
                let (update, changed) = self.review_queue_changed(queue, &item, current.clone(), change, now).await?;
                let mut writes = vec![Write::Update(update)];
                if changed.name.to_lowercase() != current.name.to_lowercase() {
                    if refused.is_of(1) {
                        return Err(taken(&changed.name));
                    }
                    writes.push(Write::Put(name_row(queue, &changed.name), Condition::item_missing()));
                    writes.push(Write::Delete(name_key(**experiment, &current.name), Condition::Always));
                }
                Ok(ChangePlan::Write(writes, changed))
            })
            .await
    }

    /// Checks a change of the queue that this item contains. Returns the update, and the changed
    /// queue.
    async fn review_queue_changed(
        &self,
        queue: &ReviewQueueId,
        item: &Item,
        current: ReviewQueue,
        change: &ReviewQueueChange,
        now: i64,
    ) -> Result<(Update, ReviewQueue)> {
        let mut changed = ReviewQueue { last_update_time_ms: now, ..current };
        let mut update = Update::new(queue_key(queue))
            .set(UPDATED, number(now))
            .add(CHANGES, number(1))
            .only_if(Condition::unchanged(item, CHANGES));
        if let Some(owner) = &change.new_owner {
            let owner = queue_owner(owner)?;
            update = update.set(CREATED_BY, text(&owner));
            changed.created_by = Some(owner);
        }
        if let Some(name) = &change.name {
            changed.name = custom_queue_name(name)?;
            update = update.set(NAME, text(&changed.name));
        }
        if let Some(users) = &change.users {
            let mut users = normalized_users(users)?;
            update = match text_set(&users) {
                Some(users) => update.set(USERS, users),
                None => update.remove(USERS),
            };
            users.sort_unstable();
            changed.users = users;
        }
        if let Some(schema_ids) = &change.schema_ids {
            // A concurrent request that adds items also changes the attribute that is compared
            // here, so that this update fails.
            update = update.only_if(Condition::unchanged(item, ATTACHED));
            let any = Query::of(rows::ReviewItem::all(queue)).limit(1);
            if !self.table.query_page(&any).await?.items.is_empty() {
                return Err(Error::invalid(
                    "A review queue's questions are locked once items are assigned to it. Remove the items before \
                     changing its questions.",
                ));
            }
            let mut schema_ids = normalized_schema_ids(schema_ids)?;
            self.review_queue_check_schemas(queue.experiment(), &schema_ids).await?;
            update = match text_set(&schema_ids) {
                Some(schema_ids) => update.set(SCHEMAS, schema_ids),
                None => update.remove(SCHEMAS),
            };
            schema_ids.sort_unstable();
            changed.schema_ids = schema_ids;
        }
        Ok((update, changed))
    }
}
