//! Endpoints for roles, their grants, and their assignment to users.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::auth::{
    EmptyAuthResponse, RoleAssignmentResponse, RoleAssignmentsResponse, RolePermissionResponse,
    RolePermissionsResponse, RoleResponse, RolesResponse, parse_grant,
};
use mlflow_api::auth::{GrantType, PermissionLevel};
use mlflow_api::{Error, ErrorCode, Request, Result};
use permissions::Memberships;
use serde_json::Value;
use service::Endpoint;

use crate::audit_log::changed;
use crate::parameters::{IntegerParameter, Parameters};
use crate::store::Store;
use crate::users::{UserNameParameter, VisibleRoles};

/// Prefix of role names that is reserved: MLflow uses such roles for grants that users hold
/// directly.
const RESERVED_PREFIX: &str = "__user_";

fn management_needs() -> Needs {
    Needs::of(Action::Manage, [Target::Any(Resource::Role)])
}

fn read_needs() -> Needs {
    Needs::of(Action::Read, [Target::Any(Resource::Role)])
}

/// Checks that the caller may manage roles of a workspace, which need not be the workspace of the
/// request. Administrators of the workspace and of the server may do so.
async fn check_manages_roles(scope: &Scope, store: &Store, workspace: Result<String>) -> Result<()> {
    check_memberships(scope, store, workspace, |of, workspace| of.administered.contains(workspace)).await
}

/// Checks that the caller may see roles of a workspace. Users with a role in the workspace may do
/// so.
async fn check_reads_roles(scope: &Scope, store: &Store, workspace: Result<String>) -> Result<()> {
    check_memberships(scope, store, workspace, |of, workspace| of.all.contains(workspace)).await
}

/// Checks the caller's memberships of workspaces. Returns `PERMISSION_DENIED` even if the role does
/// not exist, unless the caller administers the server.
async fn check_memberships(
    scope: &Scope,
    store: &Store,
    workspace: Result<String>,
    is_one: impl FnOnce(&Memberships, &str) -> bool,
) -> Result<()> {
    let Some(of) = store.memberships(scope).await? else { return Ok(()) };
    match workspace {
        Ok(workspace) if is_one(&of, &workspace) => Ok(()),
        Err(error) if error.code != ErrorCode::ResourceDoesNotExist => Err(error),
        _ => Err(Error::new(ErrorCode::PermissionDenied, "Permission denied")),
    }
}

/// Maximum lengths in bytes. The first one applies to names of roles and of workspaces.
const MAX_NAME_BYTES: usize = 250;
const MAX_DESCRIPTION_BYTES: usize = 5_000;

/// Returns a required string of a role, which must not be blank.
fn required_text(value: &Value, message: &str) -> Result<String> {
    let text = value.as_str().filter(|text| !text.trim().is_empty()).ok_or_else(|| Error::invalid(message))?;
    check_length(text, MAX_NAME_BYTES)
}

fn check_length(text: &str, longest: usize) -> Result<String> {
    if text.len() <= longest {
        return Ok(text.to_owned());
    }
    Err(Error::invalid(format!("A role's name, workspace or description is longer than {longest} bytes.")))
}

fn check_not_reserved(name: &str) -> Result<()> {
    if !name.starts_with(RESERVED_PREFIX) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Role name {} uses the reserved '__user_' prefix, which is held for the per-user permission representation. \
         Choose a different name.",
        mlflow_api::python::repr(name)
    )))
}

fn description(parameters: &Parameters, message: &str) -> Result<Option<String>> {
    match parameters.get("description") {
        None => Ok(None),
        Some(Value::String(text)) => check_length(text, MAX_DESCRIPTION_BYTES).map(Some),
        Some(_) => Err(Error::invalid(message)),
    }
}

pub(crate) struct Create {
    name: String,
    workspace: String,
    description: Option<String>,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = RoleResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (name, workspace) = (parameters.required("name")?, parameters.required("workspace")?);
        let name = required_text(name, "Role name cannot be empty.")?;
        let workspace = required_text(workspace, "Workspace cannot be empty.")?;
        let description = description(&parameters, "Role description must be a string or null.")?;
        check_not_reserved(&name)?;
        Ok(Self { name, workspace, description })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RoleResponse> {
        check_manages_roles(scope, store, Ok(self.workspace.clone())).await?;
        let role = store.role_create(&self.name, &self.workspace, self.description.as_deref()).await?;
        let role = role.answer();
        changed(scope, "role created", format_args!("role {} {}", role.id, role.name));
        Ok(RoleResponse { role })
    }
}

pub(crate) struct Get(IntegerParameter);

impl Endpoint for Get {
    type Store = Store;
    type Answer = RoleResponse;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        read_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RoleResponse> {
        check_reads_roles(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(RoleResponse { role: store.role_get(&self.0).await?.answer() })
    }
}

pub(crate) struct List(Vec<String>);

impl Endpoint for List {
    type Store = Store;
    type Answer = RolesResponse;

    fn read(request: &Request) -> Result<Self> {
        let workspaces = request.arguments("workspace");
        if workspaces.iter().any(|workspace| workspace.trim().is_empty()) {
            return Err(Error::invalid("Parameter 'workspace' must be a non-empty string when provided."));
        }
        Ok(Self(workspaces.into_iter().map(str::to_owned).collect()))
    }

