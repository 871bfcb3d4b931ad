//! Moves the contents of a workspace to another workspace. Each entity is moved in its own
//! transaction, so that it is always in exactly one of the two workspaces. An interrupted move can
//! be resumed.

use crate::attributes::{EDITS, EXPERIMENT, HOME, ID, NAME, RUN, WORKSPACE};
use crate::{in_workspace, unreadable};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, KeyRange, ModelKey, ModelKind, Name, Ordinal, key_parts, rows};
use mlflow_api::{Error, Result, Workspace};
use table::{Condition, Failure, Item, Query, Update, Write, text};

use crate::workspaces::deletion::conflict;
use crate::workspaces::document::WorkspaceDocument;
use crate::workspaces::store::Workspaces;

/// Number of entities that are moved concurrently.
const CONCURRENCY: usize = 8;

impl Workspaces {
    /// Moves everything that a workspace lists. Returns `false`, possibly after moving some of it,
    /// if the workspace is no longer being deleted because a concurrent deletion has finished.
    /// Takes one or two requests per entity, and one per page of entities to check this.
    ///
    /// # Errors
    /// `INVALID_STATE` if a name is taken.
    pub(crate) async fn move_all(&self, begun: &WorkspaceDocument, to: &Workspace) -> Result<bool> {
        let from = &begun.name;
        let here = Name::from(from.as_str());
        let [models, prompts] =
            [ModelKind::Model, ModelKind::Prompt].map(|kind| (kind, rows::ModelName::all(&here).kind(&kind).range()));
        let experiments = rows::ExperimentName::all(&here).range();
        let datasets = rows::WorkspaceEvaluationDataset::all(&here).range();
        let scorers = rows::WorkspaceScorer::all(&here).range();
        let servers = rows::McpServer::all(&here).range();
        let skills = rows::Skill::all(&here).range();
        Ok(self.move_rows(begun, experiments, |row| self.move_experiment(row, from, to)).await?
            && self.move_rows(begun, models.1, |row| self.move_model(row, models.0, from, to)).await?
            && self.move_rows(begun, prompts.1, |row| self.move_model(row, prompts.0, from, to)).await?
            && self.move_rows(begun, datasets, |row| self.move_dataset(row, from, to)).await?
            && self.move_rows(begun, scorers, |row| self.move_scorer(row, to)).await?
            && self.move_rows(begun, servers, |row| self.move_mcp_server(row, from, to)).await?
            && self.move_rows(begun, skills, |row| self.move_skill(row, from, to)).await?)
    }

