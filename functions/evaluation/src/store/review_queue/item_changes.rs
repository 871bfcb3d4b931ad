//! Adding items to review queues, removing them, and setting their status.

use access::Granted;
use entities::attributes::{ATTACHED, COMPLETED, COMPLETED_BY, REVIEW_STATUS, UPDATED};
use entities::{locate_traces, now_ms, reviews_of_traces};
use key_schema::rows;
use mlflow_api::review_queues::{ReviewQueueItem, ReviewStatus};
use mlflow_api::{Error, ExperimentId, Result, ReviewQueueId, TraceId, python};
use table::{Condition, Failure, Item, Update, Write, WriteRefusal, number, text};

use super::queue_items::{check_experiment, item_of, new_item, queue_key, reviewed_trace, unreviewed_trace};
use crate::store::Store;

/// Maximum number of items that one transaction adds or removes. Each item takes two writes, and
/// one more write increments a counter in the queue.
const MAX_ITEMS_IN_TRANSACTION: usize = 49;

impl Store {
    /// Adds traces of the queue's experiment to a queue, and returns their items in the order of
    /// the ids. Items that are already in the queue are not changed. Takes one request per 49
    /// traces, two per hundred traces to check before and afterwards that they exist, and one more
    /// if some traces are already in the queue.
    pub async fn review_items_add(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
        ids: &[String],
    ) -> Result<Vec<ReviewQueueItem>> {
        check_experiment(experiment, queue)?;
        let traces: Vec<_> = ids.iter().filter_map(|id| TraceId::parse(id)).collect();
        let there = self.review_traces(**experiment, &traces).await?;
        let is_there = |id: &str| there.iter().any(|trace| trace.as_str() == id);
        let invalid: Vec<_> = ids.iter().filter(|id| !is_there(id)).collect();
        if !invalid.is_empty() {
            // The error about a missing queue takes precedence.
            self.review_queue_get(experiment, queue).await?;
            return Err(Error::not_found(format!(
                "Cannot attach trace(s) {} to review queue '{queue}': they do not exist in experiment '{}'.",
                python::repr_list(&invalid),
                **experiment
            )));
        }
        let mut items = Vec::with_capacity(traces.len());
        for traces in traces.chunks(MAX_ITEMS_IN_TRANSACTION) {
            items.extend(self.review_items_add_batch(queue, traces).await?);
        }
        // A trace that was deleted before its item was written could not delete the item, so it is
        // deleted here.
        let there = self.review_traces(**experiment, &traces).await?;
        let gone: Vec<_> = traces.iter().filter(|trace| !there.contains(trace)).collect();
        if !gone.is_empty() {
            let reviews = reviews_of_traces(&self.table, **experiment, &gone).await?;
            self.table.write_many(Vec::new(), &reviews.into_values().flatten().collect::<Vec<_>>()).await?;
            items.retain(|item| !gone.iter().any(|trace| trace.as_str() == item.item_id));
        }
        Ok(items)
    }

    /// Returns the traces among these that exist in the experiment. Takes one request per hundred.
    async fn review_traces(
        &self,
        experiment: ExperimentId,
        traces: &[TraceId],
    ) -> Result<std::collections::HashSet<TraceId>> {
        let found = locate_traces(&self.table, &traces.iter().collect::<Vec<_>>()).await?;
        Ok(found.into_iter().filter(|(_, trace)| trace.experiment() == experiment).map(|(id, _)| id).collect())
    }

