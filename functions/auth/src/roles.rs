//! Endpoints for roles, their grants, and their assignment to users.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::auth::{Assignments, Done, OneAssignment, OneRole, OneRolePermission, RolePermissions, Roles, granted};
use mlflow_api::auth::{GrantType, Level};
use mlflow_api::{Error, ErrorCode, Request, Result};
use permissions::Memberships;
use serde_json::Value;
use service::Endpoint;

use crate::audit::changed;
use crate::parameters::{Number, Parameters};
use crate::store::Store;
use crate::users::{Named, Seen};

/// Prefix of role names that is reserved for grants that users hold directly.
const RESERVED: &str = "__user_";

fn managing() -> Needs {
    Needs::of(Action::Manage, [Target::Any(Resource::Role)])
}

fn reading() -> Needs {
    Needs::of(Action::Read, [Target::Any(Resource::Role)])
}

/// Checks that the caller may manage roles of a workspace, which need not be the workspace of the
/// request. Administrators of the workspace may.
async fn manages(scope: &Scope, store: &Store, workspace: Result<String>) -> Result<()> {
    among(scope, store, workspace, |of, workspace| of.administered.contains(workspace)).await
}

/// Checks that the caller may see roles of a workspace. Users with a role in it may.
async fn reads(scope: &Scope, store: &Store, workspace: Result<String>) -> Result<()> {
    among(scope, store, workspace, |of, workspace| of.all.contains(workspace)).await
}

