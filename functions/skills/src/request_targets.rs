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
        Self::with_rest(request, |_| Ok(())).map(|(skill, ())| skill)
    }

    /// Parses the skill in the request's path, and the rest of the request with `read`. As in
    /// MLflow, mistakes in the format of both are reported together, and before others.
    pub(crate) fn with_rest<T>(request: &Request, read: impl FnOnce(&Request) -> Result<T>) -> Result<(Self, T)> {
        let mut mistakes = path_mistakes(request);
        let rest = read(request);
        mistakes.extend(rest.as_ref().err().and_then(mistake_in_format));
        if !mistakes.is_empty() {
            return Err(Error::invalid(format!("{IN_FORMAT}{}", mistakes.join("; "))));
        }
        Ok((Self::named(request)?, rest?))
    }

    /// Checks the format of the request's path, but not the name of the skill.
    pub(crate) fn check_format(request: &Request) -> Result<()> {
        let mistakes = path_mistakes(request);
        if mistakes.is_empty() { Ok(()) } else { Err(Error::invalid(format!("{IN_FORMAT}{}", mistakes.join("; ")))) }
    }

    /// Returns the skill in a path whose format has been checked.
    pub(crate) fn named(request: &Request) -> Result<Self> {
        SkillName::new(request.path_part("organization"), request.path_part("name")).map(Self)
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
        Self::with_rest(request, |_| Ok(())).map(|(version, ())| version)
    }

    /// Parses the version in the request's path, and the rest of the request with `read`, like
    /// [`SkillTarget::with_rest`].
    pub(crate) fn with_rest<T>(request: &Request, read: impl FnOnce(&Request) -> Result<T>) -> Result<(Self, T)> {
        // An error of the name or of the version's number precedes one of the rest.
        let (skill, rest) = SkillTarget::with_rest(request, |request| match read(request) {
            Err(error) if mistake_in_format(&error).is_some() => Err(error),
            rest => Ok(rest),
        })?;
        let version = version_in_path(request.path_part("version"))?;
        Ok((Self { skill, version }, rest?))
    }
}

/// The beginning of messages about the format of a request, which `FastAPI` checks.
const IN_FORMAT: &str = "Invalid request: ";

fn mistake_in_format(error: &Error) -> Option<String> {
    error.message.strip_prefix(IN_FORMAT).map(str::to_owned)
}

/// Returns the mistakes in the format of a path: of the name of the skill, and of the version if the
/// path has one.
fn path_mistakes(request: &Request) -> Vec<String> {
    let mut mistakes = Vec::new();
    let name = request.path_part("name");
    if name.starts_with('@') || name.contains('/') || name.is_empty() {
        mistakes.push("path.name: String should match pattern '^[^@/][^/]*$'".to_owned());
    }
    if request.path.iter().any(|(part, _)| part == "version") {
        let version = version_in_path(request.path_part("version"));
        mistakes.extend(version.as_ref().err().and_then(mistake_in_format));
    }
    mistakes
}
