//! Changes of model versions: description, stage and deletion.

use access::Granted;
use std::collections::BTreeMap;

use entities::documents::DocumentChange;
use entities::now_ms;
use key_schema::index::VersionsInStage;
use key_schema::{Field, IndexEntry, ModelKey, Ordinal, key_parts, rows};
use mlflow_api::registry::{ModelStage, ModelVersion};
use mlflow_api::{Error, ErrorCode, RegisteredModelName, Result, Workspace, limits_registry as limits};
use table::{ChangePlan, Condition, Failure, Item, Query, Update, Value, Write, number, text};

use super::Store;
use super::attributes::{ALIASES, DESCRIPTION, LATEST, RUN, TAG_ROWS, UPDATED, VERSION_STAGE};
use super::model_item::{Model, list_changed, versions_map};
use super::version_item::{VersionItem, stage_of};
use super::version_tag::VersionDocument;

/// Maximum number of versions that are archived in one transaction. A transaction has up to 100
/// writes.
const MAX_ARCHIVED: usize = 90;
/// Page size for finding the version with the highest number among those without a stage.
const PAGE_SIZE: usize = 50;

impl Store {
    /// Changes or removes a version's description, and returns the version. Takes two requests.
    pub async fn version_update(
        &self,
        name: &Granted<RegisteredModelName>,
        version: &str,
        description: Option<&str>,
    ) -> Result<ModelVersion> {
        let name = name.as_str();
        limits::model_name(name)?;
        let version = limits::version(version)?;
        let mut found = self.version_find(name, &version).await?;
        let document = VersionDocument { name, home: found.model.home(), version: &version };
        let mut change = DocumentChange { set: vec![(UPDATED.name(), number(now_ms()))], ..DocumentChange::default() };
        match description {
            Some(description) => change.set.push((DESCRIPTION.name(), text(description))),
            None => change.remove.push(DESCRIPTION.name()),
        }
        found.item = entities::documents::change(&self.table, &document, change).await?;
        self.version_from_item(&found).await
    }

    /// Moves a version to a stage, archives the other versions in that stage if requested, and
    /// returns the version. Takes three requests, and one for each stage whose highest version has
    /// to be determined again.
    pub async fn version_transition(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        version: &str,
        stage: &str,
        archive_others: bool,
    ) -> Result<ModelVersion> {
        let name = name.as_str();
        let to = ModelStage::parse(stage)?;
        if archive_others && !to.is_active() {
            // As in MLflow, the error has no specific code.
            let message = format!(
                "Model version transition cannot archive existing model versions because '{stage}' is not an Active stage. \
                 Valid stages are ['Staging', 'Production']"
            );
            return Err(Error::new(ErrorCode::InternalError, message));
        }
        limits::model_name(name)?;
        let version = limits::version(version)?;
        let mut attempts = self.table.attempts("a model");
        loop {
            attempts.next().await?;
            let mut found = self.version_find(name, &version).await?;
            let mut others = Vec::new();
            if archive_others {
                others = self.versions_in_stage(&found.model, to).await?;
                others.retain(|other| *other != found.number);
            }
            let is_last_part = others.len() <= MAX_ARCHIVED;
            others.truncate(MAX_ARCHIVED);
            let mut moves: Vec<_> =
                others.into_iter().map(|other| StageMove::new(other, to, ModelStage::Archived)).collect();
            if is_last_part {
                moves.push(StageMove::new(found.number, found.stage(), to));
            }
            if !self.versions_move(workspace, &found.model, &moves).await? {
                continue;
            }
            attempts.progressed();
            if is_last_part {
                let item = self.table.get(&found.key()).await?;
                found.item = item.ok_or_else(|| version.not_found(name))?;
                return self.version_from_item(&found).await;
            }
        }
    }

    /// Deletes a version and its aliases. Takes two requests, and one more if it was the highest
    /// version in its stage.
    pub async fn version_delete(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        version: &str,
    ) -> Result<()> {
        let name = name.as_str();
        let version = limits::version(version)?;
        limits::model_name(name)?;
        let version = &version;
        let found = self
            .table
            .change("a model", |_| async move {
                let found = self.version_find(name, version).await?;
                let (model, now) = (&found.model, now_ms());
                let latest = self.latest_without(model, &[(found.number, found.stage())]).await?;
                let aliases = model.aliases().into_iter().filter(|(_, of)| *of != found.number);
                let update = model
                    .unchanged()
                    .set(LATEST, latest_map(&latest))
                    .set(ALIASES, versions_map(aliases))
                    .set(UPDATED, number(now));
                let mut writes = vec![
                    Write::Update(update),
                    Write::Delete(found.key(), Condition::item_exists()),
                    list_changed(workspace, model, now),
                ];
                if let Some(run) = found.item.get(RUN).filter(|run| !run.is_empty()) {
                    let of_run =
                        rows::VersionOfRun::key(&ModelKey::of(workspace, run), &model.home(), &Ordinal(found.number));
                    writes.push(Write::Delete(of_run, Condition::Always));
                }
                Ok::<_, Error>(ChangePlan::Write(writes, found))
            })
            .await?;
        self.version_clear(&found).await
    }

