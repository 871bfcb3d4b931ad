//! Who users are, what they are granted, and what follows from that: MLflow's basic authentication
//! (`mlflow/server/auth`).
//!
//! [`Basic`] is the authorizer. It finds a user by a name and a password ([`Passwords`]), or by a
//! session or a token ([`Secret`]). It reads the user's grants together with the guards of the
//! request, unless it read them less than [`LEASE`] ago. It decides by rules that know no table:
//! [`rules`] says what an operation requires, [`grants`] what grants say of that. The types of
//! grants are in `shared/language/mlflow-api/src/auth.rs`.
//!
//! Who is admitted, and the rights of callers:
//!
//! | in AWS: `Authorization`, `AccessMode`, `Users` | `ACCESS_MODE` | `serve` | rights of callers |
//! |---|---|---|---|
//! | `AWS_IAM`, `none`, `off` | `none` | `--auth none` | every admitted caller may do everything |
//! | `NONE`, `none`, `off` | `none` | | everybody is admitted, and may do everything |
//! | `NONE`, `basic`, `off` | `basic` | `--auth basic` | users, by their grants |
//! | `AWS_IAM`, `none`, `on` | `both` | | at the second API users; at the first, a signer is a user, or may do everything |
//!
//! A **known caller** is one whose credentials this process has found to be right before. A
//! **principal** is a user or a role of AWS.

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
