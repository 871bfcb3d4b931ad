//! The skills and versions that requests name in their paths.

use access::{Action, Granted, Needs, Resource, Scope, Target};
use mlflow_api::skills::version_in_path;
use mlflow_api::{Error, Request, Result, SkillName};

use crate::store::skill_not_found;

/// The skill that a request names in its path.
#[derive(Clone, Debug)]
pub(crate) struct SkillTarget(pub(crate) SkillName);

impl SkillTarget {
    /// Parses the name and, if there is one, the organization in the request's path.
    pub(crate) fn of(request: &Request) -> Result<Self> {
        let name = request.path_part("name");
        if name.starts_with('@') || name.contains('/') || name.is_empty() {
            return Err(Error::invalid("Invalid request: path.name: String should match pattern '^[^@/][^/]*$'"));
        }
        SkillName::new(request.path_part("organization"), name).map(Self)
    }

    pub(crate) fn target(&self) -> Target {
        Target::Skill(self.0.clone())
    }

    /// Returns the skill if the scope grants access to it. Otherwise, the error is that of a
    /// missing skill.
    pub(crate) fn granted(&self, scope: &Scope) -> Result<Granted<SkillName>> {
        scope.known_skill(&self.0)?.ok_or_else(|| skill_not_found(&self.0))
    }

    /// Returns the needs of a request that performs an action on versions of the skill.
    pub(crate) fn of_versions(&self, action: Action) -> Needs {
        Needs::of_in(action, Resource::SkillVersion, self.target())
    }
}

/// The version that a request names in its path.
#[derive(Clone, Debug)]
pub(crate) struct VersionTarget {
    pub(crate) skill: SkillTarget,
    pub(crate) version: u32,
}

impl VersionTarget {
    pub(crate) fn of(request: &Request) -> Result<Self> {
        let skill = SkillTarget::of(request)?;
        Ok(Self { skill, version: version_in_path(request.path_part("version"))? })
    }
}
