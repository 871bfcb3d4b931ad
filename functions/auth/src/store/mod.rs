//! The store of the auth function: users and roles in the access table, and direct grants of users
//! in the data table.

mod assignments;
mod csrf_tokens;
mod default_roles;
mod grants;
mod imports;
mod integer_ids;
mod principals;
mod roles;
mod sessions;
mod tokens;
mod users;
mod workspaces;

use access::Scope;
use permissions::{Passwords, UserAuthorizer};
use table::Table;

pub(crate) use default_roles::DefaultRoles;
pub(crate) use grants::permissions_of;
pub use imports::Imported;
pub use roles::StoredRole;
pub use sessions::{EndedCredentials, MAX_SESSIONS, SESSION_SECONDS};
pub use tokens::{MAX_TOKENS, NewToken};
pub use users::StoredUser;
pub use workspaces::WorkspaceStore;

/// The store of users, roles and grants.
#[derive(Clone)]
pub struct Store {
    data: Table,
    access: Table,
    authorizer: UserAuthorizer,
}

impl Store {
    /// Returns a store over both tables. `basic` is the authorizer that reads them.
    #[must_use]
    pub fn new(data: Table, access: Table, basic: UserAuthorizer) -> Self {
        Self { data, access, authorizer: basic }
    }

    fn passwords(&self) -> &Passwords {
        self.authorizer.passwords()
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.data
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
