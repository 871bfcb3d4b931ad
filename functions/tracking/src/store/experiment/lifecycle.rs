//! Creating, reading, renaming, deleting and restoring experiments.

use access::{Granted, Guard, Resource};
use entities::attributes::{
    CREATED, EXPERIMENT, LAST_NUMBER, LOCATION, NAME, NONCE, STAGE, STAGE_VERSION, TAG_ROWS, TAGS, UPDATED,
};
use entities::trace_archival::ArchiveRequest;
use entities::trace_retention::TraceRetentionSetting;
use entities::workspaces::Workspaces;
use entities::{Moment, being_removed, entries, experiment_state, if_closed, layout, now_ms};
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Stage, rows};
use mlflow_api::tracking::{self, KeyValue, LifecycleStage};
use mlflow_api::{
    ARCHIVE_NOW_TAG, Error, ErrorCode, ExperimentId, Result, TRACE_RETENTION_TAG, Workspace, limits, location,
};
use table::{ChangePlan, Condition, Failure, Item, Query, RefusedWrites, Update, Write, WriteRefusal, number, text};

use super::items::{ExperimentItems, StoredExperiment, name_key, name_row};
use crate::store::Store;
use crate::store::generated_names::DEFAULT_EXPERIMENT_NAME;

/// Name of the setting that counts experiment ids.
const COUNTER: &str = "experiment_counter";
/// Maximum number of ids that are tried for a new experiment. The increment from one attempt to the
/// next doubles each time.
const MAX_ATTEMPTS: u32 = 24;

/// Index, in the transaction that restores an experiment, of the write that checks that the
/// experiment is not being deleted permanently.
const REMOVAL_CHECK_INDEX: usize = 2;

/// An experiment to create.
#[derive(Clone, Debug, Default)]
pub struct NewExperiment {
    /// Name.
    pub name: String,
    /// Artifact location of the experiment's runs. If it is empty, the server chooses one.
    pub artifact_location: String,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

/// Returns the error about a name that is in use, given the row that claims the name. The error
/// code is a parameter because MLflow's codes differ between creating and renaming an experiment.
/// Unlike MLflow's message, this one says if the name belongs to a deleted experiment.
fn name_taken(row: Option<&Item>, name: &str, code: ErrorCode) -> Error {
    if row.and_then(|row| row.get(NAME)).is_some_and(|taken| taken != name) {
        return Error::key_taken("experiment");
    }
    let stage = row.and_then(Item::entry::<ExperimentsByStage>).map(|entry| entry.stage);
    let is_deleted = matches!(stage, Some(Stage::Deleted { .. }));
    let advice = " It is deleted. Restore it or delete it permanently to reuse the name.";
    Error::new(code, format!("Experiment(name={name}) already exists.{}", if is_deleted { advice } else { "" }))
}

/// Returns the condition that the row of a name belongs to this experiment.
fn is_name_of(experiment: ExperimentId) -> Condition {
    Condition::Equals(EXPERIMENT.into(), text(experiment.to_string()))
}

impl Store {
    /// Creates an experiment. Takes two requests, and costs five write units for the table and two
    /// for the lists by time. If the experiment has the tag that sets how long its traces are kept,
    /// up to three more requests are needed, and one for the tag that requests their archival.
    pub async fn experiment_create(&self, workspace: &Workspace, new: &NewExperiment) -> Result<ExperimentId> {
        limits::experiment_name(&new.name)?;
        let artifact_location = location::absolute(&new.artifact_location, self.working_directory.as_deref())?;
        for (key, value) in &new.tags {
            limits::experiment_tag(key, value)?;
        }
        if let Some(key) = entities::documents::repeated_key(&new.tags) {
            // MLflow reports every violated constraint, including a repeated tag, as a name that is
            // in use.
            let message = format!("The tag '{key}' is given twice.");
            return Err(Error::new(ErrorCode::ResourceAlreadyExists, message));
        }
        let new = &NewExperiment { artifact_location, ..new.clone() };
        let says_retention = new.tags.iter().any(|(key, _)| key == TRACE_RETENTION_TAG);
        // The name is checked before the experiment is added to the setting that lists experiments
        // with a trace retention tag, so that a creation that fails because of its name takes up no
        // space in the setting.
        if says_retention && let Some(row) = self.table.get(&name_key(workspace, &new.name)).await? {
            return Err(name_taken(Some(&row), &new.name, ErrorCode::ResourceAlreadyExists));
        }
        // If an id is in use, the counter skips ahead, twice as far with each attempt, so that a
        // counter that was reset catches up in a few steps.
        for step in (0..MAX_ATTEMPTS).map(|attempt| 1_i64 << attempt) {
            let counter = rows::Config::key(&COUNTER.into());
            let setting = self.table.update(&Update::upsert(counter).add(LAST_NUMBER, number(step))).await?;
            let number = setting.get(LAST_NUMBER).and_then(|number| number.try_into().ok());
            let id =
                number.and_then(ExperimentId::from_number).ok_or_else(|| Error::internal("no experiment ids left"))?;
            if says_retention {
                TraceRetentionSetting::announce(&self.table, id).await?;
            }
            if new.tags.iter().any(|(key, _)| key == ARCHIVE_NOW_TAG) {
                ArchiveRequest::announce(&self.table, id).await?;
            }
            match self.experiment_put(workspace, id, new, Vec::new()).await {
                // The id is in use: the counter was reset, or experiments were imported.
                Ok(false) => {}
                Ok(true) => return Ok(id),
                Err(error) => return Err(error),
            }
        }
        Err(Error::internal("no free number for an experiment was found"))
    }