    /// Listing the roles of all workspaces requires the right to manage roles.
    fn needs(&self) -> Needs {
        if self.0.is_empty() { read_needs().and_all(management_needs()) } else { read_needs() }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolesResponse> {
        if let Some(of) = store.memberships(scope).await?
            && (self.0.is_empty() || !self.0.iter().all(|workspace| of.all.contains(workspace.trim())))
        {
            return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied"));
        }
        let roles = store.roles().await?.into_iter();
        let roles = roles.filter(|role| self.0.is_empty() || self.0.contains(&role.workspace));
        Ok(RolesResponse { roles: roles.map(|role| role.answer()).collect() })
    }
}

pub(crate) struct Change {
    role: IntegerParameter,
    name: Option<String>,
    description: Option<String>,
}

impl Endpoint for Change {
    type Store = Store;
    type Answer = RoleResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let role = parameters.number("role_id")?;
        let name = parameters.get("name");
        if name.is_none() && parameters.get("description").is_none() {
            return Err(Error::invalid("At least one of 'name' or 'description' must be provided to update a role."));
        }
        let name = name.map(|name| required_text(name, "Role name cannot be empty.")).transpose()?;
        let description = description(&parameters, "Role description must be a string.")?;
        name.as_deref().map(check_not_reserved).transpose()?;
        Ok(Self { role, name, description })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RoleResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.role).await).await?;
        let role = store.role_change(&self.role, self.name.as_deref(), self.description.as_deref()).await?;
        let role = role.answer();
        changed(scope, "role changed", format_args!("role {} {}", role.id, role.name));
        Ok(RoleResponse { role })
    }
}

pub(crate) struct Delete(IntegerParameter);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.0).await).await?;
        store.role_delete(&self.0).await?;
        changed(scope, "role deleted", format_args!("role {}", self.0.0));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct AddPermission {
    role: IntegerParameter,
    level: PermissionLevel,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for AddPermission {
    type Store = Store;
    type Answer = RolePermissionResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let role = parameters.number("role_id")?;
        let (kind, pattern) = (parameters.text("resource_type")?, parameters.text("resource_pattern")?);
        let (level, kind) = parse_grant(&parameters.text("permission")?, &kind)?;
        kind.check_pattern(&pattern)?;
        Ok(Self { role, level, kind, pattern })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolePermissionResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.role).await).await?;
        let role_permission = store.role_grant(&self.role, self.kind, &self.pattern, self.level).await?;
        let (role, kind) = (&self.role.0, self.kind.name());
        changed(scope, "granted", format_args!("to role {role}: {} for {kind} {}", self.level, self.pattern));
        Ok(RolePermissionResponse { role_permission })
    }
}

pub(crate) struct RemovePermission(IntegerParameter);

impl Endpoint for RemovePermission {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_permission_id").map(Self)
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        check_manages_roles(scope, store, store.grant_workspace(&self.0).await).await?;
        store.role_revoke(&self.0).await?;
        changed(scope, "revoked", format_args!("grant {} of a role", self.0.0));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct ListPermissions(IntegerParameter);

impl Endpoint for ListPermissions {
    type Store = Store;
    type Answer = RolePermissionsResponse;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        read_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolePermissionsResponse> {
        check_reads_roles(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(RolePermissionsResponse { role_permissions: store.role_get(&self.0).await?.answer().permissions })
    }
}

pub(crate) struct ChangePermission {
    grant: IntegerParameter,
    level: String,
}

impl Endpoint for ChangePermission {
    type Store = Store;
    type Answer = RolePermissionResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { grant: parameters.number("role_permission_id")?, level: parameters.text("permission")? })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolePermissionResponse> {
        check_manages_roles(scope, store, store.grant_workspace(&self.grant).await).await?;
        let role_permission = store.role_change_grant(&self.grant, &self.level).await?;
        changed(scope, "granted", format_args!("by grant {} of a role: {}", self.grant.0, self.level));
        Ok(RolePermissionResponse { role_permission })
    }
}

pub(crate) struct Assign {
    user: UserNameParameter,
    role: IntegerParameter,
}

impl Endpoint for Assign {
    type Store = Store;
    type Answer = RoleAssignmentResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { user: UserNameParameter::of(&parameters)?, role: parameters.number("role_id")? })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RoleAssignmentResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.role).await).await?;
        let user = self.user.name()?;
        let assignment = store.role_assign(&user, &self.role).await?;
        changed(scope, "role assigned", format_args!("role {} to {user}", self.role.0));
        Ok(RoleAssignmentResponse { assignment })
    }
}

pub(crate) struct Unassign {
    user: UserNameParameter,
    role: IntegerParameter,
}

impl Endpoint for Unassign {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { user: UserNameParameter::of(&parameters)?, role: parameters.number("role_id")? })
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.role).await).await?;
        let user = self.user.name()?;
        store.role_unassign(&user, &self.role).await?;
        changed(scope, "role unassigned", format_args!("role {} of {user}", self.role.0));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct ListOfUser(UserNameParameter);

impl Endpoint for ListOfUser {
    type Store = Store;
    type Answer = RolesResponse;

    fn read(request: &Request) -> Result<Self> {
        UserNameParameter::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolesResponse> {
        Ok(RolesResponse { roles: VisibleRoles::roles_of(scope, store, &self.0).await?.1 })
    }
}

pub(crate) struct ListUsers(IntegerParameter);

impl Endpoint for ListUsers {
    type Store = Store;
    type Answer = RoleAssignmentsResponse;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        management_needs()
    }

    /// Requires the right to manage roles of the workspace, because members must not learn who the
    /// other members are (`validate_can_manage_roles`).
    async fn act(self, scope: &Scope, store: &Store) -> Result<RoleAssignmentsResponse> {
        check_manages_roles(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(RoleAssignmentsResponse { assignments: store.role_users(&self.0).await? })
    }
}
