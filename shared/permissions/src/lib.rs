//! Who users are, what they are granted, and what follows from that: MLflow's basic authentication (`mlflow/server/auth`).
//!
//! [`Basic`] is the authorizer. It finds a user by his name and password ([`Passwords`]), reads what he is granted with the guards of his
//! request, and decides by rules that know no table: [`rules`] says what an operation requires, [`grants`] what grants say of that.

mod basic;
pub mod grants;
mod keep;
mod passwords;
mod rules;
mod sight;
mod users;

pub use basic::{Basic, unauthenticated};
pub use keep::{Kept, KeptGrant, granted_key, type_levels, unknown_key};
pub use passwords::{PasswordHash, Passwords};
pub use rules::{Act, Requirement, Rule, rule_of, scorer_of};
pub use users::{Account, RoleGrant, role_grants};