    /// Creates the default experiment if it does not exist, together with the item that records the
    /// table's layout. Takes one request if the experiment exists.
    pub async fn experiment_create_default(&self, workspace: &Workspace) -> Result<()> {
        if self.table.get(&rows::Experiment::key(&ExperimentId::DEFAULT)).await?.is_some() {
            return Ok(());
        }
        let new = NewExperiment { name: DEFAULT_EXPERIMENT_NAME.to_owned(), ..NewExperiment::default() };
        match self.experiment_put(workspace, ExperimentId::DEFAULT, &new, vec![layout::row()]).await {
            Err(error) if error.code != ErrorCode::ResourceAlreadyExists => Err(error),
            // Another process has created the default experiment concurrently.
            _ => Ok(()),
        }
    }

    /// Writes a new experiment and its name, together with other items. Returns `false` if the id
    /// is in use.
    async fn experiment_put(
        &self,
        workspace: &Workspace,
        id: ExperimentId,
        new: &NewExperiment,
        with: Vec<Write>,
    ) -> Result<bool> {
        let created = now_ms();
        let location = if new.artifact_location.is_empty() {
            let workspaces = Workspaces::new(self.table.clone());
            location::append(&workspaces.artifact_root(workspace, &self.artifact_root).await?, &id.to_string())
        } else {
            new.artifact_location.clone()
        };
        let stored = StoredExperiment {
            id,
            workspace,
            name: &new.name,
            artifact_location: &location,
            stage: LifecycleStage::Active,
            stage_version: 0,
            created,
            updated: created,
            tags: &new.tags,
        };
        let ExperimentItems { document, tags: tag_rows, name } = stored.items();
        let item = self.authorizer_writes.with_owner(document);
        let mut others = vec![Write::Put(name, Condition::item_missing())];
        let has_check =
            self.authorizer_writes.workspace_open_condition(workspace).map(|check| others.push(check)).is_some();
        others.extend(with);
        others.extend(self.authorizer_writes.writes_of_creation(
            Resource::Experiment,
            &Guard::Experiment(id),
            &id.to_string(),
            &id.to_string(),
        ));
        entities::documents::take_all_rows(&mut others, tag_rows)?;
        match self.table.create(item, others).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(reasons)) => match reasons.get(1) {
                Some(WriteRefusal::Refused(row)) => {
                    Err(name_taken(row.as_ref(), &new.name, ErrorCode::ResourceAlreadyExists))
                }
                _ => if_closed(workspace, reasons.get(2).filter(|_| has_check)).map_or(Ok(false), Err),
            },
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads an experiment. Takes one request, and one more if it has tags that are too large for
    /// its document.
    pub async fn experiment_get(
        &self,
        workspace: &Workspace,
        id: &Granted<ExperimentId>,
    ) -> Result<tracking::Experiment> {
        let id = **id;
        let since = Moment::now();
        let item = self.table.get(&rows::Experiment::key(&id)).await?.ok_or_else(|| id.not_found())?;
        self.experiments.keep_lease(id, since, &item);
        self.experiment_from_item(workspace, id, &item).await
    }

    /// Builds an experiment from its item. Takes one more request if the experiment has rows of
    /// tags.
    pub(crate) async fn experiment_from_item(
        &self,
        workspace: &Workspace,
        id: ExperimentId,
        item: &Item,
    ) -> Result<tracking::Experiment> {
        let rows = if item.has(TAG_ROWS) {
            self.table.query(Query::of(rows::ExperimentTag::all(&id))).await?
        } else {
            Vec::new()
        };
        let tags = entries(item, TAGS, &rows)?.into_iter().map(|(key, value)| KeyValue { key, value });
        let mut experiment = tracking::Experiment {
            experiment_id: id.to_string(),
            name: item.get(NAME).unwrap_or_default().to_owned(),
            artifact_location: item.get(LOCATION).unwrap_or_default().to_owned(),
            lifecycle_stage: item.get(STAGE).unwrap_or_default(),
            last_update_time: item.get(UPDATED).unwrap_or_default(),
            creation_time: item.get(CREATED).unwrap_or_default(),
            tags: tags.collect(),
            effective_trace_archival_retention: None,
            workspace: workspace.clone(),
        };
        self.set_archival_retention(id, &mut experiment);
        Ok(experiment)
    }

