//! Creating and updating runs.

use access::Granted;
use entities::attributes::{END_TIME, NAME, ROOM, STATUS};
use entities::experiments::check_is_active;
use entities::{Moment, RunLocation, now_ms, run_info};
use mlflow_api::inputs::RunInputs;
use mlflow_api::tracking::{self, KeyValue, RUN_NAME_TAG, RunData, RunStatus};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, RunId};
use rand::RngExt;
use table::{ChangePlan, number, text};

use super::items::{NewRunItems, StoredRun};
use super::run_cache::CachedRun;
use super::run_document::RunDocument;
use crate::store::Store;
use crate::store::generated_names::random_run_name;
use entities::documents::DocumentChange;

/// A run to create.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// User, as sent by the client.
    pub user_id: String,
    /// Name. If it is empty, the name comes from the tag `mlflow.runName`, or the server generates
    /// one.
    pub name: String,
    /// Start time, in ms.
    pub start_time: i64,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

/// A change to a run's info. Fields that are `None` stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct RunChange {
    /// New status.
    pub status: Option<RunStatus>,
    /// New end time, in ms.
    pub end_time: Option<i64>,
    /// New name. An empty name changes nothing.
    pub name: Option<String>,
}

impl Store {
    /// Creates a run in an active experiment. Takes two requests, or one while a lease on the
    /// experiment lasts. Costs five write units for a run of up to 1 KB, plus one for each
    /// additional KB.
    pub async fn run_create(&self, experiment: &Granted<ExperimentId>, new: &NewRun) -> Result<tracking::Run> {
        let experiment = **experiment;
        let state = self.experiments.state(experiment).await?.ok_or_else(|| experiment.not_found())?;
        check_is_active(experiment, state.stage)?;
        let (name, tags) = name_and_tags(new)?;
        let mut written: Vec<_> =
            tags.iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect();
        written.sort_unstable();
        let (state, name, tags, written) = (&state, &name, &tags, &written);
        let since = Moment::now();
        let (run, at, logged) = self
            .table
            // Fails only if every attempt draws an id that is in use, that is, another run was
            // created in the same millisecond with the same random number out of a million.
            .change("the run of every id drawn", |_| async move {
                let now = u64::try_from(now_ms()).unwrap_or_default();
                let run = RunId::new(now, experiment, rand::rng().random());
                let at = RunLocation { experiment, run };
                let stored = StoredRun {
                    at: &at,
                    name,
                    user: &new.user_id,
                    status: RunStatus::Running,
                    start_time: new.start_time,
                    end_time: None,
                    artifact_uri: None,
                    own_stage: None,
                    params: &[],
                    tags,
                };
                let NewRunItems { document: item, rows: tag_rows } = stored.items();
                let mut rows = Vec::new();
                let more_rows = entities::documents::take_rows(&mut rows, tag_rows);
                self.table.write_many(more_rows, &[]).await?;
                let info = run_info(experiment, &at.run, &item, state);
                let data = RunData { tags: written.clone(), ..RunData::default() };
                let run = tracking::Run { info, data, inputs: RunInputs::default(), outputs: None };
                let logged = CachedRun::of(since, &item);
                Ok::<_, Error>(ChangePlan::Create(item, rows, (run, at, logged)))
            })
            .await?;
        self.logged_runs.keep(&at, logged);
        Ok(run)
    }

    /// Changes a run's info, and returns the new info. Takes one request, and one more for the
    /// experiment if its lease has expired.
    pub async fn run_update(&self, at: &Granted<RunLocation>, change: &RunChange) -> Result<tracking::RunInfo> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let mut written = DocumentChange::default();
        if let Some(status) = change.status {
            written.set.push((STATUS.name(), text(status.name())));
        }
        if let Some(end_time) = change.end_time {
            written.set.push((END_TIME.name(), number(end_time)));
        }
        if let Some(name) = change.name.as_deref().filter(|name| !name.is_empty()) {
            rename(&mut written, name);
        }
        if change.end_time.is_some() || change.status.is_some_and(RunStatus::has_ended) {
            written.remove.push(ROOM.name());
        }
        let item = if written.set.is_empty() {
            let item = self.table.get(&at.key()).await?;
            entities::documents::Document::check(&document, item.as_ref())?;
            item.unwrap_or_default()
        } else {
            entities::documents::change(&self.table, &document, written).await?
        };
        Ok(run_info(at.experiment, &at.run, &item, &experiment))
    }
}

/// Adds a run's new name to a change. The name is stored both as an attribute and as a tag.
pub(crate) fn rename(change: &mut DocumentChange, name: &str) {
    change.set.retain(|(attribute, _)| *attribute != NAME.name());
    change.set.push((NAME.name(), text(name)));
    change.tags.push((RUN_NAME_TAG.to_owned(), name.to_owned()));
}

/// Returns the name and the tags of a new run, including the tag that holds the name.
fn name_and_tags(new: &NewRun) -> Result<(String, Vec<(String, String)>)> {
    let tagged =
        new.tags.iter().find(|(key, _)| key == RUN_NAME_TAG).map(|(_, value)| value.as_str()).unwrap_or_default();
    if !new.name.is_empty() && !tagged.is_empty() && new.name != tagged {
        return Err(Error::invalid(format!(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values \
             (run_name='{}', mlflow.runName='{tagged}').",
            new.name
        )));
    }
    let name = [new.name.as_str(), tagged].into_iter().find(|name| !name.is_empty());
    let name = name.map_or_else(random_run_name, str::to_owned);
    let mut tags = new.tags.clone();
    if tagged.is_empty() {
        tags.push((RUN_NAME_TAG.to_owned(), name.clone()));
    }
    match entities::documents::repeated_key(&tags) {
        None => Ok((name, tags)),
        Some(key) => Err(Error::new(ErrorCode::BadRequest, format!("The tag '{key}' is given twice."))),
    }
}
