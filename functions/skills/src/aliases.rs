//! Endpoints for aliases.

use access::{Action, Needs, Scope};
use mlflow_api::skills::{SetSkillAlias, SkillVersion, check_alias};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, Request, Result};
use service::Endpoint;

use crate::request_targets::SkillTarget;
use crate::store::{Store, is_latest};

pub(crate) struct Set {
    skill: SkillTarget,
    alias: SetSkillAlias,
}

impl Endpoint for Set {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (skill, alias) = SkillTarget::with_rest(request, SetSkillAlias::read)?;
        Ok(Self { skill, alias })
    }

    fn needs(&self) -> Needs {
        Needs::update(self.skill.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.alias_set(&self.skill.granted(scope)?, &self.alias).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Get {
    skill: SkillTarget,
    alias: String,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = SkillVersion;

    fn read(request: &Request) -> Result<Self> {
        let (skill, alias) = (SkillTarget::of(request)?, request.path_part("alias").to_owned());
        if !is_latest(&alias) {
            check_alias(&alias)?;
        }
        Ok(Self { skill, alias })
    }

    fn needs(&self) -> Needs {
        self.skill.of_versions(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillVersion> {
        store.alias_get(&self.skill.granted(scope)?, &self.alias).await
    }
}

pub(crate) struct Delete {
    skill: SkillTarget,
    alias: String,
}

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (skill, alias) = (SkillTarget::of(request)?, request.path_part("alias").to_owned());
        if is_latest(&alias) {
            return Err(Error::invalid("The 'latest' alias is resolved automatically and cannot be deleted"));
        }
        check_alias(&alias)?;
        Ok(Self { skill, alias })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Manage, [self.skill.target()])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.alias_delete(&self.skill.granted(scope)?, &self.alias).await?;
        Ok(EmptyResponse {})
    }
}
