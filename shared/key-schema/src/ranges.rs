//! Ranges that are no plain prefix of one row's keys.

use mlflow_api::{EvaluationDatasetId, ExperimentId, ModelId, RunId};

use crate::index::{ExperimentsByStage, LoggedModelsByStage, RunsByStage};
use crate::rows::{
    EvaluationDataset, EvaluationRecord, FullText, LoggedModel, RankByMetric, RankByParam, Run, RunInput, RunModelInput,
};
use crate::{KeyRange, Name, Segment, Stage, place};

/// Every row of a run in its experiment's partition but its document.
#[must_use]
pub fn rows_of_run(experiment: &ExperimentId, run: &RunId) -> KeyRange {
    Run::all(experiment).range().beginning(&place::of_value(run.as_str()))
}

/// What a run read and put out: the rows of its datasets, outputs and model inputs stand together.
#[must_use]
pub fn links_of_run(experiment: &ExperimentId, run: &RunId) -> KeyRange {
    RunInput::all(experiment).run(run).range().through(RunModelInput::all(experiment).run(run))
}

/// Runs that were deleted on their own, whenever that was.
#[must_use]
pub fn runs_deleted(experiment: &ExperimentId) -> KeyRange {
    RunsByStage::all(experiment).range().beginning(Stage::DELETED)
}

/// Runs that were deleted on their own before the experiment's stage had this version.
#[must_use]
pub fn runs_deleted_before(experiment: &ExperimentId, version: u32) -> KeyRange {
    runs_deleted(experiment).until(&Stage::Deleted { version }.text())
}

/// Logged models that are deleted.
#[must_use]
pub fn logged_models_deleted(experiment: &ExperimentId) -> KeyRange {
    LoggedModelsByStage::all(experiment).range().beginning(Stage::DELETED)
}

/// Every row of a logged model in its experiment's partition but its document.
#[must_use]
pub fn rows_of_logged_model(experiment: &ExperimentId, model: &ModelId) -> KeyRange {
    LoggedModel::all(experiment).range().beginning(&place::of_value(model.as_str()))
}

/// Experiments that are deleted.
#[must_use]
pub fn experiments_deleted(workspace: &Name) -> KeyRange {
    ExperimentsByStage::all(workspace).range().beginning(Stage::DELETED)
}

/// All entries of full text, and all ranks: what the indexer derives, its copies aside.
#[must_use]
pub fn derived(experiment: &ExperimentId) -> [KeyRange; 2] {
    let ranks = RankByMetric::all(experiment).range().through(RankByParam::all(experiment));
    [FullText::all(experiment).range(), ranks]
}

/// An evaluation dataset and its records, which come behind it.
#[must_use]
pub fn evaluation_dataset_with_records(dataset: &EvaluationDatasetId) -> KeyRange {
    EvaluationDataset::all(dataset).range().through(EvaluationRecord::all(dataset))
}

#[cfg(test)]
mod tests {
    use mlflow_api::DatasetRecordId;

    use super::*;
    use crate::index::IndexEntry;
    use crate::rows::{
        Dataset, EvaluationDatasetTag, Experiment, IndexedCopy, LoggedModelMetrics, LoggedModelParam, LoggedModelTag,
        RunMetrics, RunMetricsBucket, RunOutput, RunParam, RunTag, Scorer,
    };
    use crate::{Bucket, Descending, DescendingDouble, Field, IndexKey, Key, Level, Value, WideDigest};

    const EXPERIMENT: ExperimentId = ExperimentId::DEFAULT;

    fn check(range: &KeyRange, within: &[Key], outside: &[Key]) {
        for key in within {
            assert!(range.contains(key), "{key:?} is missing in {range:?}");
        }
        for key in outside {
            assert!(!range.contains(key), "{key:?} is in {range:?}");
        }
    }

    fn check_index(range: &KeyRange, partition: &str, within: &[IndexKey], outside: &[IndexKey]) {
        let key = |key: &IndexKey| Key { pk: partition.to_owned(), sk: key.0[0].1.clone() };
        assert!(within.iter().chain(outside).all(|key| key.0[0].0 == range.sort_attribute()));
        check(range, &within.iter().map(key).collect::<Vec<_>>(), &outside.iter().map(key).collect::<Vec<_>>());
    }

    #[test]
    fn ranges_of_a_run_hold_its_rows() {
        let run = RunId::parse("run").unwrap();
        let longer = RunId::parse("run1").unwrap();
        let last = Name::from("\u{10FFFF}\u{10FFFF}");
        let documents = [Run::key(&EXPERIMENT, &run), Run::key(&EXPERIMENT, &longer)];
        let links = [
            RunInput::key(&EXPERIMENT, &run, &WideDigest(0)),
            RunInput::key(&EXPERIMENT, &run, &WideDigest(u128::MAX)),
            RunOutput::key(&EXPERIMENT, &run, &last),
            RunModelInput::key(&EXPERIMENT, &run, &last),
        ];
        let others = [
            RunMetrics::key(&EXPERIMENT, &run),
            RunMetricsBucket::key(&EXPERIMENT, &run, &Bucket::of("m")),
            RunParam::key(&EXPERIMENT, &run, &last),
            RunTag::key(&EXPERIMENT, &run, &last),
        ];
        let of_another =
            [RunInput::key(&EXPERIMENT, &longer, &WideDigest(7)), RunTag::key(&EXPERIMENT, &longer, &last)];
        check(&links_of_run(&EXPERIMENT, &run), &links, &[&documents[..], &others, &of_another].concat());
        check(
            &rows_of_run(&EXPERIMENT, &run),
            &[&links[..], &others].concat(),
            &[&documents[..], &of_another].concat(),
        );
    }

