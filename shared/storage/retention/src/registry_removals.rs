//! Completes interrupted deletions of MCP servers and skills, and deletes the files of uploads that
//! were not completed. Also deletes the uploaded content of the skills of a deleted workspace.

use entities::attributes::ID;
use entities::{finish_mcp_server_removal, unreadable};
use key_schema::{Digest, Key, Segment as _, rows};
use mlflow_api::{Result, Workspace};
use table::{Item, Query};

use crate::failures::RemovalFailures;
use crate::skill_content::ContentRemoval;
use crate::store::Retention;

impl Retention {
    /// Deletes the versions of MCP servers and skills whose deletion was interrupted, and the files
    /// of uploads whose version was not registered within an hour. Working concurrently with the
    /// requests is harmless. Sends three requests if nothing is unfinished.
    ///
    /// # Errors
    /// Returns failures of the table and of the artifact store, after everything else has been
    /// tried.
    pub async fn resume_in_registries(&self) -> Result<()> {
        let content = self.skill_content();
        let mut failures = RemovalFailures::default();
        for row in self.table.query(Query::of(rows::McpServerRemoval::all())).await? {
            let removed = async {
                let removal = parsed(&row, "a deleted MCP server", rows::McpServerRemoval::parse)?;
                finish_mcp_server_removal(&self.table, removal.server).await
            };
            failures.note("versions of a deleted MCP server", removed.await)?;
        }
        for row in self.table.query(Query::of(rows::SkillRemoval::all())).await? {
            let removed =
                async { content.finish_skill(parsed(&row, "a deleted skill", rows::SkillRemoval::parse)?.skill).await };
            failures.note("versions of a deleted skill", removed.await)?;
        }
        for row in content.abandoned_uploads().await? {
            failures.note("the content of an abandoned upload", content.finish_upload(&row).await)?;
        }
        failures.finish()
    }

    /// Deletes the uploaded content of all skills of a workspace, whose rows still exist. Takes one
    /// request for the skills, one per skill, and those that delete the files.
    pub(crate) async fn remove_skill_content(&self, workspace: &Workspace) -> Result<()> {
        for skill in self.table.query(Query::of(rows::Skill::all(&workspace.as_str().into()))).await? {
            let id = skill.get(ID).and_then(Digest::read).ok_or_else(|| unreadable(&skill, "a skill"))?;
            self.skill_content().delete_content(id).await?;
        }
        Ok(())
    }

    fn skill_content(&self) -> ContentRemoval<'_> {
        ContentRemoval::new(&self.table, &self.artifacts).leaving_files(self.leaves_artifacts)
    }
}

fn parsed<Row>(item: &Item, what: &'static str, parse: impl Fn(&Key) -> Option<Row>) -> Result<Row> {
    item.key().and_then(|key| parse(&key)).ok_or_else(|| unreadable(item, what))
}
