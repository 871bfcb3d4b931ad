//! Endpoints for skills and their tags.

use access::{Needs, Resource, Scope};
use mlflow_api::skills::{
    AllowedAction, NewSkill, SetSkillTag, Skill, SkillSearchParameters, SkillsResponse, UpdatedSkill, check_tag,
    selected_names,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result, SkillName};
use service::Endpoint;

use crate::request_targets::SkillTarget;
use crate::response_visibility::{add_actions, with_actions};
use crate::store::{Store, caller_name};

pub(crate) struct Create(NewSkill);

impl Endpoint for Create {
    type Store = Store;
    type Answer = Skill;

    fn read(request: &Request) -> Result<Self> {
        NewSkill::read(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::create_in(access::Target::Skill(self.0.name.clone()), Resource::Skill)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Skill> {
        let mut skill = store.skill_create(&self.0, caller_name(scope)).await?;
        // The creator may perform all actions, because the skill was created together with a grant
        // for the creator.
        skill.allowed_actions = scope.caller().user().map(|_| AllowedAction::ALL.to_vec());
        Ok(skill)
    }
}

pub(crate) struct Search {
    search: SkillSearchParameters,
    selected: Option<Vec<SkillName>>,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = SkillsResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { search: SkillSearchParameters::read(request)?, selected: selected_names(request)? })
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::Skill)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SkillsResponse> {
        let complete = |name: &_, skill: &mut _| add_actions(scope, name, skill);
        store.skill_search(scope.visibility(), &self.search, self.selected.as_deref(), complete).await
    }
}

pub(crate) struct Get(SkillTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = Skill;

    fn read(request: &Request) -> Result<Self> {
        SkillTarget::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        with_actions(Needs::read(self.0.target()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Skill> {
        let mut skill = store.skill_get(&self.0.granted(scope)?).await?;
        add_actions(scope, &self.0.0, &mut skill);
        Ok(skill)
    }
}

pub(crate) struct Update {
    skill: SkillTarget,
    update: UpdatedSkill,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = Skill;

    fn read(request: &Request) -> Result<Self> {
        let (skill, update) = SkillTarget::with_rest(request, UpdatedSkill::read)?;
        Ok(Self { skill, update })
    }

    fn needs(&self) -> Needs {
        with_actions(Needs::update(self.skill.target()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Skill> {
        let name = self.skill.granted(scope)?;
        let mut skill = store.skill_update(&name, &self.update, caller_name(scope)).await?;
        add_actions(scope, &name, &mut skill);
        Ok(skill)
    }
}

pub(crate) struct Delete(SkillTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        SkillTarget::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::delete(self.0.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.skill_delete(&self.0.granted(scope)?).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    skill: SkillTarget,
    tag: SetSkillTag,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (skill, tag) = SkillTarget::with_rest(request, SetSkillTag::read)?;
        Ok(Self { skill, tag })
    }

    fn needs(&self) -> Needs {
        Needs::update(self.skill.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.skill_set_tag(&self.skill.granted(scope)?, &self.tag).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    skill: SkillTarget,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (skill, key) = (SkillTarget::of(request)?, request.path_part("key").to_owned());
        check_tag(&key, "")?;
        Ok(Self { skill, key })
    }

    /// As in MLflow, deleting a tag of a skill only requires the right to update the skill.
    /// Deleting a tag of a version requires the right to manage the skill.
    fn needs(&self) -> Needs {
        Needs::update(self.skill.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.skill_delete_tag(&self.skill.granted(scope)?, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
