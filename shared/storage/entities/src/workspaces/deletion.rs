//! Deletion of workspaces.

use std::time::Duration;

use crate::read_all;
use crate::webhooks::{self, WorkspaceSubscriptions};
use key_schema::attributes::{GOES_TO, ID, NAME};
use key_schema::{Key, KeyRange, ModelKind, Name, rows};
use mlflow_api::{Error, ErrorCode, McpServerName, Result, SkillName, Workspace};
use table::{Condition, Failure, Item, Query, Update, Write, text};

use crate::workspaces::document::{WorkspaceDocument, key_of};
use crate::workspaces::store::{Workspaces, former_key, listed_key};

/// How the contents of a deleted workspace are treated (`WorkspaceDeletionMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceDeletionMode {
    /// The workspace must be empty.
    Restrict,
    /// The contents are moved to the default workspace.
    SetDefault,
    /// The contents are removed.
    Cascade,
}

impl WorkspaceDeletionMode {
    /// All modes, in MLflow's order.
    pub const ALL: [Self; 3] = [Self::SetDefault, Self::Cascade, Self::Restrict];

    /// Returns MLflow's name of the mode.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restrict => "RESTRICT",
            Self::SetDefault => "SET_DEFAULT",
            Self::Cascade => "CASCADE",
        }
    }
}

/// The names of a workspace's entities of one kind, with MLflow's name of the database table for
/// this kind.
struct WorkspaceContents {
    table: &'static str,
    names: Vec<String>,
}

impl Workspaces {
    /// Starts to delete a workspace: checks that this is possible, and closes the workspace to all
    /// writes. If the deletion has already begun, it is resumed. Returns after `lease`, when no
    /// process relies on an earlier read of the workspace any more. Takes a few requests per
    /// thousand names.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` if the workspace does not exist. `INVALID_STATE` if it has
    /// contents that prevent the deletion, or a name that also exists in the default workspace. In
    /// these cases, nothing has changed.
    pub async fn begin_deletion(
        &self,
        name: &Workspace,
        mode: WorkspaceDeletionMode,
        lease: Duration,
    ) -> Result<WorkspaceDocument> {
        let found = self.get(name).await?;
        self.check(&found, mode).await?;
        let goes_to = match (mode, &found.goes_to) {
            // An earlier attempt may already have moved contents for removal. A resumed deletion
            // keeps this destination, whatever its mode.
            (_, Some(before)) if before.is_for_removal() => before.clone(),
            (WorkspaceDeletionMode::Cascade, _) => Workspace::for_removal(&found.id),
            (WorkspaceDeletionMode::SetDefault | WorkspaceDeletionMode::Restrict, _) => Workspace::default(),
        };
        let is_it = || Condition::Equals(ID.into(), text(&found.id));
        let mark = Update::new(key_of(name)).only_if(is_it()).set(GOES_TO, text(goes_to.as_str()));
        let mut writes = vec![Write::Update(mark)];
        if goes_to.is_for_removal() {
            writes.push(Write::Put(Item::new(listed_key(&goes_to)), Condition::Always));
        }
        match self.table.transact(&writes).await {
            Ok(()) => {}
            Err(Failure::Cancelled(_)) => return Err(name.not_found()),
            Err(failure) => return Err(failure.into()),
        }
        runtime::clock::sleep(lease).await;
        if let Err(error) = self.check(&found, mode).await {
            if found.goes_to.is_none() {
                self.give_back(&found).await?;
            }
            return Err(error);
        }
        Ok(WorkspaceDocument { goes_to: Some(goes_to), ..found })
    }

