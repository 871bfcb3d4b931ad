//! Endpoints for versions and their tags.

use access::{Action, Needs, Scope};
use mlflow_api::skills::{
    SetSkillTag, SkillSearchParameters, SkillVersion, SkillVersionsResponse, UpdatedSkillVersion, check_tag,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::request_targets::{SkillTarget, VersionTarget};
use crate::store::{Store, caller_name};

pub(crate) struct Search {
    skill: SkillTarget,
    search: SkillSearchParameters,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = SkillVersionsResponse;

    fn read(request: &Request) -> Result<Self> {
        let (skill, search) = SkillTarget::with_rest(request, SkillSearchParameters::read)?;
        Ok(Self { skill, search })
    }

    fn needs(&self) -> Needs {
        self.skill.of_versions(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillVersionsResponse> {
        let skill = scope.known_skill(&self.skill.0)?;
        Box::pin(store.version_search(skill.as_ref(), &self.search)).await
    }
}

pub(crate) struct Get(VersionTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = SkillVersion;

    fn read(request: &Request) -> Result<Self> {
        VersionTarget::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.skill.of_versions(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillVersion> {
        store.version_get(&self.0.skill.granted(scope)?, self.0.version).await
    }
}

pub(crate) struct Update {
    target: VersionTarget,
    update: UpdatedSkillVersion,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = SkillVersion;

    fn read(request: &Request) -> Result<Self> {
        let (target, update) = VersionTarget::with_rest(request, UpdatedSkillVersion::read)?;
        Ok(Self { target, update })
    }

    fn needs(&self) -> Needs {
        let update = self.target.skill.of_versions(Action::Update);
        // As in MLflow, changing the status to `deleted` also requires the right to delete the
        // version.
        if self.update.deletes() {
            return update.and_all(self.target.skill.of_versions(Action::Delete));
        }
        update
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillVersion> {
        let skill = self.target.skill.granted(scope)?;
        let status = || self.update.status();
        Box::pin(store.version_update(&skill, self.target.version, status, caller_name(scope))).await
    }
}

pub(crate) struct Delete(VersionTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        VersionTarget::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.skill.of_versions(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let skill = self.0.skill.granted(scope)?;
        Box::pin(store.version_delete(&skill, self.0.version, caller_name(scope))).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    target: VersionTarget,
    tag: SetSkillTag,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (target, tag) = VersionTarget::with_rest(request, SetSkillTag::read)?;
        Ok(Self { target, tag })
    }

    fn needs(&self) -> Needs {
        self.target.skill.of_versions(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.version_set_tag(&self.target.skill.granted(scope)?, self.target.version, &self.tag).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    target: VersionTarget,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (target, key) = (VersionTarget::of(request)?, request.path_part("key").to_owned());
        check_tag(&key, "")?;
        Ok(Self { target, key })
    }

    fn needs(&self) -> Needs {
        self.target.skill.of_versions(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.version_delete_tag(&self.target.skill.granted(scope)?, self.target.version, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
