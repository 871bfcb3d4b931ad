//! Users, roles and their grants: the names and the answers of `mlflow/server/auth`.

use std::fmt;

use serde::Serialize;

use crate::python;
use crate::{Error, Result};

/// The level of a grant. A later one includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing, whatever else is granted.
    Deny,
    /// Nothing. Only the level of those without any grant.
    NoPermissions,
    /// Read it.
    Read,
    /// Use it without changing it.
    Use,
    /// Change it.
    Edit,
    /// Delete it, and grant others rights to it.
    Manage,
}

impl Level {
    /// All levels, in the order in which MLflow lists them.
    const LISTED: [Self; 6] = [Self::Read, Self::Use, Self::Edit, Self::Manage, Self::NoPermissions, Self::Deny];

    /// MLflow's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "DENY",
            Self::NoPermissions => "NO_PERMISSIONS",
            Self::Read => "READ",
            Self::Use => "USE",
            Self::Edit => "EDIT",
            Self::Manage => "MANAGE",
        }
    }

    /// The level of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::LISTED.into_iter().find(|level| level.name() == name)
    }

    /// The level of a name that a client sent (`_validate_permission`).
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE`, where there is none of this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let names = tuple(Self::LISTED.map(Self::name).as_slice());
            Error::invalid(format!("Invalid permission '{name}'. Valid permissions are: {names}"))
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

macro_rules! grant_types {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $grain:ident;)+) => {
        /// Types of resources for which something may be granted, as far as MLflow 3.17 knows them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GrantType {
            $($(#[doc = $doc])+ $name,)+
        }

        impl GrantType {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// MLflow's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Whether something may be granted for one resource of the type. For others it is granted for all of them together.
            #[must_use]
            pub const fn has_ids(self) -> bool {
                match self {
                    $(Self::$name => grant_types!($grain),)+
                }
            }
        }
    };
    (one) => { true };
    (all) => { false };
}

grant_types! {
    /// Experiments.
    Experiment = "experiment", one;
    /// Registered models that are no prompts, by name.
    RegisteredModel = "registered_model", one;
    /// Prompts, by name.
    Prompt = "prompt", one;
    /// Scorers, as `<experiment>/<name>`.
    Scorer = "scorer", one;
    /// Secrets of MLflow's gateway, which this server does not have.
    GatewaySecret = "gateway_secret", one;
    /// Endpoints of that gateway.
    GatewayEndpoint = "gateway_endpoint", one;
    /// Definitions of models of that gateway.
    GatewayModelDefinition = "gateway_model_definition", one;
    /// MCP servers, which this server does not have.
    McpServer = "mcp_server", one;
    /// Runs.
    Run = "run", all;
    /// Traces.
    Trace = "trace", all;
    /// Assessments of traces.
    Assessment = "assessment", all;
    /// Logged models.
    LoggedModel = "logged_model", all;
    /// Review queues, which this server does not have yet.
    ReviewQueue = "review_queue", all;
    /// Versions of registered models.
    RegisteredModelVersion = "registered_model_version", all;
    /// Versions of prompts.
    PromptVersion = "prompt_version", all;
    /// Versions of scorers.
    ScorerVersion = "scorer_version", all;
    /// Versions of MCP servers.
    McpServerVersion = "mcp_server_version", all;
    /// The workspace: the right to create something in it, and to administer it.
    Workspace = "workspace", all;
}

impl GrantType {
    /// The type of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// The type of a name that a client sent (`_validate_resource_type`).
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE`, where there is none of this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let mut names: Vec<_> = Self::ALL.iter().map(|known| known.name()).collect();
            names.sort_unstable();
            Error::invalid(format!("Invalid resource type '{name}'. Valid resource types are: {}", tuple(&names)))
        })
    }

    /// Refuses a pattern that the type does not know (`_validate_resource_pattern`).
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for an id, where only `*` may be granted, and for a pattern that is too long for any name.
    pub fn check_pattern(self, pattern: &str) -> Result<()> {
        check_length(pattern)?;
        if pattern == EVERYTHING || self.has_ids() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "Invalid resource_pattern '{pattern}' for resource_type='{}'. This resource type supports only wildcard ('*') grants.",
            self.name()
        )))
    }
}

/// Bytes of the longest pattern: a scorer's name of 250 characters, each of four bytes that are three of a pattern.
const LONGEST_PATTERN: usize = 3_100;

/// The pattern for all resources of a type.
pub const EVERYTHING: &str = "*";

/// Refuses a pattern that is too long for any name.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`.
pub fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() <= LONGEST_PATTERN {
        return Ok(());
    }
    Err(Error::invalid(format!("A resource pattern has at most {LONGEST_PATTERN} bytes.")))
}

