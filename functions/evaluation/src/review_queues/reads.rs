//! Reading review queues.

use access::{Action, Needs, Scope};
use mlflow_api::requests::review_queues as message;
use mlflow_api::review_queues::{ReviewQueueResponse, ReviewQueuesResponse};
use mlflow_api::{ExperimentId, Request, Result};
use search::check_page_token;
use service::Endpoint;

use super::queue_access::{check_sees, queue_needs, restricted_user, sees_all};
use crate::request_targets::ReviewQueueTarget;
use crate::store::{ReviewQueueConditions, Store};

/// Page size for requests without `max_results`.
pub(super) const DEFAULT_PAGE: usize = 1_000;

/// Returns the page size of a request.
pub(super) fn page_size(max_results: Option<i32>) -> usize {
    max_results.and_then(|results| usize::try_from(results).ok()).unwrap_or(DEFAULT_PAGE)
}

pub(crate) struct Get(ReviewQueueTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = ReviewQueueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneReviewQueue = request.read()?;
        Ok(Self(ReviewQueueTarget::of(message.queue_id)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueResponse> {
        let (experiment, queue) = self.0.granted(scope)?;
        let review_queue = store.review_queue_get(&experiment, &queue).await?;
        check_sees(scope, store, *experiment, &review_queue).await?;
        Ok(ReviewQueueResponse { review_queue })
    }
}

pub(crate) struct GetByName {
    experiment: ExperimentId,
    name: String,
}

impl Endpoint for GetByName {
    type Store = Store;
    type Answer = ReviewQueueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetReviewQueueByName = request.read()?;
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, name: message.name })
    }

    fn needs(&self) -> Needs {
        queue_needs(Action::Read, self.experiment)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueResponse> {
        let experiment = scope.experiment(self.experiment)?;
        let review_queue = store.review_queue_get_by_name(&experiment, &self.name).await?;
        check_sees(scope, store, self.experiment, &review_queue).await?;
        Ok(ReviewQueueResponse { review_queue })
    }
}

pub(crate) struct List {
    experiment: ExperimentId,
    conditions: ReviewQueueConditions,
    max_results: usize,
    page_token: String,
}

impl Endpoint for List {
    type Store = Store;
    type Answer = ReviewQueuesResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListReviewQueues = request.read()?;
        check_page_token(&message.page_token)?;
        Ok(Self {
            experiment: ExperimentId::parse(&message.experiment_id)?,
            conditions: ReviewQueueConditions { user: message.user, item: message.item_id, member: None },
            max_results: page_size(message.max_results),
            page_token: message.page_token,
        })
    }

    fn needs(&self) -> Needs {
        queue_needs(Action::Read, self.experiment)
    }

    /// Lists all queues to callers who may change them, and otherwise the queues that are assigned
    /// to the caller.
    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueuesResponse> {
        let experiment = scope.experiment(self.experiment)?;
        let member = restricted_user(scope).map(|user| user.name.to_string());
        let sees_all = sees_all(scope, store, self.experiment).await?;
        let conditions = ReviewQueueConditions { member: member.filter(|_| !sees_all), ..self.conditions };
        store.review_queue_list(&experiment, &conditions, self.max_results, &self.page_token).await
    }
}
