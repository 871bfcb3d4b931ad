//! Endpoints for the items of review queues.

use access::{Action, Needs, Scope};
use mlflow_api::requests::review_queues as message;
use mlflow_api::review_queues::{
    AddedItemsResponse, ReviewQueueItemResponse, ReviewQueueItemsResponse, ReviewStatus, normalized_item_ids,
    normalized_user,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result, python};
use search::check_page_token;
use service::Endpoint;

use super::queue_access::{check_owns_custom, check_reviews, check_sees, user_name};
use super::reads::page_size;
use crate::request_targets::ReviewQueueTarget;
use crate::store::Store;

pub(crate) struct AddItems {
    queue: ReviewQueueTarget,
    items: Vec<String>,
}

impl Endpoint for AddItems {
    type Store = Store;
    type Answer = AddedItemsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::AddReviewItems = request.read()?;
        Ok(Self { queue: ReviewQueueTarget::of(message.queue_id), items: normalized_item_ids(&message.item_ids)? })
    }

    fn needs(&self) -> Needs {
        self.queue.needs(Action::Update)
    }

    /// Needs no permission on the traces, because the store only adds traces of the queue's
    /// experiment.
    async fn act(self, scope: &Scope, store: &Store) -> Result<AddedItemsResponse> {
        let (experiment, queue) = self.queue.granted(scope)?;
        Ok(AddedItemsResponse { items: store.review_items_add(&experiment, &queue, &self.items).await? })
    }
}

pub(crate) struct RemoveItems {
    queue: ReviewQueueTarget,
    items: Vec<String>,
}

impl Endpoint for RemoveItems {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::RemoveReviewItems = request.read()?;
        Ok(Self { queue: ReviewQueueTarget::of(message.queue_id), items: normalized_item_ids(&message.item_ids)? })
    }

    fn needs(&self) -> Needs {
        self.queue.needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let (experiment, queue) = self.queue.granted(scope)?;
        let stored = store.review_queue_get(&experiment, &queue).await?;
        check_owns_custom(scope, store, *experiment, &stored).await?;
        store.review_items_remove(&experiment, &queue, &self.items).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct ListItems {
    queue: ReviewQueueTarget,
    status: Option<ReviewStatus>,
    max_results: usize,
    page_token: String,
}

impl Endpoint for ListItems {
    type Store = Store;
    type Answer = ReviewQueueItemsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListReviewItems = request.read()?;
        check_page_token(&message.page_token)?;
        Ok(Self {
            queue: ReviewQueueTarget::of(message.queue_id),
            status: message.status,
            max_results: page_size(message.max_results),
            page_token: message.page_token,
        })
    }

    fn needs(&self) -> Needs {
        self.queue.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueItemsResponse> {
        let (experiment, queue) = self.queue.granted(scope)?;
        let stored = store.review_queue_get(&experiment, &queue).await?;
        check_sees(scope, store, *experiment, &stored).await?;
        store.review_items_list(&experiment, &queue, self.status, self.max_results, &self.page_token).await
    }
}

pub(crate) struct SetStatus {
    queue: ReviewQueueTarget,
    item: String,
    status: ReviewStatus,
    completed_by: Option<String>,
}

impl Endpoint for SetStatus {
    type Store = Store;
    type Answer = ReviewQueueItemResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SetReviewStatus = request.read()?;
        Ok(Self {
            queue: ReviewQueueTarget::of(message.queue_id),
            item: python::strip(&message.item_id).to_owned(),
            status: ReviewStatus::sent(message.status)?,
            completed_by: message.completed_by,
        })
    }

    fn needs(&self) -> Needs {
        self.queue.needs(Action::Update)
    }

    /// The caller is recorded as the user who has set the status. Only on a server without users,
    /// the user in the request is recorded instead.
    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueItemResponse> {
        let completed_by = match user_name(scope) {
            Some(user) => (self.status != ReviewStatus::Pending).then(|| normalized_user(user)),
            None => self.status.completed_by(self.completed_by.as_deref())?,
        };
        let (experiment, queue) = self.queue.granted(scope)?;
        let stored = store.review_queue_get(&experiment, &queue).await?;
        check_reviews(scope, *experiment, &stored)?;
        let item =
            store.review_item_set_status(&experiment, &queue, &self.item, self.status, completed_by.as_deref()).await?;
        Ok(ReviewQueueItemResponse { item })
    }
}
