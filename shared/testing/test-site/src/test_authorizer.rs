//! An authorizer whose decisions a test defines.

use std::sync::Arc;

use access::{
    AccessCheck, Action, AllowAll, Authorizer, AuthorizerItems, EntityEvent, Guard, Identity, RequestHead, Visibility,
};
use futures::future::BoxFuture;
use mlflow_api::Result;
use table::Write;

/// Returns an authorizer that allows everything.
pub fn everybody() -> Arc<dyn Authorizer> {
    Arc::new(AllowAll)
}

type DecisionFunction = Arc<dyn Fn(&AccessCheck) -> bool + Send + Sync>;
type WritesFunction = Arc<dyn Fn(&Identity, EntityEvent<'_>) -> Vec<Write> + Send + Sync>;

/// An authorizer that authenticates all callers as the same identity, and whose decisions a test
/// defines.
pub struct TestAuthorizer {
    identity: Identity,
    visible: Visibility,
    looks: bool,
    may: DecisionFunction,
    may_further: DecisionFunction,
    writes: WritesFunction,
}

impl TestAuthorizer {
    /// Returns an authorizer for which lists show the entities in `visible`, and `may` decides all
    /// other checks, given their action and guard.
    pub fn new(visible: Visibility, may: impl Fn(&(Action, Guard)) -> bool + Send + Sync + 'static) -> Self {
        Self::of_asks(visible, move |ask| may(&(ask.action, ask.guard.clone())))
    }

    /// Returns an authorizer whose decisions can depend on the complete [`AccessCheck`].
    pub fn of_asks(visible: Visibility, may: impl Fn(&AccessCheck) -> bool + Send + Sync + 'static) -> Self {
        let (may, writes): (DecisionFunction, WritesFunction) = (Arc::new(may), Arc::new(|_, _| Vec::new()));
        Self { identity: Identity::anonymous(), visible, looks: false, may_further: Arc::clone(&may), may, writes }
    }

    /// Authenticates all callers as this identity.
    #[must_use]
    pub fn knowing(self, identity: Identity) -> Self {
        Self { identity, ..self }
    }

    /// Makes the server read the stored items of guards for this authorizer, as it does for
    /// authorizers that check them.
    #[must_use]
    pub fn looking(self) -> Self {
        Self { looks: true, ..self }
    }

    /// Sets a separate decision for entities whose involvement is only discovered while a request
    /// is processed.
    #[must_use]
    pub fn further(self, may: impl Fn(&AccessCheck) -> bool + Send + Sync + 'static) -> Self {
        Self { may_further: Arc::new(may), ..self }
    }

    /// Adds writes to the transactions that create, rename or delete entities.
    #[must_use]
    pub fn writing(self, writes: impl Fn(&Identity, EntityEvent<'_>) -> Vec<Write> + Send + Sync + 'static) -> Self {
        Self { writes: Arc::new(writes), ..self }
    }
}

impl Authorizer for TestAuthorizer {
    fn authenticate<'a>(&'a self, _: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async { Ok(self.identity.clone()) })
    }

    fn checks_guards(&self) -> bool {
        self.looks
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [AccessCheck],
        _: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(asked.iter().map(|ask| (self.may)(ask)).collect()) })
    }

    fn authorize_further<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [AccessCheck],
        _: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(asked.iter().map(|ask| (self.may_further)(ask)).collect()) })
    }

    fn visibility<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        Box::pin(async { Ok(self.visible.clone()) })
    }

    fn writes(&self, identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
        (self.writes)(identity, event)
    }
}
