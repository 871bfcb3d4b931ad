//! Removes registered models, evaluation datasets, MCP servers and skills that were moved to a
//! workspace that no request can name. The experiments of such a workspace are removed together
//! with deleted ones (`retention`).

use crate::attributes::{HOME, ID, NAME, RUN};
use crate::unreadable;
use key_schema::{Digest, Key, ModelKey, ModelKind, Name, Ordinal, Segment, key_parts, rows};
use mlflow_api::{Result, Workspace};
use table::{Condition, Failure, Item, Query, Write, text};

use crate::workspaces::store::{Workspaces, listed_key};

impl Workspaces {
    /// Removes the registered models, the evaluation datasets, the MCP servers and the skills of a
    /// workspace. Takes a few requests per entity. An interrupted call may be repeated.
    ///
    /// # Errors
    /// The table cannot be read or written.
    pub async fn remove_contents(&self, workspace: &Workspace) -> Result<()> {
        let here = Name::from(workspace.as_str());
        for kind in [ModelKind::Model, ModelKind::Prompt] {
            for row in self.table.query(Query::of(rows::ModelName::all(&here).kind(&kind))).await? {
                self.remove_model(workspace, &row).await?;
            }
        }
        for row in self.table.query(Query::of(rows::WorkspaceEvaluationDataset::all(&here))).await? {
            let key = row.key().ok_or_else(|| unreadable(&row, "a place in a list of evaluation datasets"))?;
            // The stream's consumer removes the contents of a deleted dataset.
            let dataset = key_parts::listed_evaluation_dataset(&key.sk).map(|id| rows::EvaluationDataset::key(&id));
            let writes: Vec<_> =
                dataset.into_iter().chain([key]).map(|key| Write::Delete(key, Condition::Always)).collect();
            self.table.transact(&writes).await?;
        }
        self.remove_mcp_servers(&here).await?;
        self.remove_skills(&here).await
    }

    /// Removes skills with their versions. The document of a skill is removed last, so that a
    /// repeated call finds versions that remain. The crate `retention` has deleted uploaded content
    /// before.
    async fn remove_skills(&self, workspace: &Name) -> Result<()> {
        for row in self.table.query(Query::of(rows::Skill::all(workspace))).await? {
            let unreadable = || unreadable(&row, "a skill");
            let key = row.key().ok_or_else(unreadable)?;
            let id = row.get(ID).and_then(Digest::read).ok_or_else(unreadable)?;
            self.table.delete_range(rows::SkillVersion::partition(&id)).await?;
            self.table.write_many(Vec::new(), &[key]).await?;
        }
        Ok(())
    }

    /// Removes MCP servers with their versions. The document of a server is removed last.
    async fn remove_mcp_servers(&self, workspace: &Name) -> Result<()> {
        for row in self.table.query(Query::of(rows::McpServer::all(workspace))).await? {
            let unreadable = || unreadable(&row, "an MCP server");
            let key = row.key().ok_or_else(unreadable)?;
            let id = row.get(ID).and_then(Digest::read).ok_or_else(unreadable)?;
            self.table.delete_range(rows::McpServerVersion::partition(&id)).await?;
            self.table.write_many(Vec::new(), &[key]).await?;
        }
        Ok(())
    }

    /// Removes a model with its versions. The row that lists the model is removed last.
    async fn remove_model(&self, workspace: &Workspace, row: &Item) -> Result<()> {
        let unreadable = || unreadable(row, "the name of a model");
        let (listed, name) = (row.key().ok_or_else(unreadable)?, row.get(NAME).ok_or_else(unreadable)?);
        let key = ModelKey::of(workspace, name);
        if let Some(item) = self.table.get(&rows::RegisteredModel::key(&key)).await? {
            let home = item.get(HOME).map_or_else(|| key.clone(), ModelKey::from);
            self.remove_versions(workspace, &home).await?;
            self.table.delete_range(rows::ModelVersion::all(&home).range()).await?;
            self.table.delete_range(rows::ModelTag::all(&home).range()).await?;
            let is_its = Condition::Equals(ID.into(), text(item.get(ID).unwrap_or_default()));
            match self.table.transact(&[Write::Delete(rows::ModelHome::key(&home), is_its)]).await {
                // An earlier attempt has already removed the model.
                Ok(()) | Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(self.table.write_many(Vec::new(), &[rows::RegisteredModel::key(&key), listed]).await?)
    }

    /// Removes the rows that map runs to the versions of a model.
    async fn remove_versions(&self, workspace: &Workspace, home: &ModelKey) -> Result<()> {
        let mut query = Query::of(rows::ModelVersion::all(home));
        loop {
            let page = self.table.query_page(&query).await?;
            let of_run = |item: &Item| -> Option<Key> {
                let version = Ordinal(key_parts::version_of_document(&item.key()?.sk)?);
                let run = item.get(RUN).filter(|run| !run.is_empty())?;
                Some(rows::VersionOfRun::key(&ModelKey::of(workspace, run), home, &version))
            };
            self.table.write_many(Vec::new(), &page.items.iter().filter_map(of_run).collect::<Vec<_>>()).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }

    /// Deletes the list row of a workspace whose contents have been removed.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn forget(&self, workspace: &Workspace) -> Result<()> {
        Ok(self.table.write_many(Vec::new(), &[listed_key(workspace)]).await?)
    }
}
