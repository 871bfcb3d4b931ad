//! The directories that contain uploaded content.

use artifact_store::ArtifactPath;
use key_schema::WideDigest;
use mlflow_api::SkillName;
use mlflow_api::skills::{SkillSource, SourceType};
use rand::RngExt;

/// Directory that contains the uploaded content of all skills of a workspace.
const SKILLS_DIRECTORY: &str = "skills";
/// Directory that contains the directories of workspaces.
const WORKSPACES_DIRECTORY: &str = "workspaces";
/// Prefix of the URIs of uploaded content.
const URI_PREFIX: &str = "mlflow-artifacts:/";

/// The directory of an upload. Its name is a random token.
#[derive(Clone, Debug)]
pub struct ContentDirectory {
    path: ArtifactPath,
    uri: String,
    token: u128,
}

impl ContentDirectory {
    /// Returns a new directory for content of a skill. `workspace` is the directory of the skill's
    /// workspace, or `None` for the default workspace.
    #[must_use]
    pub fn new(skill: &SkillName, workspace: Option<&str>) -> Self {
        let token: u128 = rand::rng().random();
        let mut parts = parts_of(skill);
        parts.push(format!("{token:032x}"));
        let uri = format!("{URI_PREFIX}{}", parts.join("/"));
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let path = in_workspace(&ArtifactPath::default().below(&parts), workspace);
        Self { path, uri, token }
    }

    /// Returns the path below the artifact root.
    #[must_use]
    pub fn path(&self) -> &ArtifactPath {
        &self.path
    }

    /// Returns the URI for clients. In contrast to the path, it does not contain the directory of
    /// the workspace.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub(super) fn token(&self) -> WideDigest {
        WideDigest(self.token)
    }
}

/// Returns the names of the directories of a skill: that of all skills, that of the organization,
/// if the skill has one, and that of the skill within it.
fn parts_of(skill: &SkillName) -> Vec<String> {
    let organization = Some(skill.organization()).filter(|organization| !organization.is_empty());
    let organization = organization.map(|organization| format!("@{organization}"));
    [Some(SKILLS_DIRECTORY.to_owned()), organization, Some(skill.name().to_owned())].into_iter().flatten().collect()
}

/// Returns a path below the artifact root, given the path within a workspace and the directory of
/// the workspace, which is `None` for the default workspace.
fn in_workspace(path: &ArtifactPath, workspace: Option<&str>) -> ArtifactPath {
    workspace.map_or_else(|| path.clone(), |workspace| path.below(&[WORKSPACES_DIRECTORY, workspace]))
}

/// Returns the path of a version's content below the artifact root, if the content was uploaded to
/// this skill, and `None` for all other sources. `workspace` is the directory of the skill's
/// workspace, or `None` for the default workspace.
#[must_use]
pub fn uploaded_path(source: &SkillSource, skill: &SkillName, workspace: Option<&str>) -> Option<String> {
    if source.kind != SourceType::Mlflow || source.subpath.is_some() {
        return None;
    }
    let path = content_path(source.location.strip_prefix(URI_PREFIX)?)?;
    let has_workspace = path.parts().first().is_some_and(|first| first == WORKSPACES_DIRECTORY);
    let (parts, _) = path.parts().get(if has_workspace { 2 } else { 0 }..)?.split_last_chunk::<1>()?;
    if parts != parts_of(skill) {
        return None;
    }
    match (has_workspace, workspace) {
        // A skill that was moved from a deleted workspace keeps its content there.
        (true, None) => Some(path.to_string()),
        (true, Some(_)) => None,
        (false, _) => Some(in_workspace(&path, workspace).to_string()),
    }
}

/// Returns the URI that uploaded content has if its files are moved to the directory of another
/// skill.
#[must_use]
pub fn uploaded_uri(skill: &SkillName, uri: &str) -> String {
    let token = uri.rsplit('/').next().unwrap_or_default();
    format!("{URI_PREFIX}{}/{token}", parts_of(skill).join("/"))
}

