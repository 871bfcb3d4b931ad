//! Beginnings of sort keys and index keys, for queries with `begins_with`.

use mlflow_api::{DatasetRecordId, EvaluationDatasetId, ExperimentId, ModelId, RunId, ScorerId};

use crate::{DescendingDouble, Field, Level, ModelKind, Name, Ordinal, Segment, Stage, Value, WideDigest};

/// Metrics documents of a wide run.
#[must_use]
pub fn run_metrics_buckets(run: &RunId) -> String {
    format!("R#{run}#METRIC#")
}

/// Params of a run that have rows of their own.
#[must_use]
pub fn run_params(run: &RunId) -> String {
    format!("R#{run}#PARAM#")
}

/// Tags of a run that have rows of their own.
#[must_use]
pub fn run_tags(run: &RunId) -> String {
    format!("R#{run}#TAG#")
}

/// Every row of a run but its document.
#[must_use]
pub fn run_rows(run: &RunId) -> String {
    format!("R#{run}#")
}

/// The first and a key behind the last of what a run read and put out: `INPUT`, `LM`, `LM_INPUT` stand together.
#[must_use]
pub fn run_links(run: &RunId) -> (String, String) {
    (format!("R#{run}#INPUT#"), format!("R#{run}#LM_INPUT$"))
}

/// Datasets of an experiment.
pub const DATASETS: &str = "D#";

/// The partition of the parts of a dataset.
#[must_use]
pub fn dataset_partition(dataset: &WideDigest) -> String {
    let mut partition = String::from("DATA#");
    dataset.write(&mut partition);
    partition
}

/// Params of a logged model that have rows of their own.
#[must_use]
pub fn logged_model_params(model: &ModelId) -> String {
    format!("LM#{model}#PARAM#")
}

/// Tags of a logged model that have rows of their own.
#[must_use]
pub fn logged_model_tags(model: &ModelId) -> String {
    format!("LM#{model}#TAG#")
}

/// Every row of every logged model of an experiment, each model's document first among its rows.
pub const LOGGED_MODELS: &str = "LM#";

/// LSI1 keys of logged models that are active.
pub const LOGGED_MODELS_ACTIVE: &str = "LM#ACTIVE#";

/// LSI3 keys of active logged models that this run made.
#[must_use]
pub fn logged_models_of_run(run: &Field) -> String {
    joined(LOGGED_MODELS_ACTIVE, &[run])
}

/// The partition of what grows without bound with a logged model.
#[must_use]
pub fn model_partition(model: &ModelId) -> String {
    format!("MODEL#{model}")
}

/// Segments of a logged model's metrics, in the partition of the model.
pub const MODEL_SEGMENTS: &str = "MHIST#";

/// Tags of an experiment that have rows of their own.
pub const EXPERIMENT_TAGS: &str = "E#TAG#";

/// The partition of what grows without bound with a run.
#[must_use]
pub fn run_partition(run: &RunId) -> String {
    format!("RUN#{run}")
}

/// The partition of an experiment.
#[must_use]
pub fn experiment_partition(experiment: ExperimentId) -> String {
    format!("EXP#{experiment}")
}

/// The partition of a workspace.
#[must_use]
pub fn workspace_partition(workspace: &Name) -> String {
    let mut partition = String::from("WORKSPACE#");
    workspace.write(&mut partition);
    partition
}

/// Segments of all metrics of a run.
pub const METRIC_SEGMENTS: &str = "MHIST#";

/// Segments of a metric.
#[must_use]
pub fn metric_segments(metric: &Name) -> String {
    let mut prefix = String::from(METRIC_SEGMENTS);
    metric.write(&mut prefix);
    prefix.push('#');
    prefix
}

/// LSI1 keys of runs of a stage.
#[must_use]
pub fn runs_of_stage(stage: Stage) -> String {
    let mut prefix = String::from("R#");
    stage.write(&mut prefix);
    prefix.push('#');
    prefix
}

/// LSI2 keys of runs, and LSI5 keys of runs with changes; also the beginning of every row of a run.
pub const RUNS: &str = "R#";

