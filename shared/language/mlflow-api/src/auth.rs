//! Users, roles and their grants, with the names and responses of `mlflow/server/auth`.

use std::fmt;

use serde::Serialize;

use crate::python;
use crate::{Error, Result};

/// The level of a grant. From [`Read`](Self::Read) on, each level includes the preceding ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermissionLevel {
    /// No access, regardless of other grants.
    Deny,
    /// No access. This is the level of users without any grant, and cannot be granted.
    NoPermissions,
    /// Permission to read the resource.
    Read,
    /// Permission to use the resource without changing it.
    Use,
    /// Permission to change the resource.
    Edit,
    /// Permission to delete the resource, and to grant others access to it.
    Manage,
}

impl PermissionLevel {
    /// All levels, in the order in which MLflow lists them.
    const ALL: [Self; 6] = [Self::Read, Self::Use, Self::Edit, Self::Manage, Self::NoPermissions, Self::Deny];

    /// Returns MLflow's name of the level.
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

    /// Returns the level with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Parses the name of a level in a request (`_validate_permission`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if there is no level with this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let names = python_tuple(Self::ALL.map(Self::name).as_slice());
            Error::invalid(format!("Invalid permission '{name}'. Valid permissions are: {names}"))
        })
    }
}

impl fmt::Display for PermissionLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

macro_rules! grant_types {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $grain:ident;)+) => {
        /// The types of resources that grants can refer to, which are those of MLflow 3.17.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GrantType {
            $($(#[doc = $doc])+ $name,)+
        }

        impl GrantType {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns MLflow's name of the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Checks whether access to a single resource of the type can be granted. If not,
            /// access can only be granted to all of them together.
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
    /// Registered models that are not prompts, by name.
    RegisteredModel = "registered_model", one;
    /// Prompts, by name.
    Prompt = "prompt", one;
    /// Scorers, as `<experiment>/<name>`.
    Scorer = "scorer", one;
    /// Secrets of MLflow's AI gateway, which this server does not have.
    GatewaySecret = "gateway_secret", one;
    /// Endpoints of MLflow's AI gateway, which this server does not have.
    GatewayEndpoint = "gateway_endpoint", one;
    /// Model definitions of MLflow's AI gateway, which this server does not have.
    GatewayModelDefinition = "gateway_model_definition", one;
    /// MCP servers, by name.
    McpServer = "mcp_server", one;
    /// Skills, as `<name>` or `@<organization>/<name>`.
    Skill = "skill", one;
    /// Runs.
    Run = "run", all;
    /// Traces.
    Trace = "trace", all;
    /// Assessments of traces.
    Assessment = "assessment", all;
    /// Logged models.
    LoggedModel = "logged_model", all;
    /// Review queues.
    ReviewQueue = "review_queue", all;
    /// Versions of registered models.
    RegisteredModelVersion = "registered_model_version", all;
    /// Versions of prompts.
    PromptVersion = "prompt_version", all;
    /// Versions of scorers.
    ScorerVersion = "scorer_version", all;
    /// Versions of MCP servers.
    McpServerVersion = "mcp_server_version", all;
    /// Workspaces, with the rights to create resources in them and to administer them.
    Workspace = "workspace", all;
}

impl GrantType {
    /// Returns the type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// Parses the name of a type in a request (`_validate_resource_type`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if there is no type with this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let mut names: Vec<_> = Self::ALL.iter().map(|known| known.name()).collect();
            names.sort_unstable();
            Error::invalid(format!(
                "Invalid resource type '{name}'. Valid resource types are: {}",
                python_tuple(&names)
            ))
        })
    }

    /// Checks that the type supports a pattern (`_validate_resource_pattern`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for an id if the type only supports `*`, and for a
    /// pattern that is too long for any name.
    pub fn check_pattern(self, pattern: &str) -> Result<()> {
        check_length(pattern)?;
        if pattern == ALL_RESOURCES || self.has_ids() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "Invalid resource_pattern '{pattern}' for resource_type='{}'. This resource type supports only wildcard ('*') grants.",
            self.name()
        )))
    }
}

/// Maximum length of a pattern, in bytes. A scorer's name has up to 250 characters of up to four
/// bytes, and each byte takes up to three bytes in a pattern.
const MAX_PATTERN_BYTES: usize = 3_100;

