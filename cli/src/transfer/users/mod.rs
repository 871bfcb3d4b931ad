//! Users of MLflow's basic authentication (`basic_auth.db`), with their roles and grants.
//!
//! Users are created without passwords, because MLflow's password hashes have a different format.
//! An administrator sets a password for each user, or invites the user to sign up. Users and roles
//! that this server already has are left alone, so that the command can be repeated.

mod database_reader;
mod importer;
mod record;

pub(crate) use database_reader::UserDatabase;
pub(crate) use importer::import;
use record::{GrantRecord, RoleRecord, UserRecord};

/// Name of users in reports.
const USERS: &str = "users";
/// Name of roles in reports.
const ROLES: &str = "roles";
/// Name of grants in reports.
const GRANTS: &str = "grants";
