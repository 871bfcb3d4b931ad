//! The data of the auth function: users and roles in the table of access, and the grants of users
//! themselves in that of data.

mod assignments;
mod first_roles;
mod form;
mod grants;
mod ids;
mod principals;
mod roles;
mod sessions;
mod tokens;
mod users;
mod workspaces;

use access::Scope;
use permissions::{Basic, Passwords};
use table::Table;

pub(crate) use first_roles::FirstRoles;
pub(crate) use grants::permissions_of;
pub use roles::StoredRole;
pub use sessions::{Ended, MOST_SESSIONS, SESSION};
pub use tokens::{MOST_TOKENS, NewToken};
pub use users::Found;
pub use workspaces::WorkspaceStore;

/// The store.
#[derive(Clone)]
pub struct Store {
    data: Table,
    access: Table,
    basic: Basic,
}

impl Store {
    /// A store over both tables, with the authorizer that reads them.
    #[must_use]
    pub fn new(data: Table, access: Table, basic: Basic) -> Self {
        Self { data, access, basic }
    }

    fn passwords(&self) -> &Passwords {
        self.basic.passwords()
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.data
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