/// LSI1 keys of runs that were deleted on their own before the experiment's stage had this version, the first and a key
/// behind the last.
#[must_use]
pub fn runs_deleted_before(version: u32) -> (String, String) {
    (runs_of_stage(Stage::Deleted { version: 0 }), runs_of_stage(Stage::Deleted { version }))
}

/// LSI1 keys of runs that were deleted on their own at any time.
pub const RUNS_DELETED: &str = "R#DELETED.";

/// LSI3 keys of runs of a status.
#[must_use]
pub fn runs_of_status(stage: Stage, status: &Value) -> String {
    joined(&runs_of_stage(stage), &[status])
}

/// LSI4 keys of runs of this name.
#[must_use]
pub fn runs_of_name(stage: Stage, name: &Field) -> String {
    joined(&runs_of_stage(stage), &[name])
}

/// Ranks of a metric.
#[must_use]
pub fn ranks_by_metric(metric: &Field) -> String {
    joined("RANK#m#", &[metric])
}

/// Ranks of a metric with this value.
#[must_use]
pub fn ranks_by_metric_value(metric: &Field, value: f64) -> String {
    joined("RANK#m#", &[metric, &DescendingDouble(value)])
}

/// Ranks of a param with this value.
#[must_use]
pub fn ranks_by_param_value(param: &Field, value: &Value) -> String {
    joined("RANK#p#", &[param, value])
}

/// Ranks of a param.
#[must_use]
pub fn ranks_by_param(param: &Field) -> String {
    joined("RANK#p#", &[param])
}

/// Entities of a type that hold a token in a field.
#[must_use]
pub fn full_text(level: Level, entity_type: &Name, field: &Field, token: &Value) -> String {
    joined("FTS#", &[&level, entity_type, field, token])
}

/// Entities of a type with tokens of a field.
#[must_use]
pub fn full_text_of_field(level: Level, entity_type: &Name, field: &Field) -> String {
    joined("FTS#", &[&level, entity_type, field])
}

/// All entries of full text, and all ranks: what the indexer derives, its copies aside.
pub const DERIVED: [&str; 2] = ["FTS#", "RANK#"];

/// The indexer's copies of entities of a type.
#[must_use]
pub fn copies(entity_type: &Name) -> String {
    joined("FTS_REV#", &[entity_type])
}

fn joined(beginning: &str, segments: &[&dyn WriteSegment]) -> String {
    let mut prefix = String::from(beginning);
    for segment in segments {
        segment.write_to(&mut prefix);
        prefix.push('#');
    }
    prefix
}

/// [`Segment`] without what a trait object cannot have.
trait WriteSegment {
    fn write_to(&self, key: &mut String);
}

impl<T: Segment> WriteSegment for T {
    fn write_to(&self, key: &mut String) {
        self.write(key);
    }
}

/// LSI1 keys of experiments.
pub const EXPERIMENTS: &str = "E#";

/// LSI1 keys of experiments that are active.
pub const EXPERIMENTS_ACTIVE: &str = "E#ACTIVE#";

/// LSI1 keys of experiments that are deleted.
pub const EXPERIMENTS_DELETED: &str = "E#DELETED.";

/// Names of experiments.
pub const EXPERIMENT_NAMES: &str = "EXPNAME#";

/// Names of experiments that begin so, and perhaps more: names are cut.
#[must_use]
pub fn experiment_names_beginning(name: &Name) -> String {
    String::from(EXPERIMENT_NAMES) + &name.beginning()
}

/// The partition of a registered model's home.
#[must_use]
pub fn registered_model_partition(home: &Name) -> String {
    let mut partition = String::from("RM#");
    home.write(&mut partition);
    partition
}

/// Every row of a model but the one that keeps its home for it; in the home's own partition also the model of that name.
pub const MODEL_ROWS: [&str; 2] = [MODEL_VERSIONS, MODEL_TAGS];

/// Versions of a model, and rows of their tags.
pub const MODEL_VERSIONS: &str = "M#V#";

/// Tags of a model that have rows of their own.
pub const MODEL_TAGS: &str = "M#TAG#";

/// LSI1 keys of a model and of the versions that aliases point at.
pub const ALIASED_VERSIONS: &str = "A#";

/// Tags of a version that have rows of their own.
#[must_use]
pub fn version_tags(version: Ordinal) -> String {
    joined(MODEL_VERSIONS, &[&version]) + "TAG#"
}

