//! Endpoints for grants that users hold directly, rather than through a role.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::auth::{
    ALL_RESOURCES, EffectivePermissionResponse, EmptyAuthResponse, GrantType, PermissionLevel, UserPermissionsResponse,
    check_length, parse_grant,
};
use mlflow_api::{Error, ExperimentId, McpServerName, RegisteredModelName, Request, Result, SkillName};
use permissions::scorer_of;
use service::Endpoint;

use crate::audit_log::changed;
use crate::parameters::Parameters;
use crate::store::{Store, permissions_of};
use crate::users::{UserNameParameter, VisibleRoles, caller, check_may_read_self, denied};

const NO_WORKSPACE: &str = "resource_type 'workspace' is not supported by the per-user permission convenience APIs. \
                            Use set_workspace_permission / delete_workspace_permission for workspace-wide grants.";

const NO_SCORER: &str = "Invalid scorer resource_id. Expected '<experiment_id>/<scorer_name>'.";

fn reject_workspace(kind: &str) -> Result<()> {
    if kind == GrantType::Workspace.name() { Err(Error::invalid(NO_WORKSPACE)) } else { Ok(()) }
}

/// Rejects grants that only administrators of the server may make, which are those for a resource
/// outside the request's workspace (`validate_can_manage_resource`). Takes one or two requests, and
/// none for administrators of the server or for a grant for all resources of a type.
///
/// # Errors
/// Returns `PERMISSION_DENIED`, or `INVALID_PARAMETER_VALUE` if the pattern for a scorer names no
/// experiment.
async fn check_grantable(scope: &Scope, store: &Store, kind: GrantType, pattern: &str) -> Result<()> {
    if pattern == ALL_RESOURCES || scope.caller().user().is_none_or(|user| user.is_admin) {
        return Ok(());
    }
    if kind == GrantType::Scorer && !pattern.contains('/') {
        return Err(Error::invalid(NO_SCORER));
    }
    if store.has_resource(scope, kind, pattern).await? { Ok(()) } else { Err(denied()) }
}

/// Returns the permissions that changing a grant for a resource requires, which is the right to
/// share the resource. Only administrators may change grants for all resources of a type, and
/// grants for resources that have no separate permissions in this server.
fn management_needs(kind: GrantType, pattern: &str) -> Needs {
    let target = match kind {
        _ if pattern == ALL_RESOURCES => None,
        GrantType::Experiment => ExperimentId::parse(pattern).ok().map(Target::Experiment),
        // In MLflow, only administrators of the server may share a prompt.
        GrantType::RegisteredModel | GrantType::Prompt => {
            Some(Target::RegisteredModel(RegisteredModelName::named(pattern)))
        }
        GrantType::Scorer => scorer_of(pattern).map(|(experiment, name)| Target::Scorer(experiment, name)),
        GrantType::McpServer => McpServerName::parse(pattern).ok().map(Target::McpServer),
        GrantType::Skill => SkillName::parse(pattern).ok().map(Target::Skill),
        _ => None,
    };
    let target = target.unwrap_or(Target::Any(Resource::Workspace));
    Needs::of(Action::Share, [target])
}

pub(crate) struct Grant {
    user: UserNameParameter,
    level: PermissionLevel,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Grant {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (UserNameParameter::of(&parameters)?, parameters.text("resource_type")?);
        let (pattern, level) = (parameters.text("resource_id")?, parameters.text("permission")?);
        reject_workspace(&kind)?;
        GrantType::parse(&kind)?.check_pattern(&pattern)?;
        let (level, kind) = parse_grant(&level, &kind)?;
        Ok(Self { user, level, kind, pattern })
    }

    fn needs(&self) -> Needs {
        management_needs(self.kind, &self.pattern)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        check_grantable(scope, store, self.kind, &self.pattern).await?;
        let user = self.user.name()?;
        store.grant(scope.authorizer_writes(), &user, self.kind, &self.pattern, self.level).await?;
        changed(scope, "granted", format_args!("to {user}: {} for {} {}", self.level, self.kind.name(), self.pattern));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct Revoke {
    user: UserNameParameter,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Revoke {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (UserNameParameter::of(&parameters)?, parameters.text("resource_type")?);
        let pattern = parameters.text("resource_id")?;
        reject_workspace(&kind)?;
        let kind = GrantType::parse(&kind)?;
        check_length(&pattern)?;
        Ok(Self { user, kind, pattern })
    }

    fn needs(&self) -> Needs {
        management_needs(self.kind, &self.pattern)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        check_grantable(scope, store, self.kind, &self.pattern).await?;
        let user = self.user.name()?;
        store.revoke(scope.authorizer_writes(), &user, self.kind, &self.pattern).await?;
        changed(scope, "revoked", format_args!("from {user}: {} {}", self.kind.name(), self.pattern));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct Get {
    user: UserNameParameter,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = EffectivePermissionResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (UserNameParameter::of(&parameters)?, parameters.text("resource_type")?);
        let pattern = parameters.text("resource_id")?;
        reject_workspace(&kind)?;
        let kind = GrantType::parse(&kind)?;
        check_length(&pattern)?;
        let is_known = kind.has_ids() && kind != GrantType::Prompt;
        if pattern != ALL_RESOURCES && !is_known {
            return Err(Error::invalid(format!(
                "resource_type '{}' is not supported by the per-user permission convenience APIs.",
                kind.name()
            )));
        }
        if pattern != ALL_RESOURCES && kind == GrantType::Scorer && !pattern.contains('/') {
            return Err(Error::invalid(NO_SCORER));
        }
        Ok(Self { user, kind, pattern })
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EffectivePermissionResponse> {
        // Users may query their own permissions, and administrators of the server may query the
        // permissions of all users. Administrators of the resource's workspace may do so, too
        // (`validate_can_get_user_permission`).
        if let VisibleRoles::InWorkspaces(administered) = VisibleRoles::of(scope, store, self.user.text()).await? {
            let workspace = scope.workspace();
            let is_there = self.pattern == ALL_RESOURCES || store.has_resource(scope, self.kind, &self.pattern).await?;
            if !is_there || !administered.contains(workspace.as_str()) {
                return Err(denied());
            }
        }
        let level = store.effective_level(scope.identity(), &self.user.name()?, self.kind, &self.pattern).await?;
        Ok(EffectivePermissionResponse { allowed: level >= PermissionLevel::Use, permission: level.name() })
    }
}

pub(crate) struct List(UserNameParameter);

impl Endpoint for List {
    type Store = Store;
    type Answer = UserPermissionsResponse;

    fn read(request: &Request) -> Result<Self> {
        UserNameParameter::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserPermissionsResponse> {
        let (account, roles) = VisibleRoles::roles_of(scope, store, &self.0).await?;
        let permissions = roles.into_iter().flat_map(permissions_of).collect();
        Ok(UserPermissionsResponse { is_admin: account.user.is_admin, permissions })
    }
}

pub(crate) struct Current;

impl Endpoint for Current {
    type Store = Store;
    type Answer = UserPermissionsResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserPermissionsResponse> {
        check_may_read_self(scope)?;
        let account = store.user_get(&caller(scope)?).await?;
        let permissions = store.permissions_of(&account).await?;
        Ok(UserPermissionsResponse { is_admin: account.user.is_admin, permissions })
    }
}