    /// Reopens a workspace to writes.
    async fn give_back(&self, found: &WorkspaceDocument) -> Result<()> {
        let is_it = Condition::Equals(ID.into(), text(&found.id));
        let update = Update::new(key_of(&found.name)).only_if(is_it).remove(GOES_TO);
        match self.table.transact(&[Write::Update(update)]).await {
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Moves the contents of a workspace, and deletes it. Takes one request per entity.
    ///
    /// If a concurrent deletion finishes first, a new workspace may be created under the same name.
    /// The contents of the new workspace are not changed: rows are listed by the name of the
    /// workspace, so after each page of rows was read, and before any of them is changed, the call
    /// checks that the old workspace still exists.
    ///
    /// # Errors
    /// The table cannot be read or written, in which case the call may be repeated. `INVALID_STATE`
    /// if a name was taken in the meantime.
    pub async fn finish_deletion(&self, begun: &WorkspaceDocument) -> Result<()> {
        let Some(to) = &begun.goes_to else { return Err(Error::internal("the deletion was not started")) };
        let is_it = || Condition::Equals(ID.into(), text(&begun.id));
        // The subscriptions are removed before the webhooks, so that calls write no more events.
        let subscriptions = [
            Write::Check(key_of(&begun.name), is_it()),
            Write::Delete(WorkspaceSubscriptions::key(&begun.name), Condition::Always),
        ];
        let workspace = [
            Write::Delete(key_of(&begun.name), is_it()),
            Write::Delete(listed_key(&begun.name), Condition::Always),
            Write::Put(Item::new(former_key(&begun.name)), Condition::Always),
        ];
        if !(self.move_all(begun, to).await? && self.change_if_deleting(&subscriptions).await?) {
            return Ok(());
        }
        self.table.delete_range(rows::WorkspaceDay::all(&begun.name.as_str().into()).range()).await?;
        for range in webhooks::rows_of(&begun.name) {
            if !self.remove_rows(begun, range).await? {
                return Ok(());
            }
        }
        self.change_if_deleting(&workspace).await.map(drop)
    }

    /// Executes a transaction that is cancelled unless the workspace still exists. Returns whether
    /// it was executed.
    async fn change_if_deleting(&self, writes: &[Write]) -> Result<bool> {
        match self.table.transact(writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns whether a workspace still exists and is being deleted. If so, all rows that were
    /// listed under its name before this call belong to it, and not to a new workspace of the same
    /// name.
    pub(crate) async fn is_still_deleting(&self, begun: &WorkspaceDocument) -> Result<bool> {
        let found = self.table.get(&key_of(&begun.name)).await?;
        Ok(found.is_some_and(|found| found.get(ID) == Some(begun.id.as_str()) && found.get(GOES_TO).is_some()))
    }

    /// Removes the rows of a range. Returns `false`, and stops, if the workspace is no longer being
    /// deleted. The keys of the rows must never be used again, because a new workspace of the same
    /// name may be created between this check and the removal.
    async fn remove_rows(&self, begun: &WorkspaceDocument, range: KeyRange) -> Result<bool> {
        let mut query = Query::of(range).for_removal();
        loop {
            let page = self.table.query_page(&query).await?;
            if page.items.is_empty() && page.next.is_none() {
                return Ok(true);
            }
            if !self.is_still_deleting(begun).await? {
                return Ok(false);
            }
            self.table.write_many(Vec::new(), &page.items.iter().filter_map(Item::key).collect::<Vec<_>>()).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(true),
            }
        }
    }

    /// Checks that a workspace can be deleted.
    async fn check(&self, found: &WorkspaceDocument, mode: WorkspaceDeletionMode) -> Result<()> {
        let name = &found.name;
        match mode {
            WorkspaceDeletionMode::Cascade => Ok(()),
            _ if found.goes_to.as_ref().is_some_and(Workspace::is_for_removal) => Err(Error::new(
                ErrorCode::InvalidState,
                format!(
                    "Cannot delete workspace '{name}': it is being deleted in mode CASCADE. Repeat the deletion in that mode."
                ),
            )),
            WorkspaceDeletionMode::Restrict => {
                for WorkspaceContents { table, names } in self.contents(name).await? {
                    let count = names.len();
                    if count > 0 {
                        return Err(Error::new(
                            ErrorCode::InvalidState,
                            format!(
                                "Cannot delete workspace '{name}': table '{table}' still contains {count} resource(s). \
                                 Remove or reassign them before deleting the workspace."
                            ),
                        ));
                    }
                }
                Ok(())
            }
            WorkspaceDeletionMode::SetDefault => {
                let conflicts = self.conflicts(name).await?;
                if conflicts.is_empty() {
                    return Ok(());
                }
                Err(conflict(name, &conflicts))
            }
        }
    }

    /// Returns the contents that prevent a workspace from being deleted.
    async fn contents(&self, workspace: &Workspace) -> Result<Vec<WorkspaceContents>> {
        let here = Name::from(workspace.as_str());
        let models = [ModelKind::Model, ModelKind::Prompt].map(|kind| rows::ModelName::all(&here).kind(&kind).range());
        let mut names = Vec::new();
        for range in models {
            names.extend(self.listed_names(range).await?);
        }
        let experiments = self.listed_names(rows::ExperimentName::all(&here).range()).await?;
        // The list row of a dataset with long texts has no name, so the name of such a dataset is
        // empty here.
        let datasets = self.table.query(Query::of(rows::WorkspaceEvaluationDataset::all(&here))).await?;
        let datasets = datasets.iter().map(|row| row.get(NAME).unwrap_or_default().to_owned()).collect();
        Ok(vec![
            WorkspaceContents { table: "registered_models", names },
            WorkspaceContents { table: "experiments", names: experiments },
            WorkspaceContents { table: "evaluation_datasets", names: datasets },
            WorkspaceContents { table: "mcp_servers", names: self.mcp_servers(&here).await? },
            WorkspaceContents { table: "skills", names: self.skills(&here).await? },
        ])
    }

    async fn mcp_servers(&self, workspace: &Name) -> Result<Vec<String>> {
        let name = |item: &Item| Some(rows::McpServer::parse(&item.key()?)?.server.to_string());
        self.names_in_keys(rows::McpServer::all(workspace).range(), "an MCP server", name).await
    }

    async fn skills(&self, workspace: &Name) -> Result<Vec<String>> {
        let name = |item: &Item| Some(rows::Skill::parse(&item.key()?)?.skill.to_string());
        self.names_in_keys(rows::Skill::all(workspace).range(), "a skill", name).await
    }

    async fn names_in_keys(
        &self,
        range: key_schema::KeyRange,
        what: &'static str,
        name: impl Fn(&Item) -> Option<String> + Send,
    ) -> Result<Vec<String>> {
        let mut query = Query::of(range);
        let mut names = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            names.extend(read_all(&page.items, what, &name)?);
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(names),
            }
        }
    }

    async fn listed_names(&self, range: KeyRange) -> Result<Vec<String>> {
        let mut query = Query::of(range);
        let mut names = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            names.extend(read_all(&page.items, "a name", |row| row.get(NAME).map(str::to_owned))?);
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(names),
            }
        }
    }

    /// Returns the names in a workspace that also exist in the default workspace, with MLflow's
    /// names of their tables.
    async fn conflicts(&self, workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
        let default = Name::from(Workspace::default().as_str());
        let mut conflicts = Vec::new();
        for WorkspaceContents { table, names } in self.contents(workspace).await? {
            let key = |name: &String| -> Vec<Key> {
                let name = Name::from(name.as_str());
                match table {
                    "experiments" => vec![rows::ExperimentName::key(&default, &name)],
                    "registered_models" => [ModelKind::Model, ModelKind::Prompt]
                        .map(|kind| rows::ModelName::key(&default, &kind, &name))
                        .to_vec(),
                    "mcp_servers" => McpServerName::parse(&name.0)
                        .map(|server| rows::McpServer::key(&default, &server))
                        .into_iter()
                        .collect(),
                    "skills" => {
                        SkillName::parse(&name.0).map(|skill| rows::Skill::key(&default, &skill)).into_iter().collect()
                    }
                    // Names of datasets are not unique.
                    _ => Vec::new(),
                }
            };
            let keys: Vec<_> = names.iter().flat_map(key).collect();
            if keys.is_empty() {
                continue;
            }
            let taken = self.table.get_many(&keys).await?;
            let name = |(key, row): (&Key, &Item)| {
                let server = rows::McpServer::parse(key).map(|row| row.server.to_string());
                let skill = || rows::Skill::parse(key).map(|row| row.skill.to_string());
                server.or_else(skill).or_else(|| row.get(NAME).map(str::to_owned))
            };
            let mut taken: Vec<_> = taken.iter().filter_map(name).collect();
            taken.sort_unstable();
            conflicts.extend(taken.into_iter().map(|name| (table, name)));
        }
        Ok(conflicts)
    }
}

/// Returns MLflow's error for names that are taken (`_check_set_default_conflicts`).
pub(crate) fn conflict(workspace: &Workspace, taken: &[(&'static str, String)]) -> Error {
    let line = |(table, name): &(&str, String)| format!("  - {table}: {}", mlflow_api::python::repr(name));
    let lines: Vec<_> = taken.iter().map(line).collect();
    Error::new(
        ErrorCode::InvalidState,
        format!(
            "Cannot reassign resources from workspace '{workspace}' to 'default': the following names already exist in the \
             default workspace and would cause conflicts:\n{}\nRename or remove the conflicting resources before retrying.",
            lines.join("\n")
        ),
    )
}
