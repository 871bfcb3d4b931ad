//! The items of a new run.

use entities::attributes::{
    ARTIFACT_URI, DELETED_TIME, END_TIME, LINKS, MODEL, NAME, PACKED, PARAMS, ROOM, STAGE, STAGE_VERSION, START_TIME,
    STATUS, STEP, USER,
};
use entities::points::Point;
use entities::{ExperimentState, RunLocation, dataset_link, marked_item, metric_attribute, pack_set};
use key_schema::index::{RunLocation as RunLocationEntry, RunsByStage, RunsByTime};
use key_schema::{Descending, Name, Stage, rows};
use mlflow_api::inputs::DatasetInput;
use mlflow_api::tracking::{LifecycleStage, ModelOutput, RunStatus};
use table::{Item, Map, bytes, map, number, text};

use super::dataset;
use super::run_document::RunDocument;

/// Number of bytes that a run's document reserves for the attributes that are written when the run
/// ends. Status, end time, the mark and the mark's index entry have up to 160 bytes together. The
/// reserve matters in an experiment that has reached 10 GB: DynamoDB rejects writes that make it
/// larger, but its runs can still be ended.
const RESERVED_END_BYTES: usize = 160;

/// A run to store, without its inputs, outputs and long histories.
#[derive(Clone, Debug)]
pub struct StoredRun<'a> {
    /// Experiment and id.
    pub at: &'a RunLocation,
    /// Name. It is also in the tags.
    pub name: &'a str,
    /// User, as sent by the client.
    pub user: &'a str,
    /// Status.
    pub status: RunStatus,
    /// Start time, in ms.
    pub start_time: i64,
    /// End time, in ms.
    pub end_time: Option<i64>,
    /// Artifact location, if it differs from the run's default location in its experiment.
    pub artifact_uri: Option<&'a str>,
    /// The run's own stage. `None` if the run has never been deleted or restored individually.
    pub own_stage: Option<RunStage>,
    /// Params. Each key may occur only once.
    pub params: &'a [(String, String)],
    /// Tags. If a key occurs twice, its last value is stored.
    pub tags: &'a [(String, String)],
}

/// A run's own lifecycle stage.
#[derive(Clone, Copy, Debug)]
pub struct RunStage {
    /// Lifecycle stage.
    pub stage: LifecycleStage,
    /// Version of the experiment's stage when the run's own stage was set. If the experiment's
    /// stage changes later, the run's own stage has no effect any more.
    pub version: u32,
    /// When the run was deleted, in ms, if it is deleted.
    pub deleted: Option<i64>,
}

/// The items of a run.
#[derive(Clone, Debug)]
pub struct NewRunItems {
    /// The document, which is marked as changed.
    pub document: Item,
    /// Rows of params and tags that are too large for the document.
    pub rows: Vec<Item>,
}

impl StoredRun<'_> {
    /// Returns the items of the run.
    #[must_use]
    pub fn items(&self) -> NewRunItems {
        let RunLocation { experiment, run } = self.at;
        let started = Descending(self.start_time);
        let key_stage = match self.own_stage {
            Some(RunStage { stage: LifecycleStage::Deleted, version, .. }) => Stage::Deleted { version },
            _ => Stage::Active,
        };
        let mut item = Item::new(rows::Run::key(experiment, run))
            .with(NAME, text(self.name))
            .with(USER, text(self.user))
            .with(STATUS, text(self.status.name()))
            .with(START_TIME, number(self.start_time))
            .with(PARAMS, map(Map::new()))
            .indexed(RunsByStage::key(&key_stage, &started, run))
            .indexed(RunsByTime::key(&started, run));
        if self.end_time.is_none() && !self.status.has_ended() {
            item = item.with(ROOM, bytes(vec![0; RESERVED_END_BYTES]));
        }
        if let Some(end_time) = self.end_time {
            item = item.with(END_TIME, number(end_time));
        }
        if let Some(artifact_uri) = self.artifact_uri {
            item = item.with(ARTIFACT_URI, text(artifact_uri));
        }
        if let Some(RunStage { stage, version, deleted }) = self.own_stage {
            item = item.with(STAGE, text(stage.name())).with(STAGE_VERSION, number(version));
            item = deleted.into_iter().fold(item, |item, time| item.with(DELETED_TIME, number(time)));
        }
        if run.experiment().is_none() {
            item = item.indexed(RunLocationEntry::key(run, experiment));
        }
        // The state of the experiment is used only by conditions of changes, and this document is
        // not changed, so any state will do.
        let experiment =
            ExperimentState { stage: LifecycleStage::Active, version: 0, artifact_location: String::new() };
        let document = RunDocument { at: self.at, experiment: &experiment, single_param: false };
        let item = marked_item(item, run);
        let (document, rows) = entities::documents::new_document_with_params(item, self.params, self.tags, &document);
        NewRunItems { document, rows }
    }
}

impl NewRunItems {
    /// Returns the items with all points of the run in its document. Meant for runs with few
    /// points.
    #[must_use]
    pub fn with_points(mut self, metrics: &[(&str, &[Point])]) -> Self {
        for (metric, points) in metrics {
            self.document = self.document.with(metric_attribute(metric), pack_set(points));
        }
        self
    }

    /// Returns the items of a run whose points have been packed into metrics documents.
    #[must_use]
    pub fn with_packed_metrics(mut self) -> Self {
        self.document = self.document.with(PACKED, number(1));
        self
    }

    /// Returns the items with rows for the run's datasets, in this order, and for its models. The
    /// items of the datasets themselves are not included.
    #[must_use]
    pub fn with_links(
        mut self,
        at: &RunLocation,
        datasets: &[DatasetInput],
        model_inputs: &[String],
        model_outputs: &[ModelOutput],
    ) -> Self {
        if datasets.is_empty() && model_inputs.is_empty() && model_outputs.is_empty() {
            return self;
        }
        let RunLocation { experiment, run } = at;
        for (order, input) in (1..).zip(datasets) {
            let digest = entities::dataset_digest(&input.dataset.name, &input.dataset.digest);
            let row = Item::new(rows::RunInput::key(experiment, run, &digest));
            self.rows.push(dataset_link(row, input, order));
            self.rows.push(dataset::link_to_run(at, input));
        }
        self.rows.extend(model_inputs.iter().map(|model| {
            Item::new(rows::RunModelInput::key(experiment, run, &Name::from(model.as_str()))).with(MODEL, text(model))
        }));
        self.rows.extend(model_outputs.iter().map(|model| output_row(at, model)));
        self.document = self.document.with(LINKS, number(1));
        self
    }
}

/// Returns the row of a model that a run produced.
pub(super) fn output_row(at: &RunLocation, model: &ModelOutput) -> Item {
    Item::new(rows::RunOutput::key(&at.experiment, &at.run, &Name::from(model.model_id.as_str())))
        .with(MODEL, text(&model.model_id))
        .with(STEP, number(model.step))
}
