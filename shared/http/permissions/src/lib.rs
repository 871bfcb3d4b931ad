//! Authentication and authorization of users: MLflow's basic authentication (`mlflow/server/auth`).
//!
//! [`UserAuthorizer`] is the authorizer. It identifies a user by name and password ([`Passwords`]),
//! or by a session or a token ([`UserSecret`]). A session that was opened by single sign-on is bound
//! to an identity of the user, and has to be renewed ([`SessionState`]). It reads the user's grants together with the guards
//! of the request, unless they were read less than [`LEASE`] ago. Its decisions follow rules that
//! do not access any table: [`rules`] defines what an operation requires, and [`grants`] decides
//! whether a user's grants satisfy the requirements. The types of grants are in
//! `shared/language/mlflow-api/src/auth.rs`.
//!
//! Callers that are admitted, and their rights:
//!
//! | in AWS: `Authorization`, `AccessMode`, `Users` | `ACCESS_MODE` | `serve` | rights of callers |
//! |---|---|---|---|
//! | `AWS_IAM`, `none`, `off` | `none` | `--auth none` | every admitted caller has full access |
//! | `NONE`, `none`, `off` | `none` | | everyone is admitted and has full access |
//! | `NONE`, `basic`, `off` | `basic` | `--auth basic` | users, limited by their grants |
//! | `AWS_IAM`, `none`, `on` | `both` | | Users sign in at the second API. At the first, an IAM principal acts as the user it is mapped to, or has full access if it is not mapped. |
//!
//! A **known caller** is one whose credentials this process has verified before. A **principal** is
//! an IAM user or role.

pub mod browser_pages;
mod caller_cache;
mod callers;
pub mod cookies;
mod effective_grants;
mod expiry;
pub mod grants;
mod identification;
mod item_cache;
mod password_attempts;
mod password_policy;
mod passwords;
mod request_credentials;
mod resources;
mod rules;
mod secret;
mod sessions_and_tokens;
mod stored_grants;
mod user_authorizer;
mod users;
mod visibility;
mod workspace_ref;

pub use callers::{RENEW, SESSION_HEADER};
pub use cookies::Cookies;
pub use effective_grants::Memberships;
pub use identification::SignedRequests;
pub use item_cache::LEASE;
pub use password_policy::PasswordPolicy;
pub use passwords::{PasswordHash, Passwords};
pub use rules::{RequiredAction, Requirement, Rule, canonical, rule_of, scorer_of};
pub use secret::UserSecret;
pub use sessions_and_tokens::{
    SessionState, Token, identity_binding, session_identity, session_key, session_state, token_key,
};
pub use stored_grants::{
    GrantedResource, StoredGrant, grant_key, grant_resource_id, missing_resource_grant_key, type_levels,
};
pub use user_authorizer::UserAuthorizer;
pub use users::{Account, RoleGrant, role_grants};
pub use workspace_ref::{WorkspaceRef, WorkspaceRefs};
