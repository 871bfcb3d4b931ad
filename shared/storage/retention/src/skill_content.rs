//! Deletes the uploaded content of the skills of a workspace that was deleted with its contents.

use artifact_store::ArtifactPath;
use entities::attributes::ID;
use key_schema::attributes::{CONTENT_PATH, SOURCE_TYPE};
use key_schema::{Digest, Name, Segment as _, rows};
use mlflow_api::skills::SourceType;
use mlflow_api::{Result, SkillName, Workspace};
use table::{Item, Query};

use crate::store::Retention;

impl Retention {
    /// Deletes the uploaded content of all skills of a workspace, whose rows still exist. Takes one
    /// request for the skills, one per skill, and those that delete the files.
    pub(crate) async fn remove_skill_content(&self, workspace: &Workspace) -> Result<()> {
        let here = Name::from(workspace.as_str());
        let skills = self.table.query(Query::of(rows::Skill::partition(&here))).await?;
        // A server without artifacts has stored no content.
        let Ok(root) = self.artifacts.root() else { return Ok(()) };
        for id in skills.iter().filter_map(skill_id) {
            for version in self.table.query(Query::of(rows::SkillVersion::all(&id))).await? {
                if let Some(directory) = content_directory(&version) {
                    root.delete(&directory).await?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the id of a skill, or of a deleted skill whose versions remain.
fn skill_id(row: &Item) -> Option<Digest> {
    match rows::SkillRemoval::parse(&row.key()?) {
        Some(removal) => Some(removal.skill),
        None => row.get(ID).and_then(Digest::read),
    }
}

/// Returns the directory of a version's content, if the server has stored it.
fn content_directory(version: &Item) -> Option<ArtifactPath> {
    let is_stored = version.get(SOURCE_TYPE) == Some(SourceType::Mlflow.name());
    version.get(CONTENT_PATH).filter(|_| is_stored).and_then(owned_path)
}

/// Returns a stored path, if it has the form of those that the server writes in a workspace: a
/// directory named by a token, below that of its skill.
fn owned_path(stored: &str) -> Option<ArtifactPath> {
    let path = ArtifactPath::parse(stored).ok()?;
    let parts: Vec<_> = path.parts().iter().map(String::as_str).collect();
    let (name, token) = match parts.as_slice() {
        ["workspaces", _, "skills", name, token] => ((*name).to_owned(), *token),
        ["workspaces", _, "skills", organization, name, token] => (format!("{organization}/{name}"), *token),
        _ => return None,
    };
    let is_token = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_token && SkillName::parse(&name).is_ok()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::owned_path;

    #[test]
    fn only_directories_of_uploads_in_workspaces_are_deleted() {
        let token = "0123456789abcdef".repeat(2);
        for path in ["workspaces/team/skills/a", "workspaces/team.1/skills/@acme/a"] {
            assert!(owned_path(&format!("{path}/{token}")).is_some(), "{path}");
            assert!(owned_path(path).is_none(), "{path}");
            assert!(owned_path(&format!("{path}/{token}/x")).is_none(), "{path}");
        }
        for path in ["", "skills/a", "workspaces/team/skills", "workspaces/team/1/a", "workspaces/team/skills/A"] {
            assert!(owned_path(&format!("{path}/{token}")).is_none(), "{path}");
        }
    }
}
