//! Authentication and authorization of users: MLflow's basic authentication (`mlflow/server/auth`).
//!
//! [`Basic`] is the authorizer. It identifies a user by name and password ([`Passwords`]), or by a
//! session or a token ([`Secret`]). It reads the user's grants together with the guards of the
//! request, unless they were read less than [`LEASE`] ago. Its decisions follow rules that do not
//! access any table: [`rules`] defines what an operation requires, and [`grants`] decides whether a
//! user's grants satisfy that. The types of grants are in `shared/language/mlflow-api/src/auth.rs`.
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

mod attempts;
mod basic;
mod callers;
pub mod cookies;
mod found;
pub mod grants;
mod held;
mod keep;
mod known;
pub mod page;
mod passwords;
mod place;
mod recent;
mod resources;
mod rules;
mod secret;
mod sent;
mod sight;
mod signed;
mod users;

pub use basic::Basic;
pub use cookies::Cookies;
pub use found::Signed;
pub use held::Memberships;
pub use keep::{Kept, KeptGrant, granted_in, granted_key, type_levels, unknown_key};
pub use passwords::{PasswordHash, Passwords};
pub use place::{Place, Places};
pub use recent::LEASE;
pub use rules::{Act, Requirement, Rule, canonical, rule_of, scorer_of};
pub use secret::Secret;
pub use signed::{Token, session_key, token_key};
pub use users::{Account, RoleGrant, role_grants};