    /// Renames an experiment. Takes two requests.
    pub async fn experiment_rename(
        &self,
        workspace: &Workspace,
        id: &Granted<ExperimentId>,
        new_name: &str,
    ) -> Result<()> {
        let id = **id;
        self.table
            .change("an experiment", |refusal| async move {
                // The experiment has not changed, so the write was refused because of the new name.
                // The name is in use, and was not claimed by an earlier attempt of this request.
                if !refusal.is_of(0)
                    && let Some(WriteRefusal::Refused(row)) = refusal.0.get(1)
                {
                    return Err(name_taken(row.as_ref(), new_name, ErrorCode::BadRequest));
                }
                if let Some(closed) = if_closed(workspace, refusal.0.get(3)) {
                    return Err(closed);
                }
                let item = self.experiment_after_refusal(id, refusal).await?;
                if experiment_state(&item).stage == LifecycleStage::Deleted {
                    return Err(Error::new(ErrorCode::InvalidState, "Cannot rename a non-active experiment."));
                }
                let old_name = item.get(NAME).unwrap_or_default();
                let created = item.get(CREATED).unwrap_or_default();
                let now = now_ms();
                let update = unchanged(&item, id).set(NAME, text(new_name)).set(UPDATED, number(now));
                let mut writes = vec![Write::Update(update)];
                if old_name == new_name {
                    let listed = ExperimentsByChange::key(&Stage::Active, &Descending(now), &id);
                    let row = Update::new(name_key(workspace, old_name)).only_if(is_name_of(id));
                    writes.push(Write::Update(row.indexed(listed)));
                } else {
                    let row = name_row(workspace, id, new_name, created, now);
                    writes.push(Write::Put(row, Condition::item_missing()));
                    writes.push(Write::Delete(name_key(workspace, old_name), is_name_of(id)));
                    writes.extend(self.authorizer_writes.workspace_open_condition(workspace));
                }
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }

    /// Returns the item of an experiment after a write was refused. Uses the item that came with
    /// the failed condition, if there is one, and reads the item otherwise.
    async fn experiment_after_refusal(&self, id: ExperimentId, refusal: RefusedWrites) -> Result<Item> {
        let item = match refusal.item(0) {
            Some(item) => Some(item),
            None => self.table.get(&rows::Experiment::key(&id)).await?,
        };
        item.ok_or_else(|| id.not_found())
    }

    /// Deletes an experiment and all its runs. Takes two requests, regardless of the number of
    /// runs. Returns once no process relies on a lease from before the deletion.
    pub async fn experiment_delete(&self, workspace: &Workspace, id: &Granted<ExperimentId>) -> Result<()> {
        self.experiment_set_stage(workspace, **id, LifecycleStage::Deleted).await?;
        self.experiments.wait_out(**id).await;
        Ok(())
    }

    /// Restores an experiment and all its runs, including those that were deleted individually,
    /// unless the experiment is being deleted permanently. Takes two requests.
    pub async fn experiment_restore(&self, workspace: &Workspace, id: &Granted<ExperimentId>) -> Result<()> {
        self.experiment_set_stage(workspace, **id, LifecycleStage::Active).await
    }

    async fn experiment_set_stage(&self, workspace: &Workspace, id: ExperimentId, stage: LifecycleStage) -> Result<()> {
        self.table
            .change("an experiment", |refusal| async move {
                if refusal.is_of(REMOVAL_CHECK_INDEX) {
                    return Err(being_removed("experiment"));
                }
                let item = self.experiment_after_refusal(id, refusal).await?;
                let before = experiment_state(&item);
                if before.stage == stage {
                    return Err(id.not_found());
                }
                let version = before.version + 1;
                let now = now_ms();
                let update = unchanged(&item, id)
                    .set(STAGE, text(stage.name()))
                    .set(STAGE_VERSION, number(version))
                    .set(UPDATED, number(now));
                let key_stage = match stage {
                    LifecycleStage::Active => Stage::Active,
                    LifecycleStage::Deleted => Stage::Deleted { version },
                };
                // The nonce makes retries of the creation idempotent, and the creation was
                // completed long ago. It is removed together with the deletion, so that the item
                // does not grow. This allows an experiment whose item is full to be deleted.
                let update = if stage == LifecycleStage::Deleted { update.remove(NONCE) } else { update };
                let created = item.get(CREATED).unwrap_or_default();
                let name = Update::new(name_key(workspace, item.get(NAME).unwrap_or_default()))
                    .only_if(is_name_of(id))
                    .indexed(ExperimentsByStage::key(&key_stage, &Descending(created), &id))
                    .indexed(ExperimentsByChange::key(&key_stage, &Descending(now), &id));
                let mut writes = vec![Write::Update(update), Write::Update(name)];
                match stage {
                    LifecycleStage::Active => {
                        writes.push(Write::Check(rows::ExperimentRemoval::key(&id), Condition::item_missing()));
                    }
                    LifecycleStage::Deleted => {
                        writes.extend(self.authorizer_writes.writes_of_deletion(&Guard::Experiment(id)));
                    }
                }
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }
}

/// Returns an update of an experiment, on condition that its name and stage have not changed.
fn unchanged(item: &Item, id: ExperimentId) -> Update {
    let mut update = Update::new(rows::Experiment::key(&id));
    for attribute in [NAME.name(), STAGE_VERSION.name()] {
        if let Some(value) = item.0.get(attribute) {
            update = update.only_if(Condition::Equals(attribute.into(), value.clone()));
        }
    }
    update
}