/// The level and the type of a grant by the names that a client sent (`_validate_permission_for_resource_type`).
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`, where a name is unknown, or the type takes no such level.
pub fn granted(level: &str, kind: &str) -> Result<(Level, GrantType)> {
    let level = Level::parse(level)?;
    let kind = GrantType::parse(kind)?;
    if kind == GrantType::Workspace {
        return match level {
            Level::Use | Level::Manage => Ok((level, kind)),
            _ => Err(Error::invalid(format!(
                "Invalid permission '{level}' for resource_type='workspace'. Workspace-wide grants accept only: ('MANAGE', 'USE')."
            ))),
        };
    }
    if level == Level::NoPermissions {
        return Err(Error::invalid(format!(
            "Invalid permission '{level}' for resource_type='{}'. Resource-level grants accept only: ('DENY', 'EDIT', 'MANAGE', 'READ', 'USE').",
            kind.name()
        )));
    }
    Ok((level, kind))
}

/// A tuple of texts as Python shows it.
fn tuple(texts: &[&str]) -> String {
    let list = python::repr_list(texts);
    format!("({})", list.trim_start_matches('[').trim_end_matches(']'))
}

/// A user, as answered.
#[derive(Clone, Debug, Serialize)]
pub struct User {
    /// Integer id.
    pub id: u32,
    /// Name.
    pub username: String,
    /// Whether he may do everything.
    pub is_admin: bool,
}

/// `{"user": …}`.
#[derive(Debug, Serialize)]
pub struct OneUser {
    /// The user.
    pub user: User,
}

/// `users/current`.
#[derive(Debug, Serialize)]
pub struct CurrentUser {
    /// The caller.
    pub user: User,
    /// Whether he may sign out and change a password.
    pub is_basic_auth: bool,
}

/// A user in a list, with his roles.
#[derive(Debug, Serialize)]
pub struct ListedUser {
    /// The user.
    #[serde(flatten)]
    pub user: User,
    /// His roles, and his own grants as one more role.
    pub roles: Vec<Role>,
}

/// `users/list`.
#[derive(Debug, Serialize)]
pub struct Users {
    /// All users.
    pub users: Vec<ListedUser>,
}

/// A role, as answered.
#[derive(Clone, Debug, Serialize)]
pub struct Role {
    /// Integer id.
    pub id: u32,
    /// Name, one of a kind in its workspace.
    pub name: String,
    /// Workspace.
    pub workspace: String,
    /// Its description.
    pub description: Option<String>,
    /// Its grants.
    pub permissions: Vec<RolePermission>,
}

/// `{"role": …}`.
#[derive(Debug, Serialize)]
pub struct OneRole {
    /// The role.
    pub role: Role,
}

/// `{"roles": …}`.
#[derive(Debug, Serialize)]
pub struct Roles {
    /// The roles.
    pub roles: Vec<Role>,
}

/// One thing that a role grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolePermission {
    /// Integer id.
    pub id: u64,
    /// The role's.
    pub role_id: u32,
    /// Name of the type.
    pub resource_type: &'static str,
    /// The resource, or `*`.
    pub resource_pattern: String,
    /// Name of the level.
    pub permission: &'static str,
}

/// `{"role_permission": …}`.
#[derive(Debug, Serialize)]
pub struct OneRolePermission {
    /// It.
    pub role_permission: RolePermission,
}

/// `roles/permissions/list`.
#[derive(Debug, Serialize)]
pub struct RolePermissions {
    /// All of a role.
    pub role_permissions: Vec<RolePermission>,
}

/// That a user has a role.
#[derive(Clone, Debug, Serialize)]
pub struct Assignment {
    /// Integer id.
    pub id: u32,
    /// The user's.
    pub user_id: u32,
    /// The role's.
    pub role_id: u32,
}

/// `roles/assign`.
#[derive(Debug, Serialize)]
pub struct OneAssignment {
    /// It.
    pub assignment: Assignment,
}

/// `roles/users/list`.
#[derive(Debug, Serialize)]
pub struct Assignments {
    /// All of a role.
    pub assignments: Vec<Assignment>,
}

/// One thing that a user is granted, by a role or himself.
#[derive(Clone, Debug, Serialize)]
pub struct UserPermission {
    /// The role that grants it.
    pub role_id: u32,
    /// Its name; `__user_<id>__`, where it is granted to the user himself.
    pub role_name: String,
    /// Its workspace.
    pub workspace: String,
    /// Name of the type.
    pub resource_type: &'static str,
    /// The resource, or `*`.
    pub resource_pattern: String,
    /// Name of the level.
    pub permission: &'static str,
}

/// `users/permissions/list` and `users/current/permissions`.
#[derive(Debug, Serialize)]
pub struct UserPermissions {
    /// Whether the user may do everything.
    pub is_admin: bool,
    /// His grants.
    pub permissions: Vec<UserPermission>,
}

/// `users/permissions/get`.
#[derive(Debug, Serialize)]
pub struct EffectivePermission {
    /// Whether the user may use the resource.
    pub allowed: bool,
    /// Name of the level that counts.
    pub permission: &'static str,
}

/// `{}`.
#[derive(Debug, Serialize)]
pub struct Done {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_in_mlflows_words() {
        let refusal = |level, kind| granted(level, kind).unwrap_err().message;
        assert_eq!(
            refusal("WRITE", "experiment"),
            "Invalid permission 'WRITE'. Valid permissions are: ('READ', 'USE', 'EDIT', 'MANAGE', 'NO_PERMISSIONS', 'DENY')"
        );
        assert!(refusal("READ", "runs").starts_with(
            "Invalid resource type 'runs'. Valid resource types are: ('assessment', 'experiment', 'gateway_endpoint', "
        ));
        assert!(refusal("READ", "workspace").ends_with("Workspace-wide grants accept only: ('MANAGE', 'USE')."));
        assert!(refusal("NO_PERMISSIONS", "run").contains("Resource-level grants accept only: ('DENY', 'EDIT', "));
        assert_eq!(granted("DENY", "run").unwrap(), (Level::Deny, GrantType::Run));
        assert!(GrantType::Run.check_pattern("7").is_err() && GrantType::Run.check_pattern("*").is_ok());
        assert!(GrantType::Scorer.check_pattern("7/x").is_ok());
    }

    #[test]
    fn levels_include_those_before() {
        assert!(Level::Deny < Level::NoPermissions && Level::NoPermissions < Level::Read);
        assert!(Level::Read < Level::Use && Level::Use < Level::Edit && Level::Edit < Level::Manage);
        for level in Level::LISTED {
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
    }
}
