//! The interface of authorizers, which authenticate callers and decide what they may do.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use mlflow_api::{Result, UserName};
use table::{Table, TableKey, Write};

use crate::action::{Action, Resource};
use crate::guard::{AccessCheck, AuthorizerItems, Guard};
use crate::identity::{Identity, RequestHead};

/// Maximum number of guards that a list enumerates up front instead of checking each entity that it
/// finds. A single request to DynamoDB reads at most this many items.
const MAX_ENUMERATED_GUARDS: usize = 100;

/// Decides which entities lists may show to a caller, for callers whose visible entities follow
/// from rules and are not enumerated.
pub trait VisibilityRules: Send + Sync + fmt::Debug {
    /// Checks whether an entity of this kind with this guard may be shown.
    fn shows(&self, kind: Resource, guarded: &Guard) -> bool;

    /// Checks whether the caller may perform an action on an entity of this kind with this guard.
    fn allows(&self, action: Action, kind: Resource, guarded: &Guard) -> bool {
        !action.writes() && self.shows(kind, guarded)
    }

    /// Returns every guard of this kind whose entities may be shown, or `None` if the guards cannot
    /// be enumerated. For scorers, an experiment stands for all of its scorers.
    fn all(&self, kind: Resource) -> Option<Vec<Guard>>;
}

/// The entities that a list may show.
#[derive(Clone, Debug, Default)]
pub enum Visibility {
    /// Everything in the workspace.
    #[default]
    Everything,
    /// Only the entities with these guards. An experiment in the set also covers its scorers.
    Only(Arc<HashSet<Guard>>),
    /// The entities that match rules.
    Matching(Arc<dyn VisibilityRules>),
}

impl Visibility {
    /// Returns the visibility of a caller to whom lists show no entities.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Only(Arc::default())
    }

    /// Checks whether a list may show the entities of this guard. A search checks an item before
    /// counting it towards the page. This way pages are full, and a page token reveals nothing
    /// about hidden items.
    #[must_use]
    pub fn shows(&self, guarded: &Guard) -> bool {
        self.shows_as(guarded.resource(), guarded)
    }

    /// Checks whether a list may show entities of `kind` under this guard. The kind may differ from
    /// the guard's: prompts, for example, are guarded by [`Guard::RegisteredModel`].
    #[must_use]
    pub fn shows_as(&self, kind: Resource, guarded: &Guard) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(some) => match guarded {
                Guard::Scorer(experiment, _) => {
                    some.contains(guarded) || some.contains(&Guard::Experiment(*experiment))
                }
                _ => some.contains(guarded),
            },
            Self::Matching(sight) => sight.shows(kind, guarded),
        }
    }

    /// Checks whether the caller may perform an action on an entity of `kind` under this guard. An
    /// authorizer that only enumerates what it shows allows no changes.
    pub(crate) fn allows(&self, action: Action, kind: Resource, guarded: &Guard) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(_) => !action.writes() && self.shows_as(kind, guarded),
            Self::Matching(rules) => rules.allows(action, kind, guarded),
        }
    }

    /// Returns every guard of a kind whose entities may be shown, in any order. Returns `None` if
    /// there are more than 100, or if they cannot be enumerated. With the list, a search can look
    /// up the entities of these guards instead of checking all entities. For scorers, an experiment
    /// stands for all of its scorers.
    #[must_use]
    pub fn enumerate_guards(&self, kind: Resource) -> Option<Vec<Guard>> {
        let all = match self {
            Self::Everything => None,
            Self::Only(some) => {
                let is_of = |guarded: &Guard| {
                    let resource = guarded.resource();
                    resource == kind || (kind, resource) == (Resource::Scorer, Resource::Experiment)
                };
                Some(some.iter().filter(|guarded| is_of(guarded)).cloned().collect())
            }
            Self::Matching(sight) => sight.all(kind),
        };
        all.filter(|all: &Vec<_>| all.len() <= MAX_ENUMERATED_GUARDS)
    }
}

/// A change of a guarded entity, in response to which an authorizer may write items of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityEvent<'a> {
    /// The entity was created.
    Created {
        /// Kind of the entity.
        kind: Resource,
        /// Guard of the entity.
        guarded: &'a Guard,
        /// Id that distinguishes the entity from earlier ones with the same name.
        id: &'a str,
        /// Name that the entity's rows are stored under.
        home: &'a str,
    },
    /// The entity was renamed, from the first name to the second.
    Renamed(&'a Guard, &'a Guard),
    /// The entity was deleted. Deleted experiments can be restored.
    Deleted(&'a Guard),
}

