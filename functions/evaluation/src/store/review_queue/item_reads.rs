//! Reading the items of review queues.

use access::Granted;
use key_schema::{index, ranges};
use mlflow_api::review_queues::{ReviewQueueItem, ReviewQueueItemsResponse, ReviewStatus};
use mlflow_api::{Error, ExperimentId, Result, ReviewQueueId, TraceId};
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::Query;

use super::queue_items::{check_experiment, item_of};
use crate::store::Store;

/// Maximum number of items on a page. A page of this size takes about 3 MB of a response.
const MAX_PAGE_ITEMS: usize = 10_000;

impl Store {
    /// Returns a page of a queue's items, newest first. If `status` is given, only includes items
    /// with this status. Takes one request per 1,000 items that are read. The caller of this method
    /// must have checked that the queue exists.
    pub async fn review_items_list(
        &self,
        experiment: &Granted<ExperimentId>,
        queue: &ReviewQueueId,
        status: Option<ReviewStatus>,
        max_results: usize,
        token: &str,
    ) -> Result<ReviewQueueItemsResponse> {
        check_experiment(experiment, queue)?;
        let fingerprint = Fingerprint::of_list("review items", queue.as_str(), &[status.map(ReviewStatus::name)]);
        let range = match decode_page_token::<(i64, String)>(fingerprint, token)? {
            None => index::ReviewItemsByTime::all(queue).range(),
            Some((created, trace)) => {
                let trace = TraceId::parse(&trace).ok_or_else(|| Error::invalid("Invalid page token"))?;
                ranges::review_items_after(queue, created, &trace)
            }
        };
        let most = max_results.min(MAX_PAGE_ITEMS);
        let mut query = Query::of(range).whole().limit(most.saturating_add(1).min(BATCH_SIZE));
        let mut items: Vec<ReviewQueueItem> = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            let read = page.items.iter().map(item_of).collect::<Result<Vec<_>>>()?;
            items.extend(read.into_iter().filter(|item| status.is_none_or(|status| item.status == status)));
            match page.next.filter(|_| items.len() <= most) {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        let has_more = items.len() > most;
        items.truncate(most);
        let next_page_token = match items.last().filter(|_| has_more) {
            Some(last) => encode_page_token(fingerprint, &(last.creation_time_ms, &last.item_id))?,
            None => String::new(),
        };
        Ok(ReviewQueueItemsResponse { items, next_page_token })
    }
}

/// Page size for reading items from the table.
const BATCH_SIZE: usize = 1_001;
