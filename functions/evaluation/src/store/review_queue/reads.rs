//! Reading review queues.

use access::Granted;
use entities::queues_of;
use key_schema::{ranges, rows};
use mlflow_api::review_queues::{ReviewQueue, ReviewQueuesResponse, normalized_user};
use mlflow_api::{Error, ExperimentId, Result, ReviewQueueId, TraceId};
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::{Item, Query};

use super::queue_items::{check_experiment, queue_key, queue_of};
use crate::store::Store;

/// Limit for the size of the queues on a page, in bytes. When it is exceeded, nothing more is read
/// from the table, and the page ends.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// The conditions of a list of review queues, all of which must be met.
#[derive(Clone, Debug, Default)]
pub struct ReviewQueueConditions {
    /// The queue is assigned to this user.
    pub user: Option<String>,
    /// The queue has this item.
    pub item: Option<String>,
    /// The queue is assigned to this user, who is the caller and may not see other queues.
    pub member: Option<String>,
}

impl ReviewQueueConditions {
    fn are_met(&self, queue: &ReviewQueue) -> bool {
        let has = |user: &Option<String>| user.as_ref().is_none_or(|user| queue.has_user(user));
        has(&self.user) && has(&self.member)
    }

    fn fingerprint(&self, experiment: ExperimentId) -> Fingerprint {
        let user = self.user.as_deref().map(normalized_user);
        let conditions = [user.as_deref(), self.item.as_deref(), self.member.as_deref()];
        Fingerprint::of_list("review queues", &experiment.to_string(), &conditions)
    }
}

impl Store {
    /// Returns a review queue. Takes one request.
    pub async fn review_queue_get(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
    ) -> Result<ReviewQueue> {
        check_experiment(experiment, queue)?;
        let item = self.table.get(&queue_key(queue)).await?;
        queue_of(&item.ok_or_else(|| ReviewQueueId::not_found(queue.as_str()))?)
    }

    /// Returns a review queue by its name. Takes two requests, and one more if the lease on the
    /// experiment has expired.
    pub async fn review_queue_get_by_name(
        &self,
        experiment: &Granted<ExperimentId>,
        name: &str,
    ) -> Result<ReviewQueue> {
        let experiment = self.reviewed_experiment(**experiment).await?;
        let found = self.review_queue_named(experiment, name).await?;
        found.ok_or_else(|| {
            Error::not_found(format!("Review queue with name '{name}' not found for experiment '{experiment}'."))
        })
    }

    /// Returns a page of an experiment's review queues, newest first. Takes one request per MB of
    /// queues, or two requests if only the queues of one item are listed. Takes one more if the
    /// lease on the experiment has expired.
    pub async fn review_queue_list(
        &self,
        experiment: &Granted<ExperimentId>,
        conditions: &ReviewQueueConditions,
        max_results: usize,
        token: &str,
    ) -> Result<ReviewQueuesResponse> {
        let fingerprint = conditions.fingerprint(**experiment);
        let after = decode_page_token::<String>(fingerprint, token)?;
        let after = after.map(|after| {
            let after = ReviewQueueId::parse(&after).filter(|after| after.experiment() == **experiment);
            after.ok_or_else(|| Error::invalid("Invalid page token"))
        });
        let after = after.transpose()?;
        let experiment = self.reviewed_experiment(**experiment).await?;
        let mut found = Vec::new();
        let mut is_cut = false;
        if let Some(item) = &conditions.item {
            let queues = self.review_queues_of(experiment, item).await?.into_iter();
            let position = after.as_ref().map(|after| queue_key(after).sk);
            let later =
                |item: &Item| position.as_ref().is_none_or(|after| item.key().is_some_and(|key| key.sk > *after));
            let queues = queues.filter(later).map(|item| queue_of(&item)).collect::<Result<Vec<_>>>()?;
            found.extend(queues.into_iter().filter(|queue| conditions.are_met(queue)));
        } else {
            let range = match &after {
                None => rows::ReviewQueue::all(&experiment).range(),
                Some(after) => ranges::review_queues_after(after),
            };
            let mut query = Query::of(range);
            let mut bytes = 0;
            loop {
                let page = self.table.query_page(&query).await?;
                for item in &page.items {
                    let queue = queue_of(item)?;
                    if conditions.are_met(&queue) {
                        bytes += item.size();
                        found.push(queue);
                    }
                }
                is_cut = bytes > MAX_PAGE_BYTES && page.next.is_some();
                match page.next.filter(|_| found.len() <= max_results && !is_cut) {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        let has_more = is_cut || found.len() > max_results;
        found.truncate(max_results);
        let next_page_token = match found.last().filter(|_| has_more) {
            Some(last) => encode_page_token(fingerprint, &last.queue_id)?,
            None => String::new(),
        };
        Ok(ReviewQueuesResponse { review_queues: found, next_page_token })
    }

    /// Returns the queues that contain an item, newest first. Takes two requests, or one if the
    /// item was never in a queue.
    async fn review_queues_of(&self, experiment: ExperimentId, item: &str) -> Result<Vec<Item>> {
        let Some(trace) = TraceId::parse(item) else { return Ok(Vec::new()) };
        let row = self.table.get(&rows::ReviewedTrace::key(&experiment, &trace)).await?;
        let queues = row.as_ref().map(queues_of).unwrap_or_default();
        // The row may list queues that have been deleted.
        let keys: Vec<_> = queues.iter().map(queue_key).collect();
        let mut queues: Vec<_> = self.table.get_many(&keys).await?.into_values().collect();
        queues.sort_unstable_by_key(|item| item.key().map(|key| key.sk));
        Ok(queues)
    }
}