/// Authenticates callers and decides what they may do. There is one per process.
pub trait Authorizer: Send + Sync {
    /// Identifies the sender of a request. The identity may come from this process's cache, and is
    /// provisional until [`read`](Self::read) or [`confirm`](Self::confirm) has verified it.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the sender cannot be identified.
    fn authenticate<'a>(&'a self, arrived: &'a RequestHead) -> BoxFuture<'a, Result<Identity>>;

    /// Checks whether there are workspaces other than the default one. If not, requests that name a
    /// workspace are rejected.
    fn has_workspaces(&self) -> bool {
        false
    }

    /// Checks whether the authorizer needs the stored items of guards. If it does, reading them
    /// takes one more request; otherwise, they are not read.
    fn checks_guards(&self) -> bool {
        true
    }

    /// Reads the current state of the caller, of guards, and of other items that the authorizer
    /// needs. Takes one request to DynamoDB, or none if all items are cached. Each time the caller
    /// turns out to have changed, one more request is sent.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the caller's credentials are no longer valid.
    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guard],
    ) -> BoxFuture<'a, Result<(Identity, AuthorizerItems)>> {
        Box::pin(async move {
            let key = |guard: &Guard| guard.key(&identity.workspace).map(TableKey::here);
            let keys: Vec<_> = guards.iter().filter_map(key).collect();
            let read = if keys.is_empty() { AuthorizerItems::new() } else { table.get_together(&keys).await? };
            Ok((identity, read))
        })
    }

    /// Verifies the caller against the current state of the tables. Used if nothing else has to be
    /// read.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if the caller's credentials are no longer valid.
    fn confirm(&self, identity: Identity) -> BoxFuture<'_, Result<Identity>> {
        Box::pin(async { Ok(identity) })
    }

    /// Decides for each access check whether the caller may perform its action.
    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>>;

    /// Decides access checks on entities that are discovered only while the request is processed.
    /// The endpoint decides what a refusal means, so it does not fail the request.
    fn authorize_further<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        self.authorize(identity, asked, read)
    }

    /// Returns the entities that lists may show to the caller.
    fn visibility<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visibility>>;

    /// Checks whether a user has this name. Takes one request if the server has users.
    fn is_user_name<'a>(&'a self, name: &'a UserName) -> BoxFuture<'a, Result<bool>> {
        let _ = name;
        Box::pin(async { Ok(false) })
    }

    /// Returns the writes to add to the transaction that creates, renames or deletes an entity.
    fn writes(&self, identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
        let _ = (identity, event);
        Vec::new()
    }
}

/// Allows everything to every caller. The gateway has already admitted the caller, or the caller is
/// on the same machine.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

impl AllowAll {
    /// Returns a shared instance, as routers and scopes expect it.
    #[must_use]
    pub fn shared() -> Arc<dyn Authorizer> {
        Arc::new(Self)
    }
}

impl Authorizer for AllowAll {
    fn authenticate<'a>(&'a self, _: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async { Ok(Identity::anonymous()) })
    }

    fn checks_guards(&self) -> bool {
        false
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [AccessCheck],
        _: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async { Ok(vec![true; asked.len()]) })
    }

    fn visibility<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        Box::pin(async { Ok(Visibility::Everything) })
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::ExperimentId;

    use super::*;

    #[test]
    fn what_may_be_shown_can_be_named_where_it_is_little() {
        let experiment = |number: u64| Guard::Experiment(ExperimentId::from_number(number).unwrap());
        let only = |numbers: std::ops::Range<u64>| Visibility::Only(Arc::new(numbers.map(experiment).collect()));
        assert!(Visibility::Everything.enumerate_guards(Resource::Experiment).is_none());
        assert_eq!(only(7..8).enumerate_guards(Resource::Experiment), Some(vec![experiment(7)]));
        assert_eq!(only(7..8).enumerate_guards(Resource::RegisteredModel), Some(Vec::new()));
        assert!(only(0..101).enumerate_guards(Resource::Experiment).is_none());
        assert!(only(7..8).shows(&experiment(7)) && !Visibility::nothing().shows(&experiment(7)));
    }
}
