//! Endpoints for grants that users hold directly, rather than through a role.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::auth::{
    Done, EVERYTHING, EffectivePermission, GrantType, Level, UserPermissions, check_length, granted,
};
use mlflow_api::{Error, ExperimentId, RegisteredModelName, Request, Result};
use permissions::scorer_of;
use service::Endpoint;

use crate::audit::changed;
use crate::parameters::Parameters;
use crate::store::{Store, permissions_of};
use crate::users::{Named, Seen, caller, denied, may_read_oneself};

const NO_WORKSPACE: &str = "resource_type 'workspace' is not supported by the per-user permission convenience APIs. \
                            Use set_workspace_permission / delete_workspace_permission for workspace-wide grants.";

const NO_SCORER: &str = "Invalid scorer resource_id. Expected '<experiment_id>/<scorer_name>'.";

fn no_workspace(kind: &str) -> Result<()> {
    if kind == GrantType::Workspace.name() { Err(Error::invalid(NO_WORKSPACE)) } else { Ok(()) }
}

/// Rejects grants that only administrators of the server may make: those for a resource outside the
/// request's workspace (`validate_can_manage_resource`). One or two requests, and none for
/// administrators of the server or for all resources of a type.
///
/// # Errors
/// `PERMISSION_DENIED`, and `INVALID_PARAMETER_VALUE` for a scorer's pattern that names no
/// experiment.
async fn check_grantable(scope: &Scope, store: &Store, kind: GrantType, pattern: &str) -> Result<()> {
    if pattern == EVERYTHING || scope.caller().user().is_none_or(|user| user.is_admin) {
        return Ok(());
    }
    if kind == GrantType::Scorer && !pattern.contains('/') {
        return Err(Error::invalid(NO_SCORER));
    }
    if store.has_resource(scope, kind, pattern).await? { Ok(()) } else { Err(denied()) }
}

/// Returns the needs of changing a grant for a resource: the right to share it. Grants for all
/// resources of a type, and for resources that have no permissions of their own here, are changed
/// by administrators.
fn to_manage(kind: GrantType, pattern: &str) -> Needs {
    let target = match kind {
        _ if pattern == EVERYTHING => None,
        GrantType::Experiment => ExperimentId::parse(pattern).ok().map(Target::Experiment),
        // In MLflow, only administrators of the server may share a prompt.
        GrantType::RegisteredModel | GrantType::Prompt => {
            Some(Target::RegisteredModel(RegisteredModelName::named(pattern)))
        }
        GrantType::Scorer => scorer_of(pattern).map(|(experiment, name)| Target::Scorer(experiment, name)),
        _ => None,
    };
    let target = target.unwrap_or(Target::Any(Resource::Workspace));
    Needs::of(Action::Share, [target])
}

pub(crate) struct Grant {
    user: Named,
    level: Level,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Grant {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (Named::of(&parameters)?, parameters.text("resource_type")?);
        let (pattern, level) = (parameters.text("resource_id")?, parameters.text("permission")?);
        no_workspace(&kind)?;
        GrantType::parse(&kind)?.check_pattern(&pattern)?;
        let (level, kind) = granted(&level, &kind)?;
        Ok(Self { user, level, kind, pattern })
    }

    fn needs(&self) -> Needs {
        to_manage(self.kind, &self.pattern)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        check_grantable(scope, store, self.kind, &self.pattern).await?;
        let user = self.user.name()?;
        store.grant(scope.authorizer_writes(), &user, self.kind, &self.pattern, self.level).await?;
        changed(scope, "granted", format_args!("to {user}: {} for {} {}", self.level, self.kind.name(), self.pattern));
        Ok(Done {})
    }
}

pub(crate) struct Revoke {
    user: Named,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Revoke {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (Named::of(&parameters)?, parameters.text("resource_type")?);
        let pattern = parameters.text("resource_id")?;
        no_workspace(&kind)?;
        let kind = GrantType::parse(&kind)?;
        check_length(&pattern)?;
        Ok(Self { user, kind, pattern })
    }

    fn needs(&self) -> Needs {
        to_manage(self.kind, &self.pattern)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        check_grantable(scope, store, self.kind, &self.pattern).await?;
        let user = self.user.name()?;
        store.revoke(scope.authorizer_writes(), &user, self.kind, &self.pattern).await?;
        changed(scope, "revoked", format_args!("from {user}: {} {}", self.kind.name(), self.pattern));
        Ok(Done {})
    }
}

pub(crate) struct Get {
    user: Named,
    kind: GrantType,
    pattern: String,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = EffectivePermission;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let (user, kind) = (Named::of(&parameters)?, parameters.text("resource_type")?);
        let pattern = parameters.text("resource_id")?;
        no_workspace(&kind)?;
        let kind = GrantType::parse(&kind)?;
        check_length(&pattern)?;
        let is_known = kind.has_ids() && kind != GrantType::Prompt;
        if pattern != EVERYTHING && !is_known {
            return Err(Error::invalid(format!(
                "resource_type '{}' is not supported by the per-user permission convenience APIs.",
                kind.name()
            )));
        }
        if pattern != EVERYTHING && kind == GrantType::Scorer && !pattern.contains('/') {
            return Err(Error::invalid(NO_SCORER));
        }
        Ok(Self { user, kind, pattern })
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EffectivePermission> {
        // Users may query their own permissions, and administrators of the server those of all
        // users. Administrators of the resource's workspace may, too
        // (`validate_can_get_user_permission`).
        if let Seen::In(administered) = Seen::of(scope, store, self.user.text()).await? {
            let workspace = scope.workspace();
            let is_there = self.pattern == EVERYTHING || store.has_resource(scope, self.kind, &self.pattern).await?;
            if !is_there || !administered.contains(workspace.as_str()) {
                return Err(denied());
            }
        }
        let level = store.effective(scope.identity(), &self.user.name()?, self.kind, &self.pattern).await?;
        Ok(EffectivePermission { allowed: level >= Level::Use, permission: level.name() })
    }
}

pub(crate) struct List(Named);

impl Endpoint for List {
    type Store = Store;
    type Answer = UserPermissions;

    fn read(request: &Request) -> Result<Self> {
        Named::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserPermissions> {
        let (account, roles) = Seen::roles_of(scope, store, &self.0).await?;
        let permissions = roles.into_iter().flat_map(permissions_of).collect();
        Ok(UserPermissions { is_admin: account.user.is_admin, permissions })
    }
}

pub(crate) struct Current;

impl Endpoint for Current {
    type Store = Store;
    type Answer = UserPermissions;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserPermissions> {
        may_read_oneself(scope)?;
        let account = store.user_get(&caller(scope)?).await?;
        let permissions = store.permissions_of(&account).await?;
        Ok(UserPermissions { is_admin: account.user.is_admin, permissions })
    }
}
