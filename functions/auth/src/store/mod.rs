//! The store of the auth function: users and roles in the access table, and direct grants of users
//! in the data table.

mod assignments;
mod configuration;
mod csrf_tokens;
mod default_roles;
mod grants;
mod identities;
mod identity_rows;
mod imports;
mod integer_ids;
mod logins;
mod machine_tokens;
mod memberships;
mod principals;
mod renewal_rows;
mod renewals;
mod roles;
mod sessions;
mod shared_secrets;
mod sign_on;
mod times;
mod tokens;
mod users;
mod workspaces;

use access::Scope;
use permissions::{PasswordPolicy, Passwords, UserAuthorizer};
use table::Table;

pub(crate) use default_roles::DefaultRoles;
pub(crate) use grants::permissions_of;
pub use identities::MAX_IDENTITIES;
pub use imports::Imported;
pub use logins::{LOGIN_INTERVAL_SECONDS, LOGIN_SECONDS, LoginTaken, NewLogin, StoredLogin};
pub use machine_tokens::MAX_MACHINE_TOKENS;
pub use renewal_rows::MAX_SEALED_BYTES;
pub use renewals::{CLAIM_SECONDS, ClaimedRenewal, POSTPONEMENT_SECONDS, RenewalClaim};
pub use roles::StoredRole;
pub use sessions::{EndedCredentials, MAX_SESSIONS, SESSION_SECONDS};
pub use sign_on::{NewRenewal, NewSsoSession, SsoUser, renew_by_after};
pub use tokens::{MAX_TOKENS, NewToken};
pub use users::StoredUser;
pub use workspaces::WorkspaceStore;

use crate::sign_on::services::SignOnServices;

/// The store of users, roles and grants.
#[derive(Clone)]
pub struct Store {
    data: Table,
    access: Table,
    authorizer: UserAuthorizer,
    sign_on: SignOnServices,
}

impl Store {
    /// Returns a store over both tables. `basic` is the authorizer that reads them.
    #[must_use]
    pub fn new(data: Table, access: Table, basic: UserAuthorizer) -> Self {
        Self { data, access, authorizer: basic, sign_on: SignOnServices::default() }
    }

    /// Sets the services with which users sign in at identity providers.
    #[must_use]
    pub fn with_sign_on(self, sign_on: SignOnServices) -> Self {
        Self { sign_on, ..self }
    }

    /// Returns the services with which users sign in at identity providers.
    pub(crate) fn sign_on(&self) -> &SignOnServices {
        &self.sign_on
    }

    fn passwords(&self) -> &Passwords {
        self.authorizer.passwords()
    }

    /// Returns which users may authenticate with a password.
    #[must_use]
    pub fn password_policy(&self) -> &PasswordPolicy {
        self.authorizer.password_policy()
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