/// The pattern for all resources of a type.
pub const ALL_RESOURCES: &str = "*";

/// Checks that a pattern is not too long for any name.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if it is too long.
pub fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() <= MAX_PATTERN_BYTES {
        return Ok(());
    }
    Err(Error::invalid(format!("A resource pattern has at most {MAX_PATTERN_BYTES} bytes.")))
}

/// Parses the level and the type of a grant in a request
/// (`_validate_permission_for_resource_type`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if a name is unknown, or if the type does not support the
/// level.
pub fn parse_grant(level: &str, kind: &str) -> Result<(PermissionLevel, GrantType)> {
    let level = PermissionLevel::parse(level)?;
    let kind = GrantType::parse(kind)?;
    if kind == GrantType::Workspace {
        return match level {
            PermissionLevel::Use | PermissionLevel::Manage => Ok((level, kind)),
            _ => Err(Error::invalid(format!(
                "Invalid permission '{level}' for resource_type='workspace'. Workspace-wide grants accept only: ('MANAGE', 'USE')."
            ))),
        };
    }
    if kind == GrantType::Skill && matches!(level, PermissionLevel::Use | PermissionLevel::NoPermissions) {
        return Err(Error::invalid(format!(
            "Invalid permission '{level}' for resource_type='skill'. Skill Registry grants accept only: ('DENY', 'EDIT', 'MANAGE', 'READ')."
        )));
    }
    if level == PermissionLevel::NoPermissions {
        return Err(Error::invalid(format!(
            "Invalid permission '{level}' for resource_type='{}'. Resource-level grants accept only: ('DENY', 'EDIT', 'MANAGE', 'READ', 'USE').",
            kind.name()
        )));
    }
    Ok((level, kind))
}

/// Formats texts like a Python tuple.
fn python_tuple(texts: &[&str]) -> String {
    let list = python::repr_list(texts);
    format!("({})", list.trim_start_matches('[').trim_end_matches(']'))
}

/// A user, in a response.
#[derive(Clone, Debug, Serialize)]
pub struct User {
    /// The id, as an integer.
    pub id: u32,
    /// The name.
    pub username: String,
    /// Whether the user is an administrator, who has full access.
    pub is_admin: bool,
}

/// A response of the form `{"user": …}`.
#[derive(Debug, Serialize)]
pub struct UserResponse {
    /// The user.
    pub user: User,
}

/// The response of `users/current`.
#[derive(Debug, Serialize)]
pub struct CurrentUserResponse {
    /// The caller.
    pub user: User,
    /// Whether the user can sign out and change the password.
    pub is_basic_auth: bool,
}

/// A user in a list, with the user's roles.
#[derive(Debug, Serialize)]
pub struct UserWithRoles {
    /// The user.
    #[serde(flatten)]
    pub user: User,
    /// The roles of the user. The user's own grants are listed as one more role.
    pub roles: Vec<Role>,
}

/// The response of `users/list`.
#[derive(Debug, Serialize)]
pub struct UsersResponse {
    /// All users.
    pub users: Vec<UserWithRoles>,
}

/// A role, in a response.
#[derive(Clone, Debug, Serialize)]
pub struct Role {
    /// The id, as an integer.
    pub id: u32,
    /// The name, which is unique in the workspace.
    pub name: String,
    /// The workspace.
    pub workspace: String,
    /// The description.
    pub description: Option<String>,
    /// The grants.
    pub permissions: Vec<RolePermission>,
}

/// A response of the form `{"role": …}`.
#[derive(Debug, Serialize)]
pub struct RoleResponse {
    /// The role.
    pub role: Role,
}

/// A response of the form `{"roles": …}`.
#[derive(Debug, Serialize)]
pub struct RolesResponse {
    /// The roles.
    pub roles: Vec<Role>,
}

/// A grant of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolePermission {
    /// The id, as an integer.
    pub id: u64,
    /// The id of the role.
    pub role_id: u32,
    /// The name of the resource type.
    pub resource_type: &'static str,
    /// The id of the resource, or `*`.
    pub resource_pattern: String,
    /// The name of the level.
    pub permission: &'static str,
}

/// A response of the form `{"role_permission": …}`.
#[derive(Debug, Serialize)]
pub struct RolePermissionResponse {
    /// The grant.
    pub role_permission: RolePermission,
}

