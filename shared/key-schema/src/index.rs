//! The keys of the secondary indexes. Every index holds keys only: a change that leaves an index key alone costs nothing there.

use mlflow_api::{ExperimentId, ModelId, RunId};

use crate::{Descending, Field, Level, Name, Ordinal, Segment, Stage, Value, WideDigest};

/// What an index key is for, for the table reference.
#[derive(Clone, Copy, Debug)]
pub struct IndexDescription {
    /// The attribute.
    pub attribute: &'static str,
    /// The row that carries it.
    pub entity: &'static str,
    /// Its pattern.
    pub pattern: &'static str,
    /// The question it answers.
    pub purpose: &'static str,
}

index_keys! {
    // ---- LSIs: within a partition, read consistently ----------------------------------------------------------------
    /// Runs of a lifecycle stage, newest first, equal times by id: MLflow's default order.
    runs_by_stage: "lsi1sk" of "Run" = "R#" <stage: Stage> "#" <started: Descending> "#" <run: RunId>;
    /// Experiments of a lifecycle stage, newest first.
    experiments_by_stage: "lsi1sk" of "ExperimentName" = "E#" <stage: Stage> "#" <created: Descending> "#" <experiment: ExperimentId>;
    /// Logged models of a lifecycle stage, newest first, equal times by id: MLflow's default order.
    logged_models_by_stage: "lsi1sk" of "LoggedModel" = "LM#" <stage: Stage> "#" <created: Descending> "#" <model: ModelId>;
    /// A model (version 0) and the versions that aliases point at: all that an alias is looked up in, in one request.
    aliased_versions: "lsi1sk" of "RegisteredModel, ModelVersion" = "A#" <version: Ordinal>;
    /// Versions in a stage other than `None`.
    versions_in_stage: "lsi2sk" of "ModelVersion" = "S#" <stage: Field> "#" <version: Ordinal>;
    /// Runs of all stages, newest first.
    runs_by_time: "lsi2sk" of "Run" = "R#" <started: Descending> "#" <run: RunId>;
    /// Runs of a status, newest first; carried by the indexer's copy of the run, so that a change of status needs no read.
    runs_by_status: "lsi3sk" of "FullTextReverse" = "R#" <stage: Stage> "#" <status: Value> "#" <started: Descending> "#" <run: RunId>;
    /// Logged models of a stage by the run that made them, newest first.
    logged_models_of_run: "lsi3sk" of "LoggedModel" = "LM#" <stage: Stage> "#" <run: Field> "#" <created: Descending> "#" <model: ModelId>;
    /// Runs by name, newest first among equal names; carried by the copy likewise.
    runs_by_name: "lsi4sk" of "FullTextReverse" = "R#" <stage: Stage> "#" <name: Field> "#" <started: Descending> "#" <run: RunId>;
    /// Runs with changes that the indexer has not carried over yet: a search reads these, whatever its index says.
    runs_changed: "lsi5sk" of "Run, RunMetrics, RunMetricsBucket" = "R#" <run: RunId>;

    // ---- GSIs: across partitions, behind by moments; none guards uniqueness --------------------------------------------
    /// The experiment of a run whose id was made elsewhere.
    run_location: "gsi1pk" of "Run" = "RUN#" <run: RunId>;
    /// Its answer.
    run_location_answer: "gsi1sk" of "Run" = "EXP#" <experiment: ExperimentId>;
    /// The trace of a client's request.
    trace_of_client_request: "gsi1pk" of "Trace" = "CLIENT#" <request: Name>;
    /// Its answer, beside the trace's own key.
    trace_of_client_request_answer: "gsi1sk" of "Trace" = "EXP#" <experiment: ExperimentId>;
    /// The experiment of a logged model whose id was made elsewhere.
    logged_model_location: "gsi1pk" of "LoggedModel" = "MODEL#" <model: ModelId>;
    /// Its answer.
    logged_model_location_answer: "gsi1sk" of "LoggedModel" = "EXP#" <experiment: ExperimentId>;
    /// Runs of a dataset across experiments.
    runs_of_dataset: "gsi1pk" of "DatasetLink" = "DS#" <dataset: WideDigest>;
    /// Its runs.
    runs_of_dataset_answer: "gsi1sk" of "DatasetLink" = "RUN#" <run: RunId>;
    /// Full text across partitions, for entities with partitions of their own; entries of runs do not carry it.
    full_text: "gsi2pk" of "FullText" = "FTS#" <token: Value>;
    /// Its entities.
    full_text_entity: "gsi2sk" of "FullText" = "" <level: Level> "#" <entity_type: Name> "#" <entity: Name>;
    /// Who may do what with an experiment.
    permissions_of_experiment: "gsi4pk" of "ExperimentPermission" = "EXPPERM#" <experiment: ExperimentId>;
    /// Who may do what with a registered model.
    permissions_of_model: "gsi4pk" of "ModelPermission" = "RMPERM#" <model: Name>;
    /// The user of a permission.
    permission_user: "gsi4sk" of "ExperimentPermission, ModelPermission" = "USER#" <user: Name>;
}

/// When an experiment was created and its id, from a key of [`experiments_by_stage`].
#[must_use]
pub fn parse_experiment_by_stage(key: &str) -> Option<(Descending, ExperimentId)> {
    let mut parts = key.rsplit('#');
    let id = ExperimentId::read(parts.next()?)?;
    Some((Descending::read(parts.next()?)?, id))
}

/// The run at the end of a key: every list of runs ends its keys so.
#[must_use]
pub fn run_of_key(key: &str) -> Option<RunId> {
    key.rsplit('#').next().and_then(RunId::read)
}

/// The version whose document has this sort key; `None` for any other row. The name in the partition key may be cut, so the row
/// cannot always be read back whole.
#[must_use]
pub fn version_of_key(sort_key: &str) -> Option<u32> {
    Ordinal::read(sort_key.strip_prefix(crate::prefix::MODEL_VERSIONS)?).map(|Ordinal(version)| version)
}

/// Start time, in ms, and run at the end of a key: every list of runs but that of changes ends its keys so.
#[must_use]
pub fn started_and_run_of_key(key: &str) -> Option<(i64, RunId)> {
    let mut parts = key.rsplit('#');
    let run = RunId::read(parts.next()?)?;
    Some((Descending::read(parts.next()?)?.0, run))
}

/// Time of creation, in ms, and logged model at the end of a key of one of their lists.
#[must_use]
pub fn created_and_model_of_key(key: &str) -> Option<(i64, ModelId)> {
    let mut parts = key.rsplit('#');
    let model = ModelId::read(parts.next()?)?;
    Some((Descending::read(parts.next()?)?.0, model))
}

/// The end of a key of [`runs_by_stage`] or [`runs_by_time`]: start time, in ms, and run; or of one of the lists of logged
/// models likewise.
#[must_use]
pub fn newest_first(started: i64, run: &str) -> String {
    let mut end = String::new();
    Descending(started).write(&mut end);
    end.push('#');
    end.push_str(run);
    end
}