/// Checks the caller's memberships. Returns `PERMISSION_DENIED` even if the role does not exist,
/// unless the caller administers the server.
async fn among(
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

/// Maximum lengths in bytes. The first applies to names of roles and workspaces.
const LONGEST_NAME: usize = 250;
const LONGEST_DESCRIPTION: usize = 5_000;

/// Returns a required string of a role, which must not be blank.
fn filled(value: &Value, message: &str) -> Result<String> {
    let text = value.as_str().filter(|text| !text.trim().is_empty()).ok_or_else(|| Error::invalid(message))?;
    bounded(text, LONGEST_NAME)
}

fn bounded(text: &str, longest: usize) -> Result<String> {
    if text.len() <= longest {
        return Ok(text.to_owned());
    }
    Err(Error::invalid(format!("A role's name, workspace or description is longer than {longest} bytes.")))
}

fn not_reserved(name: &str) -> Result<()> {
    if !name.starts_with(RESERVED) {
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
        Some(Value::String(text)) => bounded(text, LONGEST_DESCRIPTION).map(Some),
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
    type Answer = OneRole;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (name, workspace) = (parameters.required("name")?, parameters.required("workspace")?);
        let name = filled(name, "Role name cannot be empty.")?;
        let workspace = filled(workspace, "Workspace cannot be empty.")?;
        let description = description(&parameters, "Role description must be a string or null.")?;
        not_reserved(&name)?;
        Ok(Self { name, workspace, description })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneRole> {
        manages(scope, store, Ok(self.workspace.clone())).await?;
        let role = store.role_create(&self.name, &self.workspace, self.description.as_deref()).await?;
        let role = role.answer();
        changed(scope, "role created", format_args!("role {} {}", role.id, role.name));
        Ok(OneRole { role })
    }
}

pub(crate) struct Get(Number);

impl Endpoint for Get {
    type Store = Store;
    type Answer = OneRole;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        reading()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneRole> {
        reads(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(OneRole { role: store.role_get(&self.0).await?.answer() })
    }
}

pub(crate) struct List(Vec<String>);

impl Endpoint for List {
    type Store = Store;
    type Answer = Roles;

    fn read(request: &Request) -> Result<Self> {
        let workspaces = request.arguments("workspace");
        if workspaces.iter().any(|workspace| workspace.trim().is_empty()) {
            return Err(Error::invalid("Parameter 'workspace' must be a non-empty string when provided."));
        }
        Ok(Self(workspaces.into_iter().map(str::to_owned).collect()))
    }

    /// Listing the roles of all workspaces requires the right to manage roles.
    fn needs(&self) -> Needs {
        if self.0.is_empty() { reading().and_all(managing()) } else { reading() }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Roles> {
        if let Some(of) = store.memberships(scope).await?
            && (self.0.is_empty() || !self.0.iter().all(|workspace| of.all.contains(workspace.trim())))
        {
            return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied"));
        }
        let roles = store.roles().await?.into_iter();
        let roles = roles.filter(|role| self.0.is_empty() || self.0.contains(&role.workspace));
        Ok(Roles { roles: roles.map(|role| role.answer()).collect() })
    }
}

pub(crate) struct Change {
    role: Number,
    name: Option<String>,
    description: Option<String>,
}

impl Endpoint for Change {
    type Store = Store;
    type Answer = OneRole;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let role = parameters.number("role_id")?;
        let name = parameters.get("name");
        if name.is_none() && parameters.get("description").is_none() {
            return Err(Error::invalid("At least one of 'name' or 'description' must be provided to update a role."));
        }
        let name = name.map(|name| filled(name, "Role name cannot be empty.")).transpose()?;
        let description = description(&parameters, "Role description must be a string.")?;
        name.as_deref().map(not_reserved).transpose()?;
        Ok(Self { role, name, description })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneRole> {
        manages(scope, store, store.role_workspace(&self.role).await).await?;
        let role = store.role_change(&self.role, self.name.as_deref(), self.description.as_deref()).await?;
        let role = role.answer();
        changed(scope, "role changed", format_args!("role {} {}", role.id, role.name));
        Ok(OneRole { role })
    }
}

pub(crate) struct Delete(Number);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        manages(scope, store, store.role_workspace(&self.0).await).await?;
        store.role_delete(&self.0).await?;
        changed(scope, "role deleted", format_args!("role {}", self.0.0));
        Ok(Done {})
    }
}

pub(crate) struct AddPermission {
    role: Number,
    level: Level,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for AddPermission {
    type Store = Store;
    type Answer = OneRolePermission;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let role = parameters.number("role_id")?;
        let (kind, pattern) = (parameters.text("resource_type")?, parameters.text("resource_pattern")?);
        let (level, kind) = granted(&parameters.text("permission")?, &kind)?;
        kind.check_pattern(&pattern)?;
        Ok(Self { role, level, kind, pattern })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneRolePermission> {
        manages(scope, store, store.role_workspace(&self.role).await).await?;
        let role_permission = store.role_grant(&self.role, self.kind, &self.pattern, self.level).await?;
        let (role, kind) = (&self.role.0, self.kind.name());
        changed(scope, "granted", format_args!("to role {role}: {} for {kind} {}", self.level, self.pattern));
        Ok(OneRolePermission { role_permission })
    }
}

pub(crate) struct RemovePermission(Number);

impl Endpoint for RemovePermission {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_permission_id").map(Self)
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        manages(scope, store, store.grant_workspace(&self.0).await).await?;
        store.role_revoke(&self.0).await?;
        changed(scope, "revoked", format_args!("grant {} of a role", self.0.0));
        Ok(Done {})
    }
}

pub(crate) struct Permissions(Number);

impl Endpoint for Permissions {
    type Store = Store;
    type Answer = RolePermissions;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        reading()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RolePermissions> {
        reads(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(RolePermissions { role_permissions: store.role_get(&self.0).await?.answer().permissions })
    }
}

pub(crate) struct ChangePermission {
    grant: Number,
    level: String,
}

impl Endpoint for ChangePermission {
    type Store = Store;
    type Answer = OneRolePermission;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { grant: parameters.number("role_permission_id")?, level: parameters.text("permission")? })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneRolePermission> {
        manages(scope, store, store.grant_workspace(&self.grant).await).await?;
        let role_permission = store.role_change_grant(&self.grant, &self.level).await?;
        changed(scope, "granted", format_args!("by grant {} of a role: {}", self.grant.0, self.level));
        Ok(OneRolePermission { role_permission })
    }
}

pub(crate) struct Assign {
    user: Named,
    role: Number,
}

impl Endpoint for Assign {
    type Store = Store;
    type Answer = OneAssignment;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { user: Named::of(&parameters)?, role: parameters.number("role_id")? })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneAssignment> {
        manages(scope, store, store.role_workspace(&self.role).await).await?;
        let user = self.user.name()?;
        let assignment = store.role_assign(&user, &self.role).await?;
        changed(scope, "role assigned", format_args!("role {} to {user}", self.role.0));
        Ok(OneAssignment { assignment })
    }
}

pub(crate) struct Unassign {
    user: Named,
    role: Number,
}

impl Endpoint for Unassign {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        Ok(Self { user: Named::of(&parameters)?, role: parameters.number("role_id")? })
    }

    fn needs(&self) -> Needs {
        managing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        manages(scope, store, store.role_workspace(&self.role).await).await?;
        let user = self.user.name()?;
        store.role_unassign(&user, &self.role).await?;
        changed(scope, "role unassigned", format_args!("role {} of {user}", self.role.0));
        Ok(Done {})
    }
}

pub(crate) struct OfUser(Named);

impl Endpoint for OfUser {
    type Store = Store;
    type Answer = Roles;

    fn read(request: &Request) -> Result<Self> {
        Named::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Roles> {
        Ok(Roles { roles: Seen::roles_of(scope, store, &self.0).await?.1 })
    }
}

pub(crate) struct Users(Number);

impl Endpoint for Users {
    type Store = Store;
    type Answer = Assignments;

    fn read(request: &Request) -> Result<Self> {
        Parameters::of(request)?.number("role_id").map(Self)
    }

    fn needs(&self) -> Needs {
        managing()
    }

    /// Requires the right to manage roles of the workspace: members must not learn who the other
    /// members are (`validate_can_manage_roles`).
    async fn act(self, scope: &Scope, store: &Store) -> Result<Assignments> {
        manages(scope, store, store.role_workspace(&self.0).await).await?;
        Ok(Assignments { assignments: store.role_users(&self.0).await? })
    }
}
