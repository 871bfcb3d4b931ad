//! The directories that contain uploaded content.

use artifact_store::ArtifactPath;
use key_schema::WideDigest;
use mlflow_api::SkillName;
use rand::RngExt;

/// Directory that contains the uploaded content of all skills of a workspace.
const SKILLS_DIRECTORY: &str = "skills";
/// Directory that contains the directories of workspaces.
const WORKSPACES_DIRECTORY: &str = "workspaces";

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
        let organization = Some(skill.organization()).filter(|organization| !organization.is_empty());
        let organization = organization.map(|organization| format!("@{organization}"));
        let name = format!("{token:032x}");
        let parts: Vec<_> =
            [SKILLS_DIRECTORY].into_iter().chain(organization.as_deref()).chain([skill.name(), &name]).collect();
        let uri = format!("mlflow-artifacts:/{}", parts.join("/"));
        let path = ArtifactPath::default().below(&parts);
        let path = workspace.map_or(path.clone(), |workspace| path.below(&[WORKSPACES_DIRECTORY, workspace]));
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
