//! The interface of authorizers: they decide who is calling, and what callers may do.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use mlflow_api::Result;
use table::{Table, TableKey, Write};

use crate::guard::{Ask, Guarded, Read};
use crate::identity::{Arrived, Identity};
use crate::kind::Resource;

/// A list that may show up to so many entities is short: their guards are read with one request.
const FEW: usize = 100;

/// Decides what lists may show to one caller, where rules decide that and no set.
pub trait Sight: Send + Sync + fmt::Debug {
    /// Whether an entity of this kind may be shown that this guards.
    fn shows(&self, kind: Resource, guarded: &Guarded) -> bool;

    /// Every guard of this kind that may be shown, where it knows them all. For scorers, an experiment stands for all of its scorers.
    fn all(&self, kind: Resource) -> Option<Vec<Guarded>>;
}

/// The entities that a list may show.
#[derive(Clone, Debug, Default)]
pub enum Visible {
    /// Everything in the workspace.
    #[default]
    Everything,
    /// The entities that these guard, and no others. An experiment shows its scorers, too.
    Only(Arc<HashSet<Guarded>>),
    /// The entities that rules admit.
    Which(Arc<dyn Sight>),
}

impl Visible {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Only(Arc::default())
    }

    /// Whether a list may show the entities of this guard. A search asks before it counts an item
    /// for its page. So pages are full, and a token gives nothing away.
    #[must_use]
    pub fn shows(&self, guarded: &Guarded) -> bool {
        self.shows_as(guarded.resource(), guarded)
    }

    /// The same of an entity of another kind than its guard, such as a prompt.
    #[must_use]
    pub fn shows_as(&self, kind: Resource, guarded: &Guarded) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(some) => match guarded {
                Guarded::Scorer(experiment, _) => {
                    some.contains(guarded) || some.contains(&Guarded::Experiment(*experiment))
                }
                _ => some.contains(guarded),
            },
            Self::Which(sight) => sight.shows(kind, guarded),
        }
    }

    /// Every guard of a kind that may be shown, in any order, if these are at most a hundred: then a search looks at them, and not at all
    /// that there is. For scorers, an experiment stands for all of its scorers.
    #[must_use]
    pub fn few(&self, kind: Resource) -> Option<Vec<Guarded>> {
        let all = match self {
            Self::Everything => None,
            Self::Only(some) => {
                let is_of = |guarded: &Guarded| {
                    let resource = guarded.resource();
                    resource == kind || (kind, resource) == (Resource::Scorer, Resource::Experiment)
                };
                Some(some.iter().filter(|guarded| is_of(guarded)).cloned().collect())
            }
            Self::Which(sight) => sight.all(kind),
        };
        all.filter(|all: &Vec<_>| all.len() <= FEW)
    }
}

/// A change of a guarded entity. An authorizer may have to write something then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It was created.
    Created {
        /// As an entity of this kind.
        kind: Resource,
        /// It.
        guarded: &'a Guarded,
        /// The id that tells it from others that had its name before.
        id: &'a str,
        /// The name that its rows are kept under.
        home: &'a str,
    },
    /// It is called otherwise now.
    Renamed(&'a Guarded, &'a Guarded),
    /// It was deleted. An experiment's deletion can be undone.
    Deleted(&'a Guarded),
}

/// Decides who is calling and what callers may do. One per process.
pub trait Authorizer: Send + Sync {
    /// The sender of a request, as far as the process knows. Its earlier knowledge counts only once
    /// [`read`](Self::read) or [`confirm`](Self::confirm) has looked again.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, where the sender is not known.
    fn authenticate<'a>(&'a self, arrived: &'a Arrived) -> BoxFuture<'a, Result<Identity>>;

    /// Whether there are workspaces other than the default one. If there are none, a request that
    /// names any is refused.
    fn has_workspaces(&self) -> bool {
        false
    }

    /// Whether it needs the table's items of guards. If so, they are looked up with one more
    /// request. If not, nothing is read for it.
    fn looks(&self) -> bool {
        true
    }

    /// The current state of the caller, of guards, and of other items that the authorizer wants.
    /// One request to DynamoDB, or none where all of it was read a moment ago. One more each time
    /// that the caller turns out to have changed.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, where the caller's credentials are no longer valid.
    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guarded],
    ) -> BoxFuture<'a, Result<(Identity, Read)>> {
        Box::pin(async move {
            let key = |guard: &Guarded| guard.key(&identity.workspace).map(TableKey::here);
            let keys: Vec<_> = guards.iter().filter_map(key).collect();
            let read = if keys.is_empty() { Read::new() } else { table.get_together(&keys).await? };
            Ok((identity, read))
        })
    }

    /// The caller as the tables say it now, where there is nothing else to read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn confirm(&self, identity: Identity) -> BoxFuture<'_, Result<Identity>> {
        Box::pin(async { Ok(identity) })
    }

    /// For each of these, whether the caller may do it.
    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [Ask],
        read: &'a Read,
    ) -> BoxFuture<'a, Result<Vec<bool>>>;

    /// The same for what a request turns out to touch while it is answered. A refusal does not
    /// refuse the request as a whole.
    fn authorize_further<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [Ask],
        read: &'a Read,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        self.authorize(identity, asked, read)
    }

    /// The entities that lists may show to the caller.
    fn visible<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visible>>;

    /// The writes that it adds to the transaction that creates, renames or deletes something.
    fn writes(&self, identity: &Identity, event: Event<'_>) -> Vec<Write> {
        let _ = (identity, event);
        Vec::new()
    }
}

/// Lets everybody do everything: the gateway has admitted each caller, or he is on the same
/// machine.
#[derive(Clone, Copy, Debug)]
pub struct AdmitEverybody;

impl AdmitEverybody {
    /// As frames and scopes take it.
    #[must_use]
    pub fn shared() -> Arc<dyn Authorizer> {
        Arc::new(Self)
    }
}

impl Authorizer for AdmitEverybody {
    fn authenticate<'a>(&'a self, _: &'a Arrived) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async { Ok(Identity::somebody()) })
    }

    fn looks(&self) -> bool {
        false
    }

    fn authorize<'a>(&'a self, _: &'a Identity, asked: &'a [Ask], _: &'a Read) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async { Ok(vec![true; asked.len()]) })
    }

    fn visible<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async { Ok(Visible::Everything) })
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::ExperimentId;

    use super::*;

    #[test]
    fn what_may_be_shown_can_be_named_where_it_is_little() {
        let experiment = |number: u64| Guarded::Experiment(ExperimentId::from_number(number).unwrap());
        let only = |numbers: std::ops::Range<u64>| Visible::Only(Arc::new(numbers.map(experiment).collect()));
        assert!(Visible::Everything.few(Resource::Experiment).is_none());
        assert_eq!(only(7..8).few(Resource::Experiment), Some(vec![experiment(7)]));
        assert_eq!(only(7..8).few(Resource::RegisteredModel), Some(Vec::new()));
        assert!(only(0..101).few(Resource::Experiment).is_none());
        assert!(only(7..8).shows(&experiment(7)) && !Visible::nothing().shows(&experiment(7)));
    }
}
