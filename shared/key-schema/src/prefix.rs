//! Beginnings of sort keys and index keys, for queries with `begins_with`.

use mlflow_api::{ExperimentId, RunId};

use crate::{Name, Segment, Stage};

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

/// Logged models of a run.
#[must_use]
pub fn run_outputs(run: &RunId) -> String {
    format!("R#{run}#LM#")
}

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

/// Segments of a metric.
#[must_use]
pub fn metric_segments(metric: &Name) -> String {
    let mut prefix = String::from("MHIST#");
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

/// LSI2 keys of runs.
pub const RUNS: &str = "R#";

/// LSI1 keys of experiments.
pub const EXPERIMENTS: &str = "E#";

/// LSI1 keys of experiments that are active.
pub const EXPERIMENTS_ACTIVE: &str = "E#ACTIVE#";

/// LSI1 keys of experiments that are deleted.
pub const EXPERIMENTS_DELETED: &str = "E#DELETED.";

/// Names of experiments.
pub const EXPERIMENT_NAMES: &str = "EXPNAME#";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{ExperimentName, ExperimentTag, MetricSegment, RunMetricsBucket, RunOutput, RunParam, RunTag};
    use crate::{Ascending, Bucket, Descending, Digest, index};

    #[test]
    fn prefixes_begin_their_keys() {
        let experiment = ExperimentId::DEFAULT;
        let run = RunId::new(1_700_000_000_000, experiment, 7);
        let name = Name::from("a #1");
        let segment = MetricSegment::key(&run, &name, &Ascending(1), &Ascending(2), &Digest(3));
        let active = index::runs_by_stage(&Stage::Active, &Descending(1), &run);
        let deleted = index::runs_by_stage(&Stage::Deleted { version: 3 }, &Descending(1), &run);
        assert_eq!(segment.pk, run_partition(&run));
        assert_eq!(ExperimentName::key(&name, &name).pk, workspace_partition(&name));
        assert_eq!(ExperimentTag::key(&experiment, &name).pk, experiment_partition(experiment));
        for (key, prefix) in [
            (RunMetricsBucket::key(&experiment, &run, &Bucket::of("a")).sk, run_metrics_buckets(&run)),
            (RunParam::key(&experiment, &run, &name).sk, run_params(&run)),
            (RunTag::key(&experiment, &run, &name).sk, run_tags(&run)),
            (RunOutput::key(&experiment, &run, &name).sk, run_outputs(&run)),
            (ExperimentTag::key(&experiment, &name).sk, EXPERIMENT_TAGS.to_owned()),
            (ExperimentName::key(&name, &name).sk, EXPERIMENT_NAMES.to_owned()),
            (segment.sk, metric_segments(&name)),
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
        assert!(!active.starts_with(&runs_of_stage(Stage::Deleted { version: 3 })));
    }
}