/// Parses a stored path of uploaded content. Returns `None` unless it has the form of the paths of
/// [`ContentDirectory`], so that no other files are ever deleted.
pub(super) fn content_path(stored: &str) -> Option<ArtifactPath> {
    let path = ArtifactPath::parse(stored).ok()?;
    let parts: Vec<_> = path.parts().iter().map(String::as_str).collect();
    let below = match parts.as_slice() {
        [WORKSPACES_DIRECTORY, _, rest @ ..] => rest,
        all => all,
    };
    let is_token = |token: &str| token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_content = match below {
        [SKILLS_DIRECTORY, name, token] => SkillName::parse(name).is_ok() && is_token(token),
        [SKILLS_DIRECTORY, organization, name, token] => {
            SkillName::parse(&format!("{organization}/{name}")).is_ok() && is_token(token)
        }
        _ => false,
    };
    is_content.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_belongs_to_the_skill_that_it_was_uploaded_to() {
        let token = "0123456789abcdef".repeat(2);
        let path = |kind, location: &str, name: &str, workspace| {
            let location = location.replace("TOKEN", &token);
            let source = SkillSource { kind, location, reference: None, subpath: None };
            uploaded_path(&source, &SkillName::parse(name).unwrap(), workspace)
        };
        let of = |location: &str, name: &str, workspace| path(SourceType::Mlflow, location, name, workspace);
        let uploaded = Some(format!("skills/@acme/a/{token}"));
        assert_eq!(of("mlflow-artifacts:/skills/@acme/a/TOKEN", "@acme/a", None), uploaded);
        let in_team = Some(format!("workspaces/team.1/skills/a/{token}"));
        assert_eq!(of("mlflow-artifacts:/skills/a/TOKEN", "a", Some("team.1")), in_team);
        assert_eq!(of("mlflow-artifacts:/workspaces/team.1/skills/a/TOKEN", "a", None), in_team);
        for (location, name, workspace) in [
            ("mlflow-artifacts:/workspaces/x/skills/a/TOKEN", "a", Some("team")),
            ("mlflow-artifacts:/skills/b/TOKEN", "a", None),
            ("mlflow-artifacts:/skills/@acme/a/TOKEN", "a", None),
            ("mlflow-artifacts:/skills/a/TOKEN/x", "a", None),
            ("mlflow-artifacts:/1/skill", "a", None),
            ("s3://bucket/skills/a/TOKEN", "a", None),
        ] {
            assert_eq!(of(location, name, workspace), None, "{location}");
        }
        assert_eq!(path(SourceType::Git, "mlflow-artifacts:/skills/a/TOKEN", "a", None), None);
        let other = uploaded_uri(&SkillName::parse("@acme/b").unwrap(), "mlflow-artifacts:/skills/a/0f");
        assert_eq!(other, "mlflow-artifacts:/skills/@acme/b/0f");
    }

    #[test]
    fn only_directories_of_tokens_are_deleted() {
        let token = "0123456789abcdef".repeat(2);
        for path in ["skills/a", "skills/@acme/a", "workspaces/team/skills/a", "workspaces/team.1/skills/@acme/a"] {
            assert!(content_path(&format!("{path}/{token}")).is_some(), "{path}");
            assert!(content_path(path).is_none(), "{path}");
            assert!(content_path(&format!("{path}/{token}/x")).is_none(), "{path}");
        }
        for path in
            ["", "skills", "1/skills/a", "skills/A", "skills/../1", "workspaces/team/skills", "workspaces/team/1/a"]
        {
            assert!(content_path(&format!("{path}/{token}")).is_none(), "{path}");
        }
    }

    #[test]
    fn new_directories_are_below_their_skill() {
        for (name, workspace, parent, uri) in [
            ("a", None, "skills/a/", "mlflow-artifacts:/skills/a/"),
            ("@acme/a", Some("team.1"), "workspaces/team.1/skills/@acme/a/", "mlflow-artifacts:/skills/@acme/a/"),
        ] {
            let directory = ContentDirectory::new(&SkillName::parse(name).unwrap(), workspace);
            let path = directory.path().to_string();
            assert!(path.starts_with(parent) && directory.uri().starts_with(uri), "{directory:?}");
            assert_eq!(content_path(&path).as_ref(), Some(directory.path()));
        }
    }
}
