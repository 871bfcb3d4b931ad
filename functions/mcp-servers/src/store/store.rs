//! The store of the MCP server registry, and the name of a request's caller.

use access::{AuthorizerWrites, Scope};
use table::Table;

/// The store of the MCP server registry. Cheap to clone. A process has one.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) authorizer_writes: AuthorizerWrites,
}

impl Store {
    /// Creates a store over the table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, authorizer_writes: AuthorizerWrites::nothing() }
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
