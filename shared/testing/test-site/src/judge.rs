//! An authorizer whose decisions a test defines.

use std::sync::Arc;

use access::{Action, AdmitEverybody, Arrived, Ask, Authorizer, Event, Guarded, Identity, Read, Visible};
use futures::future::BoxFuture;
use mlflow_api::Result;
use table::Write;

/// Returns an authorizer that refuses nothing.
pub fn everybody() -> Arc<dyn Authorizer> {
    Arc::new(AdmitEverybody)
}

type Ruling = Arc<dyn Fn(&Ask) -> bool + Send + Sync>;
type Writing = Arc<dyn Fn(&Identity, Event<'_>) -> Vec<Write> + Send + Sync>;

/// An authorizer that authenticates all callers as the same identity, and whose decisions a test
/// defines.
pub struct Judge {
    identity: Identity,
    visible: Visible,
    looks: bool,
    may: Ruling,
    may_further: Ruling,
    writes: Writing,
}

impl Judge {
    /// Returns an authorizer with these visible entities for lists. All other questions are decided
    /// individually, by action and guard.
    pub fn new(visible: Visible, may: impl Fn(&(Action, Guarded)) -> bool + Send + Sync + 'static) -> Self {
        Self::of_asks(visible, move |ask| may(&(ask.action, ask.guard.clone())))
    }

    /// Returns an authorizer that decides by everything that it is asked.
    pub fn of_asks(visible: Visible, may: impl Fn(&Ask) -> bool + Send + Sync + 'static) -> Self {
        let (may, writes): (Ruling, Writing) = (Arc::new(may), Arc::new(|_, _| Vec::new()));
        Self { identity: Identity::somebody(), visible, looks: false, may_further: Arc::clone(&may), may, writes }
    }

    /// Authenticates all callers as this identity.
    #[must_use]
    pub fn knowing(self, identity: Identity) -> Self {
        Self { identity, ..self }
    }

    /// Makes the table's items of guards available to the decisions.
    #[must_use]
    pub fn looking(self) -> Self {
        Self { looks: true, ..self }
    }

    /// Decides in another way what requests turn out to touch while they are answered.
    #[must_use]
    pub fn further(self, may: impl Fn(&Ask) -> bool + Send + Sync + 'static) -> Self {
        Self { may_further: Arc::new(may), ..self }
    }

    /// Adds these writes to those that create, rename or delete entities.
    #[must_use]
    pub fn writing(self, writes: impl Fn(&Identity, Event<'_>) -> Vec<Write> + Send + Sync + 'static) -> Self {
        Self { writes: Arc::new(writes), ..self }
    }
}

impl Authorizer for Judge {
    fn authenticate<'a>(&'a self, _: &'a Arrived) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async { Ok(self.identity.clone()) })
    }

    fn looks(&self) -> bool {
        self.looks
    }

    fn authorize<'a>(&'a self, _: &'a Identity, asked: &'a [Ask], _: &'a Read) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(asked.iter().map(|ask| (self.may)(ask)).collect()) })
    }

    fn authorize_further<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [Ask],
        _: &'a Read,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(asked.iter().map(|ask| (self.may_further)(ask)).collect()) })
    }

    fn visible<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async { Ok(self.visible.clone()) })
    }

    fn writes(&self, identity: &Identity, event: Event<'_>) -> Vec<Write> {
        (self.writes)(identity, event)
    }
}