    /// Adds up to [`MAX_ITEMS_IN_TRANSACTION`] traces to a queue.
    async fn review_items_add_batch(&self, queue: &ReviewQueueId, traces: &[TraceId]) -> Result<Vec<ReviewQueueItem>> {
        let now = now_ms();
        let mut known: Vec<Option<Item>> = vec![None; traces.len()];
        let mut attempts = self.table.attempts("a review queue");
        loop {
            attempts.next().await?;
            let new: Vec<_> = traces.iter().zip(&known).filter(|(_, known)| known.is_none()).collect();
            let mut writes = vec![Write::Update(Update::new(queue_key(queue)).add(ATTACHED, number(1)))];
            for (trace, _) in &new {
                writes.push(Write::Put(new_item(queue, trace, now), Condition::item_missing()));
                writes.push(Write::Update(reviewed_trace(queue, trace)));
            }
            if !new.is_empty() {
                match self.table.transact(&writes).await {
                    Ok(()) => {}
                    Err(Failure::Cancelled(reasons)) => {
                        if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) {
                            return Err(ReviewQueueId::not_found(queue.as_str()));
                        }
                        // Some traces are already in the queue. The reasons for the failed
                        // conditions contain their items.
                        let mut reasons = reasons.into_iter().skip(1).step_by(2);
                        for slot in known.iter_mut().filter(|slot| slot.is_none()) {
                            if let Some(WriteRefusal::Refused(Some(item))) = reasons.next() {
                                *slot = Some(item);
                            }
                        }
                        continue;
                    }
                    Err(failure) => return Err(failure.into()),
                }
            } else if self.table.get(&queue_key(queue)).await?.is_none() {
                return Err(ReviewQueueId::not_found(queue.as_str()));
            }
            let items =
                traces.iter().zip(known).map(|(trace, known)| known.unwrap_or_else(|| new_item(queue, trace, now)));
            return items.map(|item| item_of(&item)).collect();
        }
    }

    /// Removes traces from a queue. Traces that are not in the queue are ignored. Takes two
    /// requests per 49 traces. The caller of this method must have checked that the queue exists.
    pub async fn review_items_remove(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
        ids: &[String],
    ) -> Result<()> {
        check_experiment(experiment, queue)?;
        let traces: Vec<_> = ids.iter().filter_map(|id| TraceId::parse(id)).collect();
        for traces in traces.chunks(MAX_ITEMS_IN_TRANSACTION) {
            let keys: Vec<_> = traces.iter().map(|trace| rows::ReviewItem::key(queue, trace)).collect();
            let mut attempts = self.table.attempts("a review queue");
            loop {
                attempts.next().await?;
                let found = self.table.get_many(&keys).await?;
                let there = found.keys().filter_map(|key| Some(rows::ReviewItem::parse(key)?.trace));
                let mut writes = Vec::new();
                for trace in there {
                    writes.push(Write::Delete(rows::ReviewItem::key(queue, &trace), Condition::item_exists()));
                    writes.push(Write::Update(unreviewed_trace(queue, &trace)));
                }
                if writes.is_empty() {
                    break;
                }
                match self.table.transact(&writes).await {
                    Ok(()) => break,
                    // Another request has removed some of the items concurrently.
                    Err(Failure::Cancelled(_)) => {}
                    Err(failure) => return Err(failure.into()),
                }
            }
        }
        Ok(())
    }

    /// Sets the status of a trace in a queue. If the trace already has the status, nothing is
    /// changed, so that the user who has set it first is kept. Takes two requests. The caller of
    /// this method must have checked that the queue exists.
    pub async fn review_item_set_status(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
        id: &str,
        status: ReviewStatus,
        completed_by: Option<&str>,
    ) -> Result<ReviewQueueItem> {
        check_experiment(experiment, queue)?;
        let not_attached = || Error::not_found(format!("Item '{id}' is not attached to review queue '{queue}'."));
        let trace = TraceId::parse(id).ok_or_else(not_attached)?;
        let key = rows::ReviewItem::key(queue, &trace);
        let mut item = self.table.get(&key).await?;
        let mut attempts = self.table.attempts("an item of a review queue");
        loop {
            attempts.next().await?;
            let stored = item.ok_or_else(not_attached)?;
            let current = item_of(&stored)?;
            if current.status == status {
                return Ok(current);
            }
            let now = now_ms();
            let update = Update::new(key.clone())
                .set(REVIEW_STATUS, text(status.name()))
                .set(UPDATED, number(now))
                .only_if(Condition::unchanged(&stored, REVIEW_STATUS));
            let update = match completed_by {
                Some(user) => update.set(COMPLETED_BY, text(user)).set(COMPLETED, number(now)),
                None => update.remove(COMPLETED_BY).remove(COMPLETED),
            };
            match self.table.update(&update).await {
                Ok(changed) => return item_of(&changed),
                Err(Failure::Refused { item: current, .. }) => item = current,
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