/// LSI2 keys of versions in a stage.
#[must_use]
pub fn versions_in_stage(stage: &Field) -> String {
    joined("S#", &[stage])
}

/// Names of the registered models of a kind.
#[must_use]
pub fn model_names(kind: ModelKind) -> String {
    joined("RMNAME#", &[&kind])
}

/// Names of registered models that begin so, and perhaps more: names are cut.
#[must_use]
pub fn model_names_beginning(kind: ModelKind, name: &Name) -> String {
    model_names(kind) + &name.beginning()
}

/// The partition of what belongs to a run, whose id may be any text.
#[must_use]
pub fn run_text_partition(run: &Name) -> String {
    let mut partition = String::from("RUN#");
    run.write(&mut partition);
    partition
}

/// Model versions of a run.
pub const VERSIONS_OF_RUN: &str = "MV#";

/// The partition of an evaluation dataset and its records.
#[must_use]
pub fn evaluation_dataset_partition(dataset: &EvaluationDatasetId) -> String {
    format!("EVAL#{dataset}")
}

/// The partition of what records of an evaluation dataset are found by, and of their parts.
#[must_use]
pub fn evaluation_keys_partition(dataset: &EvaluationDatasetId) -> String {
    format!("EVALKEY#{dataset}")
}

/// The sort key of an evaluation dataset, and one behind its last record: nothing but records lies between.
#[must_use]
pub fn evaluation_dataset_with_records() -> (String, String) {
    ("ED#META".to_owned(), "ED#REC#~".to_owned())
}

/// A sort key right behind a record, and one behind the last record.
#[must_use]
pub fn evaluation_records_after(record: &DatasetRecordId) -> (String, String) {
    (format!("ED#REC#{record}#"), "ED#REC#~".to_owned())
}

/// Tags of an evaluation dataset that have rows of their own.
pub const EVALUATION_DATASET_TAGS: &str = "ED#TAG#";

/// Evaluation datasets in the partition of a workspace, or in that of an experiment.
pub const EVALUATION_DATASETS: &str = "EDS#";

/// The dataset of a row of a list of evaluation datasets: the partition's name may have been cut, and cannot be read back then.
#[must_use]
pub fn evaluation_dataset_of_row(sk: &str) -> Option<EvaluationDatasetId> {
    sk.strip_prefix(EVALUATION_DATASETS).and_then(EvaluationDatasetId::parse)
}

/// The partition that lists the evaluation datasets of an experiment.
#[must_use]
pub fn experiment_evaluation_datasets(experiment: &Name) -> String {
    let mut partition = String::from("EVALEXP#");
    experiment.write(&mut partition);
    partition
}

/// Scorers of an experiment.
pub const SCORERS: &str = "SCORER#";

/// Scorers in the partition of a workspace.
pub const WORKSPACE_SCORERS: &str = "SCORERS#";

/// The experiment of a row of the workspace's list of scorers, likewise.
#[must_use]
pub fn experiment_of_workspace_scorer(sk: &str) -> Option<ExperimentId> {
    sk.strip_prefix(WORKSPACE_SCORERS)?.split('#').next().and_then(ExperimentId::read)
}