/// The response of `roles/permissions/list`.
#[derive(Debug, Serialize)]
pub struct RolePermissionsResponse {
    /// All grants of the role.
    pub role_permissions: Vec<RolePermission>,
}

/// The assignment of a role to a user.
#[derive(Clone, Debug, Serialize)]
pub struct RoleAssignment {
    /// The id, as an integer.
    pub id: u32,
    /// The id of the user.
    pub user_id: u32,
    /// The id of the role.
    pub role_id: u32,
}

/// The response of `roles/assign`.
#[derive(Debug, Serialize)]
pub struct RoleAssignmentResponse {
    /// The assignment.
    pub assignment: RoleAssignment,
}

/// The response of `roles/users/list`.
#[derive(Debug, Serialize)]
pub struct RoleAssignmentsResponse {
    /// All assignments of the role.
    pub assignments: Vec<RoleAssignment>,
}

/// A grant that a user has, either by a role or directly.
#[derive(Clone, Debug, Serialize)]
pub struct UserPermission {
    /// The id of the role that contains the grant.
    pub role_id: u32,
    /// The name of the role, or `__user_<id>__` for a direct grant to the user.
    pub role_name: String,
    /// The workspace of the role.
    pub workspace: String,
    /// The name of the resource type.
    pub resource_type: &'static str,
    /// The id of the resource, or `*`.
    pub resource_pattern: String,
    /// The name of the level.
    pub permission: &'static str,
}

/// The response of `users/permissions/list` and `users/current/permissions`.
#[derive(Debug, Serialize)]
pub struct UserPermissionsResponse {
    /// Whether the user is an administrator, who has full access.
    pub is_admin: bool,
    /// The grants.
    pub permissions: Vec<UserPermission>,
}

/// The response of `users/permissions/get`.
#[derive(Debug, Serialize)]
pub struct EffectivePermissionResponse {
    /// Whether the user may use the resource.
    pub allowed: bool,
    /// The name of the effective level.
    pub permission: &'static str,
}

/// An empty response, `{}`.
#[derive(Debug, Serialize)]
pub struct EmptyAuthResponse {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_in_mlflows_words() {
        let refusal = |level, kind| parse_grant(level, kind).unwrap_err().message;
        assert_eq!(
            refusal("WRITE", "experiment"),
            "Invalid permission 'WRITE'. Valid permissions are: ('READ', 'USE', 'EDIT', 'MANAGE', 'NO_PERMISSIONS', 'DENY')"
        );
        assert!(refusal("READ", "runs").starts_with(
            "Invalid resource type 'runs'. Valid resource types are: ('assessment', 'experiment', 'gateway_endpoint', "
        ));
        assert!(refusal("READ", "workspace").ends_with("Workspace-wide grants accept only: ('MANAGE', 'USE')."));
        assert!(refusal("NO_PERMISSIONS", "run").contains("Resource-level grants accept only: ('DENY', 'EDIT', "));
        for level in ["USE", "NO_PERMISSIONS"] {
            assert!(
                refusal(level, "skill")
                    .ends_with("Skill Registry grants accept only: ('DENY', 'EDIT', 'MANAGE', 'READ').")
            );
        }
        assert_eq!(parse_grant("EDIT", "skill").unwrap(), (PermissionLevel::Edit, GrantType::Skill));
        assert_eq!(parse_grant("DENY", "run").unwrap(), (PermissionLevel::Deny, GrantType::Run));
        assert!(GrantType::Run.check_pattern("7").is_err() && GrantType::Run.check_pattern("*").is_ok());
        assert!(GrantType::Scorer.check_pattern("7/x").is_ok());
    }

    #[test]
    fn levels_include_those_before() {
        assert!(
            PermissionLevel::Deny < PermissionLevel::NoPermissions
                && PermissionLevel::NoPermissions < PermissionLevel::Read
        );
        assert!(
            PermissionLevel::Read < PermissionLevel::Use
                && PermissionLevel::Use < PermissionLevel::Edit
                && PermissionLevel::Edit < PermissionLevel::Manage
        );
        for level in PermissionLevel::ALL {
            assert_eq!(PermissionLevel::from_name(level.name()), Some(level));
        }
    }
}
