//! What a caller may do with a review queue. This depends on the queue's owner and on the users
//! that it is assigned to, so it is checked after the queue has been read.

use access::{Action, Needs, Resource, Scope, Target, User};
use mlflow_api::review_queues::{ReviewQueue, ReviewQueueType};
use mlflow_api::{Error, ExperimentId, Result, UserName, python};

use crate::store::Store;

/// Returns the need for an action on the review queues of an experiment.
pub(super) fn queue_needs(action: Action, experiment: ExperimentId) -> Needs {
    Needs::of_in(action, Resource::ReviewQueue, Target::Experiment(experiment))
}

/// Returns the caller if the caller's access depends on the owner and the users of a queue. Returns
/// `None` for administrators and on a server without users, because they may access all queues.
pub(super) fn restricted_user(scope: &Scope) -> Option<&User> {
    scope.caller().user().filter(|user| !user.is_admin)
}

/// Returns the name of the caller, if the caller is a user.
pub(super) fn user_name(scope: &Scope) -> Option<&str> {
    scope.caller().user().map(|user| user.name.as_str())
}

async fn may(scope: &Scope, store: &Store, action: Action, experiment: ExperimentId) -> Result<bool> {
    scope.is_allowed(service::DomainStore::table(store), &queue_needs(action, experiment)).await
}

/// Checks whether the caller may see all queues of an experiment in lists.
pub(super) async fn sees_all(scope: &Scope, store: &Store, experiment: ExperimentId) -> Result<bool> {
    match restricted_user(scope) {
        None => Ok(true),
        Some(_) => may(scope, store, Action::Update, experiment).await,
    }
}

/// Fails unless the caller owns the queue or may manage it. The request must already have been
/// authorized to change queues.
pub(super) async fn check_owns(
    scope: &Scope,
    store: &Store,
    experiment: ExperimentId,
    queue: &ReviewQueue,
) -> Result<()> {
    match restricted_user(scope) {
        Some(user) if !queue.is_owned_by(user.name.as_str()) => check_manages(scope, store, experiment).await,
        _ => Ok(()),
    }
}

/// Fails unless the caller owns the queue and it is a custom queue, or the caller may manage it.
/// The request must already have been authorized to change queues.
pub(super) async fn check_owns_custom(
    scope: &Scope,
    store: &Store,
    experiment: ExperimentId,
    queue: &ReviewQueue,
) -> Result<()> {
    if queue.queue_type == ReviewQueueType::Custom {
        return check_owns(scope, store, experiment, queue).await;
    }
    check_manages(scope, store, experiment).await
}

/// Fails unless the caller may manage queues of the experiment.
pub(super) async fn check_manages(scope: &Scope, store: &Store, experiment: ExperimentId) -> Result<()> {
    if restricted_user(scope).is_none() {
        return Ok(());
    }
    scope.require(service::DomainStore::table(store), &queue_needs(Action::Manage, experiment)).await
}

/// Fails unless the caller may see the queue: because it is assigned to the caller, because the
/// caller owns it and may change queues, or because the caller may manage it. The request must
/// already have been authorized to read queues.
pub(super) async fn check_sees(
    scope: &Scope,
    store: &Store,
    experiment: ExperimentId,
    queue: &ReviewQueue,
) -> Result<()> {
    let Some(user) = restricted_user(scope) else { return Ok(()) };
    let name = user.name.as_str();
    if queue.has_user(name) {
        return Ok(());
    }
    if queue.is_owned_by(name) && may(scope, store, Action::Update, experiment).await? {
        return Ok(());
    }
    check_manages(scope, store, experiment).await
}

/// Fails unless the queue is assigned to the caller. The right to manage the queue does not include
/// reviewing its items.
pub(super) fn check_reviews(scope: &Scope, experiment: ExperimentId, queue: &ReviewQueue) -> Result<()> {
    match restricted_user(scope) {
        Some(user) if !queue.has_user(user.name.as_str()) => {
            Err(scope.refusal(&queue_needs(Action::Update, experiment)))
        }
        _ => Ok(()),
    }
}

/// Rejects the name of a user as the name of a custom queue, because it is reserved for the user's
/// own queue. Checks for users with exactly this name, or with this name in lower case.
pub(super) async fn check_is_no_user(scope: &Scope, name: &str, change: &str) -> Result<()> {
    let name = python::strip(name);
    let lower = name.to_lowercase();
    for candidate in [Some(name), Some(lower.as_str()).filter(|lower| *lower != name)].into_iter().flatten() {
        let Some(user) = UserName::named(candidate) else { continue };
        if scope.is_user_name(&user).await? {
            return Err(Error::invalid(format!(
                "'{user}' is a registered user. A custom review queue cannot {change}; assign that user to a queue \
                 instead."
            )));
        }
    }
    Ok(())
}