/// Versions of a scorer.
#[must_use]
pub fn scorer_versions(scorer: &ScorerId) -> String {
    format!("SCORERV#{scorer}#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{
        Dataset, DatasetPart, EvaluationDatasetTag, EvaluationInputs, ExperimentEvaluationDataset, ExperimentName,
        ExperimentTag, FullText, FullTextReverse, LoggedModel, LoggedModelMetrics, LoggedModelParam,
        LoggedModelSegment, LoggedModelTag, MetricSegment, ModelHome, ModelName, ModelTag, ModelVersion,
        ModelVersionTag, RankByMetric, RankByParam, RunInput, RunMetrics, RunMetricsBucket, RunModelInput, RunOutput,
        RunParam, RunTag, Scorer, ScorerVersion, VersionOfRun, WorkspaceEvaluationDataset, WorkspaceScorer,
    };
    use crate::{Ascending, Bucket, Descending, Digest, Ordinal, WideDigest, index};

    #[test]
    fn prefixes_begin_their_keys() {
        let experiment = ExperimentId::DEFAULT;
        let run = RunId::new(1_700_000_000_000, experiment, 7);
        let model = ModelId::new(1_700_000_000_000, experiment, 7);
        let name = Name::from("a #1");
        let model_segment = LoggedModelSegment::key(&model, &WideDigest(7));
        assert_eq!(model_segment.pk, model_partition(&model));
        let segment = MetricSegment::key(&run, &name, &Ascending(1), &Ascending(2), &Digest(3));
        let active = index::runs_by_stage(&Stage::Active, &Descending(1), &run);
        let deleted = index::runs_by_stage(&Stage::Deleted { version: 3 }, &Descending(1), &run);
        let part = DatasetPart::key(&WideDigest(7), &WideDigest(8), &Ordinal(9));
        assert_eq!(part.pk, dataset_partition(&WideDigest(7)));
        let model = ModelId::new(1_700_000_000_000, experiment, 7);
        assert_eq!(LoggedModelSegment::key(&model, &WideDigest(7)).pk, model_partition(&model));
        assert_eq!(segment.pk, run_partition(&run));
        assert_eq!(ExperimentName::key(&name, &name).pk, workspace_partition(&name));
        assert_eq!(ExperimentTag::key(&experiment, &name).pk, experiment_partition(experiment));
        let (field, value) = (Field::from("a #1"), Value::from("v #"));
        let started = Descending(1);
        let by_metric = RankByMetric::key(&experiment, &field, &DescendingDouble(0.5), &started, &run).sk;
        let by_param = RankByParam::key(&experiment, &field, &value, &started, &run).sk;
        let entity = Name::from(run.as_str());
        let token = FullText::key(&experiment, &Level::Word, &name, &field, &value, &started, &entity).sk;
        let dataset = EvaluationDatasetId::new(1_700_000_000_000, 7);
        let scorer = ScorerId::new(1_700_000_000_000, experiment, 7);
        let by_name = |name: &str| index::runs_by_name(&Stage::Active, &name.into(), &started, &run);
        for (key, prefix) in [
            (by_metric.clone(), ranks_by_metric(&field)),
            (by_metric, ranks_by_metric_value(&field, 0.5)),
            (by_param.clone(), ranks_by_param_value(&field, &value)),
            (by_param, ranks_by_param(&field)),
            (token.clone(), full_text(Level::Word, &name, &field, &value)),
            (token.clone(), full_text_of_field(Level::Word, &name, &field)),
            (token, DERIVED[0].to_owned()),
            (ranks_by_metric(&field), DERIVED[1].to_owned()),
            (FullTextReverse::key(&experiment, &name, &entity).sk, copies(&name)),
            (index::runs_by_status(&Stage::Active, &value, &started, &run), runs_of_status(Stage::Active, &value)),
            (by_name("v #"), runs_of_name(Stage::Active, &"v #".into())),
            (RunMetricsBucket::key(&experiment, &run, &Bucket::of("a")).sk, run_metrics_buckets(&run)),
            (RunParam::key(&experiment, &run, &name).sk, run_params(&run)),
            (RunTag::key(&experiment, &run, &name).sk, run_tags(&run)),
            (Dataset::key(&experiment, &WideDigest(7)).sk, DATASETS.to_owned()),
            (ExperimentTag::key(&experiment, &name).sk, EXPERIMENT_TAGS.to_owned()),
            (ExperimentName::key(&name, &name).sk, EXPERIMENT_NAMES.to_owned()),
            (ExperimentName::key(&name, &"a #12".into()).sk, experiment_names_beginning(&name)),
            (segment.sk.clone(), METRIC_SEGMENTS.to_owned()),
            (segment.sk, metric_segments(&name)),
            (model_segment.sk, MODEL_SEGMENTS.to_owned()),
            (LoggedModelParam::key(&experiment, &model, &name).sk, logged_model_params(&model)),
            (LoggedModelTag::key(&experiment, &model, &name).sk, logged_model_tags(&model)),
            (LoggedModel::key(&experiment, &model).sk, LOGGED_MODELS.to_owned()),
            (LoggedModelMetrics::key(&experiment, &model).sk, LoggedModel::key(&experiment, &model).sk),
            (index::logged_models_by_stage(&Stage::Active, &started, &model), LOGGED_MODELS_ACTIVE.to_owned()),
            (index::logged_models_of_run(&Stage::Active, &field, &started, &model), logged_models_of_run(&field)),
            (EvaluationDatasetTag::key(&dataset, &name).sk, EVALUATION_DATASET_TAGS.to_owned()),
            (WorkspaceEvaluationDataset::key(&name, &dataset).sk, EVALUATION_DATASETS.to_owned()),
            (ExperimentEvaluationDataset::key(&name, &dataset).sk, EVALUATION_DATASETS.to_owned()),
            (ExperimentEvaluationDataset::key(&name, &dataset).pk, experiment_evaluation_datasets(&name)),
            (EvaluationDatasetTag::key(&dataset, &name).pk, evaluation_dataset_partition(&dataset)),
            (EvaluationInputs::key(&dataset, &WideDigest(7)).pk, evaluation_keys_partition(&dataset)),
            (Scorer::key(&experiment, &name).sk, SCORERS.to_owned()),
            (WorkspaceScorer::key(&name, &experiment, &name).sk, WORKSPACE_SCORERS.to_owned()),
            (ScorerVersion::key(&experiment, &scorer, &Ordinal(1)).sk, scorer_versions(&scorer)),
            (active.clone(), runs_of_stage(Stage::Active)),
            (deleted, runs_of_stage(Stage::Deleted { version: 3 })),
            (index::runs_by_time(&Descending(1), &run), RUNS.to_owned()),
            (index::experiments_by_stage(&Stage::Active, &Descending(1), &experiment), EXPERIMENTS_ACTIVE.to_owned()),
            (
                index::experiments_by_stage(&Stage::Deleted { version: 1 }, &Descending(1), &experiment),
                EXPERIMENTS_DELETED.to_owned(),
            ),
        ] {
            assert!(key.starts_with(&prefix), "{key} {prefix}");
        }
        let (first, last) = run_links(&run);
        let links = [
            RunInput::key(&experiment, &run, &WideDigest(u128::MAX)),
            RunOutput::key(&experiment, &run, &name),
            RunModelInput::key(&experiment, &run, &"\u{10FFFF}".into()),
        ];
        assert!(links.iter().all(|link| first < link.sk && link.sk < last), "{links:?}");
        assert!(RunMetrics::key(&experiment, &run).sk > last && run_rows(&run) < first);
        assert!(!active.starts_with(&runs_of_stage(Stage::Deleted { version: 3 })));
        let long = Name("#".repeat(2_000));
        let listed = ExperimentEvaluationDataset::key(&long, &dataset).sk;
        assert_eq!(evaluation_dataset_of_row(&listed), Some(dataset));
        assert_eq!(
            experiment_of_workspace_scorer(&WorkspaceScorer::key(&name, &experiment, &long).sk),
            Some(experiment)
        );
    }

    #[test]
    fn prefixes_of_the_registry_begin_their_keys() {
        let (name, field, version, kind) = (Name::from("a #1"), Field::from("a #1"), Ordinal(12), ModelKind::Prompt);
        assert_eq!(ModelHome::key(&name).pk, registered_model_partition(&name));
        assert_eq!(VersionOfRun::key(&name, &name, &version).pk, run_text_partition(&name));
        for (key, prefix) in [
            (ModelVersion::key(&name, &version).sk, MODEL_VERSIONS.to_owned()),
            (ModelVersionTag::key(&name, &version, &name).sk, version_tags(version)),
            (ModelTag::key(&name, &name).sk, MODEL_TAGS.to_owned()),
            (VersionOfRun::key(&name, &name, &version).sk, VERSIONS_OF_RUN.to_owned()),
            (index::aliased_versions(&version), ALIASED_VERSIONS.to_owned()),
            (index::versions_in_stage(&field, &version), versions_in_stage(&field)),
            (ModelName::key(&name, &kind, &name).sk, model_names(kind)),
            (ModelName::key(&name, &kind, &"a #12".into()).sk, model_names_beginning(kind, &name)),
        ] {
            assert!(key.starts_with(&prefix), "{key} {prefix}");
        }
    }
}
