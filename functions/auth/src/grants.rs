//! What users are granted themselves.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::auth::{
    Done, EVERYTHING, EffectivePermission, GrantType, Level, UserPermissions, check_length, granted,
};
use mlflow_api::{Error, ExperimentId, RegisteredModelName, Request, Result};
use permissions::scorer_of;
use service::Endpoint;

use crate::audit::changed;
use crate::parameters::Parameters;
use crate::store::Store;
use crate::users::{Named, caller, may_read_oneself, sees_all_of};

const NO_WORKSPACE: &str = "resource_type 'workspace' is not supported by the per-user permission convenience APIs. \
                            Use set_workspace_permission / delete_workspace_permission for workspace-wide grants.";

fn no_workspace(kind: &str) -> Result<()> {
    if kind == GrantType::Workspace.name() { Err(Error::invalid(NO_WORKSPACE)) } else { Ok(()) }
}

/// What whoever grants something for a resource needs: to manage it. What is granted for all of a type, and for what has no guard here, is
/// granted by administrators.
fn to_manage(kind: GrantType, pattern: &str) -> Needs {
    let target = match kind {
        _ if pattern == EVERYTHING => None,
        GrantType::Experiment => ExperimentId::parse(pattern).ok().map(Target::Experiment),
        GrantType::RegisteredModel => Some(Target::RegisteredModel(RegisteredModelName::named(pattern))),
        GrantType::Scorer => scorer_of(pattern).map(|(experiment, name)| Target::Scorer(experiment, name)),
        _ => None,
    };
    let target = target.unwrap_or(Target::Any(Resource::Workspace));
    Needs::read(Target::Any(Resource::User)).and(Action::Share, [target])
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
        let parameters = Parameters::of(request);
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
        let user = self.user.name()?;
        store.grant(scope.along(), &user, self.kind, &self.pattern, self.level).await?;
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
        let parameters = Parameters::of(request);
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
        let user = self.user.name()?;
        store.revoke(scope.along(), &user, self.kind, &self.pattern).await?;
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
        let parameters = Parameters::of(request);
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
            return Err(Error::invalid("Invalid scorer resource_id. Expected '<experiment_id>/<scorer_name>'."));
        }
        Ok(Self { user, kind, pattern })
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Read)
    }

    async fn act(self, _: &Scope, store: &Store) -> Result<EffectivePermission> {
        let level = store.effective(&self.user.name()?, self.kind, &self.pattern).await?;
        Ok(EffectivePermission { allowed: level >= Level::Use, permission: level.name() })
    }
}

pub(crate) struct List(Named);

impl Endpoint for List {
    type Store = Store;
    type Answer = UserPermissions;

    fn read(request: &Request) -> Result<Self> {
        Named::of(&Parameters::of(request)).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserPermissions> {
        let account = store.user_get(&self.0.name()?).await?;
        let sees_all = sees_all_of(scope, &account.user.name);
        let permissions = if sees_all { store.permissions_of(&account).await? } else { Vec::new() };
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