    #[test]
    fn ranges_of_a_logged_model_hold_its_rows() {
        let model = ModelId::new(1, EXPERIMENT, 7);
        let other = ModelId::new(1, EXPERIMENT, 8);
        let name = Name::from("\u{10FFFF}");
        let of = |model: &ModelId| {
            [
                LoggedModelMetrics::key(&EXPERIMENT, model),
                LoggedModelParam::key(&EXPERIMENT, model, &name),
                LoggedModelTag::key(&EXPERIMENT, model, &name),
            ]
        };
        let documents = [LoggedModel::key(&EXPERIMENT, &model), LoggedModel::key(&EXPERIMENT, &other)];
        check(&rows_of_logged_model(&EXPERIMENT, &model), &of(&model), &[&documents[..], &of(&other)].concat());
        let deleted = LoggedModelsByStage::key(&Stage::Deleted { version: 0 }, &Descending(1), &model);
        let active = LoggedModelsByStage::key(&Stage::Active, &Descending(1), &model);
        let run = RunsByStage::key(&Stage::Deleted { version: 0 }, &Descending(1), &RunId::new(1, EXPERIMENT, 7));
        check_index(&logged_models_deleted(&EXPERIMENT), &documents[0].pk, &[deleted], &[active, run]);
    }

    #[test]
    fn deleted_runs_and_experiments_are_told_by_the_version() {
        let run = RunId::new(1, EXPERIMENT, 7);
        let stages = [0, 1, 2, u32::MAX].map(|version| Stage::Deleted { version });
        let [zero, one, two, last] = stages.map(|stage| RunsByStage::key(&stage, &Descending(i64::MIN), &run));
        let active = RunsByStage::key(&Stage::Active, &Descending(1), &run);
        let pk = Run::key(&EXPERIMENT, &run).pk;
        let all = [zero.clone(), one.clone(), two.clone(), last.clone()];
        check_index(&runs_deleted(&EXPERIMENT), &pk, &all, std::slice::from_ref(&active));
        check_index(&runs_deleted_before(&EXPERIMENT, 2), &pk, &[zero.clone(), one], &[two, last, active.clone()]);
        check_index(&runs_deleted_before(&EXPERIMENT, 0), &pk, &[], &[zero, active]);
        let name = Name::from("w");
        let listed = stages.map(|stage| ExperimentsByStage::key(&stage, &Descending(1), &EXPERIMENT));
        let active = ExperimentsByStage::key(&Stage::Active, &Descending(1), &EXPERIMENT);
        check_index(&experiments_deleted(&name), "WORKSPACE#w", &listed, &[active]);
        assert_eq!(runs_deleted(&EXPERIMENT).index(), Some(RunsByStage::INDEX));
    }

    #[test]
    fn what_the_indexer_derives_is_nothing_else() {
        let run = RunId::new(1, EXPERIMENT, 7);
        let (field, value, name) = (Field::from("f"), Value::from("v"), Name::from("run"));
        let token = FullText::key(&EXPERIMENT, &Level::Word, &name, &field, &value, &Descending(1), &name);
        let ranks = [
            RankByMetric::key(&EXPERIMENT, &field, &DescendingDouble(f64::NAN), &Descending(1), &run),
            RankByParam::key(&EXPERIMENT, &field, &value, &Descending(1), &run),
        ];
        let others = [
            IndexedCopy::key(&EXPERIMENT, &name, &name),
            Run::key(&EXPERIMENT, &run),
            Experiment::key(&EXPERIMENT),
            LoggedModel::key(&EXPERIMENT, &ModelId::new(1, EXPERIMENT, 7)),
            Dataset::key(&EXPERIMENT, &WideDigest(7)),
            Scorer::key(&EXPERIMENT, &name),
        ];
        let [full_text, rank] = derived(&EXPERIMENT);
        check(&full_text, std::slice::from_ref(&token), &others);
        check(&rank, &ranks, &others);
        assert!(!rank.contains(&token));
    }

    #[test]
    fn a_dataset_comes_before_its_records_and_nothing_between() {
        let dataset = EvaluationDatasetId::new(5, 7);
        let [first, last] =
            [0, (1 << 47) - 1].map(|time| EvaluationRecord::key(&dataset, &DatasetRecordId::new(time, u128::MAX)));
        let document = EvaluationDataset::key(&dataset);
        assert!(document.sk < first.sk && first.sk < last.sk);
        let range = evaluation_dataset_with_records(&dataset);
        check(&range, &[document, first, last], &[EvaluationDatasetTag::key(&dataset, &"".into())]);
    }
}