    async fn move_rows<F: Future<Output = Result<()>>>(
        &self,
        begun: &WorkspaceDocument,
        range: KeyRange,
        moved: impl Fn(Item) -> F,
    ) -> Result<bool> {
        let mut query = Query::of(range).whole();
        loop {
            let page = self.table.query_page(&query).await?;
            if !page.items.is_empty() && !self.is_still_deleting(begun).await? {
                return Ok(false);
            }
            let under_way: Vec<_> = page.items.into_iter().map(&moved).collect();
            stream::iter(under_way).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(true),
            }
        }
    }

    async fn move_experiment(&self, row: Item, from: &Workspace, to: &Workspace) -> Result<()> {
        let unreadable = || unreadable(&row, "the name of an experiment");
        let name = row.get(NAME).ok_or_else(unreadable)?;
        let experiment = row.get(EXPERIMENT).ok_or_else(unreadable)?;
        let is_its = Condition::Equals(EXPERIMENT.into(), text(experiment.to_string()));
        let new = rows::ExperimentName::key(&to.as_str().into(), &Name::from(name));
        let old = row.key().ok_or_else(unreadable)?;
        let writes = [
            Write::Update(says(rows::Experiment::key(&experiment), from, to)),
            Write::Put(under(&row, new), Condition::item_missing()),
            Write::Delete(old.clone(), is_its),
        ];
        self.moved(&writes, &old, || conflict(from, &[("experiments", name.to_owned())])).await
    }

    async fn move_dataset(&self, row: Item, from: &Workspace, to: &Workspace) -> Result<()> {
        let key = row.key().ok_or_else(|| unreadable(&row, "a place in a list of evaluation datasets"))?;
        let dataset = key_parts::listed_evaluation_dataset(&key.sk)
            .ok_or_else(|| unreadable(&row, "a place in a list of evaluation datasets"))?;
        let new = rows::WorkspaceEvaluationDataset::key(&to.as_str().into(), &dataset);
        let writes = [
            Write::Update(says(rows::EvaluationDataset::key(&dataset), from, to)),
            Write::Put(under(&row, new), Condition::Always),
            Write::Delete(key.clone(), Condition::Always),
        ];
        self.moved(&writes, &key, || Error::unavailable("failed to move a dataset")).await
    }

    async fn move_scorer(&self, row: Item, to: &Workspace) -> Result<()> {
        let key = row.key().ok_or_else(|| unreadable(&row, "a place in a list of scorers"))?;
        let new = Key { pk: rows::Workspace::key(&to.as_str().into()).pk, sk: key.sk.clone() };
        let writes = [Write::Put(under(&row, new), Condition::Always), Write::Delete(key, Condition::Always)];
        Ok(self.table.transact(&writes).await?)
    }

    /// Moves an MCP server, whose key contains the workspace. Its versions are stored under its id.
    async fn move_mcp_server(&self, row: Item, from: &Workspace, to: &Workspace) -> Result<()> {
        let unreadable = || unreadable(&row, "an MCP server");
        let old = row.key().ok_or_else(unreadable)?;
        let name = rows::McpServer::parse(&old).ok_or_else(unreadable)?.server;
        let new = rows::McpServer::key(&to.as_str().into(), &name);
        self.move_document(&row, old, new, to, || conflict(from, &[("mcp_servers", name.to_string())])).await
    }

    /// Moves the document of a skill, whose key contains the workspace. The versions do not move,
    /// because their keys contain only the skill's id. The uploaded content stays in the directory
    /// of the workspace `from`.
    async fn move_skill(&self, row: Item, from: &Workspace, to: &Workspace) -> Result<()> {
        let unreadable = || unreadable(&row, "a skill");
        let old = row.key().ok_or_else(unreadable)?;
        let name = rows::Skill::parse(&old).ok_or_else(unreadable)?.skill;
        let new = rows::Skill::key(&to.as_str().into(), &name);
        self.move_document(&row, old, new, to, || conflict(from, &[("skills", name.to_string())])).await
    }

    /// Moves a document to the key `new` in another workspace. If there is already an item with
    /// this key, returns the error of `taken`.
    async fn move_document(
        &self,
        row: &Item,
        old: Key,
        new: Key,
        to: &Workspace,
        taken: impl FnOnce() -> Error + Send,
    ) -> Result<()> {
        let mut item = under(row, new.clone());
        item.take(WORKSPACE);
        let is_unchanged = Condition::unchanged(row, ID).and(Condition::unchanged(row, EDITS));
        let writes = [Write::Put(in_workspace(item, to), Condition::item_missing()), Write::Delete(old, is_unchanged)];
        match self.table.transact(&writes).await {
            Ok(()) => Ok(()),
            Err(Failure::Cancelled(_)) if self.table.get(&new).await?.is_some() => Err(taken()),
            Err(Failure::Cancelled(_)) => Err(Error::unavailable("an entity was changed while it was being moved")),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Moves a model, whose key changes because it contains the workspace. Its other rows stay
    /// under the model's home, as they do when a model is renamed (`docs/adr/0014-model-homes.md`).
    async fn move_model(&self, row: Item, kind: ModelKind, from: &Workspace, to: &Workspace) -> Result<()> {
        let listed = row.key().ok_or_else(|| unreadable(&row, "the name of a model"))?;
        let name = row.get(NAME).ok_or_else(|| unreadable(&row, "the name of a model"))?;
        let (old, new) = (ModelKey::of(from, name), ModelKey::of(to, name));
        let old_key = rows::RegisteredModel::key(&old);
        // If another model has taken the name in the meantime, it has its own list row and is moved
        // separately.
        let Some(item) = self.table.get(&old_key).await?.filter(|item| item.get(NAME) == Some(name)) else {
            return Ok(self.table.write_many(Vec::new(), &[listed]).await?);
        };
        let id = item.get(ID).ok_or_else(|| unreadable(&item, "a registered model"))?.to_owned();
        let home = item.get(HOME).map_or_else(|| old.clone(), ModelKey::from);
        let is_it = || Condition::Equals(ID.into(), text(&id));
        let item = under(&item, rows::RegisteredModel::key(&new));
        let mut item = if home == new { item } else { item.with(HOME, text(home.to_attribute())) };
        if home == new {
            item.take(HOME);
        }
        item.take(WORKSPACE);
        let list_key = rows::ModelName::key(&to.as_str().into(), &kind, &Name::from(name));
        let writes = [
            Write::Put(in_workspace(item, to), Condition::item_missing()),
            Write::Delete(old_key, is_it()),
            Write::Update(says(rows::ModelHome::key(&home), from, to).only_if(is_it())),
            Write::Put(under(&row, list_key), Condition::Always),
            Write::Delete(listed.clone(), Condition::Always),
        ];
        // The rows that map runs to versions are moved before the model itself. After an
        // interruption, the model is then still listed and the move is resumed.
        let of_runs = self.versions_of_runs(&home).await?;
        let named = |workspace: &Workspace| {
            let key = |(run, version): &(String, u32)| {
                rows::VersionOfRun::key(&ModelKey::of(workspace, run), &home, &Ordinal(*version))
            };
            of_runs.iter().map(key).collect::<Vec<_>>()
        };
        let rows = named(to).into_iter().map(|key| Item::new(key).with(HOME, text(home.to_attribute())));
        self.table.write_many(rows.collect(), &[]).await?;
        self.table.write_many(Vec::new(), &named(from)).await?;
        match self.table.transact(&writes).await {
            Ok(()) => Ok(()),
            Err(Failure::Cancelled(_)) => {
                if self.table.get(&rows::RegisteredModel::key(&new)).await?.is_some() {
                    return Err(conflict(from, &[("registered_models", name.to_owned())]));
                }
                Err(Error::unavailable("the model was changed while it was being moved"))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the versions in a home that refer to runs, each with its run.
    async fn versions_of_runs(&self, home: &ModelKey) -> Result<Vec<(String, u32)>> {
        let mut query = Query::of(rows::ModelVersion::all(home));
        let mut found = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            let of_run = |item: &Item| {
                let run = item.get(RUN).filter(|run| !run.is_empty())?;
                Some((run.to_owned(), key_parts::version_of_document(&item.key()?.sk)?))
            };
            found.extend(page.items.iter().filter_map(of_run));
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(found),
            }
        }
    }

    /// Executes the transaction that moves an entity. The first write is the entity's item, the
    /// second one the new list row, and the third one the deletion of the old list row at `old`.
    /// `taken` returns the error for a name that exists in the destination.
    async fn moved(&self, writes: &[Write], old: &Key, taken: impl FnOnce() -> Error) -> Result<()> {
        match self.table.transact(writes).await {
            Ok(()) => Ok(()),
            Err(Failure::Cancelled(reasons)) => {
                let refused = |write: usize| matches!(reasons.get(write), Some(table::WriteRefusal::Refused(_)));
                if refused(1) && !refused(0) {
                    return Err(taken());
                }
                // The listed entity no longer exists, or belongs to another workspace. Its list row
                // is a leftover.
                Ok(self.table.write_many(Vec::new(), std::slice::from_ref(old)).await?)
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Returns an update that changes an item's workspace to `to`, on condition that it is `from`.
fn says(key: Key, from: &Workspace, to: &Workspace) -> Update {
    let is = if *from == Workspace::default() {
        Condition::Missing(WORKSPACE.into())
    } else {
        Condition::Equals(WORKSPACE.into(), text(from.as_str()))
    };
    let update = Update::new(key).only_if(is);
    if *to == Workspace::default() { update.remove(WORKSPACE) } else { update.set(WORKSPACE, text(to.as_str())) }
}

/// Returns a copy of an item under another key.
fn under(item: &Item, key: Key) -> Item {
    let mut item = item.clone();
    item.0.extend(Item::new(key).0);
    item
}
