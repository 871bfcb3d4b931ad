//! Creating, changing and deleting review queues.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::requests::review_queues as message;
use mlflow_api::review_queues::{NewReviewQueue, ReviewQueueResponse, ReviewQueueType};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{ErrorCode, ExperimentId, Request, Result};
use service::Endpoint;

use super::queue_access::{check_is_no_user, check_manages, check_owns, check_owns_custom, user_name};
use crate::request_targets::ReviewQueueTarget;
use crate::store::{ReviewQueueChange, Store};

pub(crate) struct Create {
    experiment: ExperimentId,
    new: NewReviewQueue,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = ReviewQueueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateReviewQueue = request.read()?;
        let kind = ReviewQueueType::sent(message.queue_type)?;
        let new = NewReviewQueue::checked(kind, &message.name, &message.users, &message.schema_ids)?;
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(Target::Experiment(self.experiment), Resource::ReviewQueue)
    }

    /// The caller becomes the owner, even if the request names another user.
    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueResponse> {
        let experiment = scope.experiment(self.experiment)?;
        if self.new.kind == ReviewQueueType::Custom {
            check_is_no_user(scope, &self.new.name, "use a username as its name").await?;
        }
        let review_queue = store.review_queue_create(&experiment, &self.new, user_name(scope)).await?;
        Ok(ReviewQueueResponse { review_queue })
    }
}

pub(crate) struct GetOrCreateUser {
    experiment: ExperimentId,
    user: String,
}

impl Endpoint for GetOrCreateUser {
    type Store = Store;
    type Answer = ReviewQueueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetOrCreateUserQueue = request.read()?;
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, user: message.user })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(Target::Experiment(self.experiment), Resource::ReviewQueue)
    }

    /// The user in the request becomes the owner.
    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueResponse> {
        let experiment = scope.experiment(self.experiment)?;
        Ok(ReviewQueueResponse { review_queue: store.review_queue_get_or_create(&experiment, &self.user).await? })
    }
}

pub(crate) struct Modify {
    queue: ReviewQueueTarget,
    change: ReviewQueueChange,
}

impl Endpoint for Modify {
    type Store = Store;
    type Answer = ReviewQueueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateReviewQueue = request.read()?;
        let change = ReviewQueueChange {
            users: message.update_users.then_some(message.users),
            schema_ids: message.update_schema_ids.then_some(message.schema_ids),
            name: message.name,
            new_owner: message.new_owner,
        };
        Ok(Self { queue: ReviewQueueTarget::of(message.queue_id), change })
    }

    fn needs(&self) -> Needs {
        self.queue.needs(Action::Update)
    }

    /// Changing the owner of a queue requires the right to manage queues. Other changes only
    /// require owning the queue.
    async fn act(self, scope: &Scope, store: &Store) -> Result<ReviewQueueResponse> {
        let (experiment, queue) = self.queue.granted(scope)?;
        let stored = store.review_queue_get(&experiment, &queue).await?;
        if self.change.new_owner.is_some() {
            check_manages(scope, store, *experiment).await?;
        } else {
            check_owns(scope, store, *experiment, &stored).await?;
        }
        if let Some(name) = self.change.name.as_ref().filter(|_| stored.queue_type == ReviewQueueType::Custom) {
            check_is_no_user(scope, name, "be renamed to a username").await?;
        }
        let review_queue = store.review_queue_update(&experiment, &queue, &self.change).await?;
        Ok(ReviewQueueResponse { review_queue })
    }
}

pub(crate) struct Delete(ReviewQueueTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneReviewQueue = request.read()?;
        Ok(Self(ReviewQueueTarget::of(message.queue_id)))
    }

    /// The right to change queues is sufficient, because the owner of a custom queue may delete it.
    /// Whether the caller is the owner is checked later.
    fn needs(&self) -> Needs {
        self.0.needs(Action::Update)
    }

    /// Deleting a queue that does not exist is a no-op.
    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        if let Some((experiment, queue)) = self.0.known(scope)? {
            match store.review_queue_get(&experiment, &queue).await {
                Ok(stored) => {
                    check_owns_custom(scope, store, *experiment, &stored).await?;
                    store.review_queue_delete(&experiment, &queue).await?;
                }
                Err(error) if error.code == ErrorCode::ResourceDoesNotExist => {}
                Err(error) => return Err(error),
            }
        }
        Ok(EmptyResponse {})
    }
}
