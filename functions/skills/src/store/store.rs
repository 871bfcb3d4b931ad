//! The store, and the name of a request's caller.

use access::{AuthorizerWrites, Scope};
use artifact_store::ArtifactStore;
use mlflow_api::skills::ContentLimits;
use table::Table;

/// The store of the skill registry. Cheap to clone. A process has one.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) artifacts: ArtifactStore,
    limits: ContentLimits,
    pub(super) authorizer_writes: AuthorizerWrites,
}

impl Store {
    /// Creates a store over the table and the server's artifacts, with limits on uploaded content.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore, limits: ContentLimits) -> Self {
        Self { table, artifacts, limits, authorizer_writes: AuthorizerWrites::nothing() }
    }

    /// Returns the limits on uploaded content.
    #[must_use]
    pub fn limits(&self) -> ContentLimits {
        self.limits
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, scope: &Scope) -> Self {
        Self { authorizer_writes: scope.authorizer_writes().clone(), ..self.clone() }
    }
}

/// Returns the name of the caller, if the caller is a user.
pub(crate) fn caller_name(scope: &Scope) -> Option<&str> {
    scope.caller().user().map(|user| user.name.as_str())
}