    /// Deletes the rows of a deleted version. The number of the version is never reused, so rows
    /// that are left by an interrupted call are never shown.
    async fn version_clear(&self, found: &VersionItem) -> Result<()> {
        if !found.item.has(TAG_ROWS) {
            return Ok(());
        }
        let rows = self.version_tag_rows(&found.model.home(), found.number, &found.item).await?;
        let keys: Vec<_> = rows.iter().filter_map(Item::key).collect();
        Ok(self.table.write_many(Vec::new(), &keys).await?)
    }

    /// Moves versions between stages, and updates the model's map of the highest version in each
    /// stage. Returns `false` if another request changed the model or a version concurrently.
    async fn versions_move(&self, workspace: &Workspace, model: &Model, moves: &[StageMove]) -> Result<bool> {
        let leaving: Vec<_> = moves.iter().map(|one| (one.version, one.from)).collect();
        let mut latest = self.latest_without(model, &leaving).await?;
        for StageMove { version, to, .. } in moves {
            let greatest = latest.entry(*to).or_default();
            *greatest = (*greatest).max(*version);
        }
        let now = now_ms();
        let update = model.unchanged().set(LATEST, latest_map(&latest)).set(UPDATED, number(now));
        let home = model.home();
        let versions = moves.iter().map(|StageMove { version, from, to }| {
            let version = Ordinal(*version);
            let update = Update::new(rows::ModelVersion::key(&home, &version))
                .only_if(Condition::Equals(VERSION_STAGE.into(), text(from.name())))
                .set(VERSION_STAGE, text(to.name()))
                .set(UPDATED, number(now));
            Write::Update(match to {
                ModelStage::None => update.not_indexed(VersionsInStage::INDEX),
                _ => update.indexed(VersionsInStage::key(&Field::from(to.name()), &version)),
            })
        });
        let writes: Vec<_> =
            [Write::Update(update), list_changed(workspace, model, now)].into_iter().chain(versions).collect();
        match self.table.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the highest version in each stage after the given versions have left their stages.
    /// Takes one request for each stage that loses its highest version.
    async fn latest_without(&self, model: &Model, leaving: &[(u32, ModelStage)]) -> Result<BTreeMap<ModelStage, u32>> {
        let mut latest = model.latest();
        for (version, stage) in leaving {
            if latest.get(stage) != Some(version) {
                continue;
            }
            let gone: Vec<_> = leaving.iter().map(|(version, _)| *version).collect();
            match self.greatest_in_stage(model, *stage, &gone).await? {
                Some(next) => latest.insert(*stage, next),
                None => latest.remove(stage),
            };
        }
        Ok(latest)
    }

    /// Returns the highest version in a stage, excluding the given versions.
    async fn greatest_in_stage(&self, model: &Model, stage: ModelStage, but_for: &[u32]) -> Result<Option<u32>> {
        if stage != ModelStage::None {
            let versions = self.versions_in_stage(model, stage).await?;
            return Ok(versions.into_iter().rev().find(|version| !but_for.contains(version)));
        }
        // There is no index of versions without a stage, so the versions are read from the highest
        // number down. Most versions have no stage, so few of them have to be read.
        let mut query = Query::of(rows::ModelVersion::all(&model.home())).backwards().limit(PAGE_SIZE);
        loop {
            let page = self.table.query_page(&query).await?;
            let in_no_stage = page.items.iter().filter(|item| stage_of(item) == ModelStage::None);
            let mut versions = in_no_stage.filter_map(|item| key_parts::version_of_document(&item.key()?.sk));
            if let Some(found) = versions.find(|version| !but_for.contains(version)) {
                return Ok(Some(found));
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(None),
            }
        }
    }

    /// Returns the versions in a stage other than `None`, in ascending order. Takes one request.
    async fn versions_in_stage(&self, model: &Model, stage: ModelStage) -> Result<Vec<u32>> {
        let range = VersionsInStage::all(&model.home()).stage(&Field::from(stage.name()));
        let items = self.table.query(Query::of(range)).await?;
        Ok(items.iter().filter_map(Item::entry::<VersionsInStage>).map(|listed| listed.version.0).collect())
    }
}

/// A move of a version from one stage to another.
struct StageMove {
    version: u32,
    from: ModelStage,
    to: ModelStage,
}

impl StageMove {
    fn new(version: u32, from: ModelStage, to: ModelStage) -> Self {
        Self { version, from, to }
    }
}

fn latest_map(latest: &BTreeMap<ModelStage, u32>) -> Value {
    versions_map(latest.iter().map(|(stage, version)| (stage.name(), *version)))
}
