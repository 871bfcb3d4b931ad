//! Ranges that are not a plain prefix of one row's keys.

use model::{EvaluationDatasetId, ExperimentId, LabelSchemaId, ModelId, ReviewQueueId, RunId, TraceId};

use crate::index::{ExperimentsByStage, LoggedModelsByStage, ReviewItemsByTime, RunsByStage};
use crate::rows::{
    ArchivedSegments, EvaluationDataset, EvaluationRecord, FullText, IndexedCopy, LabelSchema, LoggedModel,
    MetricJournal, MetricSegment, RankByMetric, RankByParam, ReviewQueue, Run, RunInput, RunMetricsBucket,
    RunModelInput,
};
use crate::{
    Ascending, Descending, Field, KeyRange, Level, ListKind, Name, OwnStage, Segment, Stage, TextSegment, TokenPart,
    Value, list_positions,
};

/// Returns the range of all rows of a run in its experiment's partition, except its document.
#[must_use]
pub fn rows_of_run(experiment: &ExperimentId, run: &RunId) -> KeyRange {
    Run::all(experiment).range().beginning(&list_positions::of_value(run.as_str()))
}

/// Returns the range of a run's journal, the names used in it, and its metrics documents, in this
/// order. Points move from the journal to the metrics documents, so a reader of the range never
/// misses a point.
#[must_use]
pub fn journal_and_metrics(run: &RunId) -> KeyRange {
    MetricJournal::all(run).range().through(RunMetricsBucket::all(run))
}

/// Returns the range of a metric's segments that begin later than `after`, and at or before
/// `through`, each a time and a step.
#[must_use]
pub fn segments_between(
    run: &RunId,
    metric: &Name,
    after: Option<(i64, i64)>,
    through: Option<(i64, i64)>,
) -> KeyRange {
    let place = |(timestamp, step)| format!("{}#{}#", Ascending(timestamp).text(), Ascending(step).text());
    let all = MetricSegment::all(run).metric(metric).range();
    let all = match after {
        Some(after) => all.after_beginning(&place(after)),
        None => all,
    };
    match through {
        Some(through) => all.until_beginning(&place(through)),
        None => all,
    }
}

/// Returns the range of the rows of archived segments, the chart rows and the segments of all
/// metrics of a run.
#[must_use]
pub fn charts_and_segments(run: &RunId) -> KeyRange {
    ArchivedSegments::all(run).range().through(MetricSegment::all(run))
}

/// Returns the range of a run's inputs and outputs. The rows of datasets, outputs and model inputs
/// are adjacent.
#[must_use]
pub fn links_of_run(experiment: &ExperimentId, run: &RunId) -> KeyRange {
    RunInput::all(experiment).run(run).range().through(RunModelInput::all(experiment).run(run))
}

/// Returns the range of runs that were deleted on their own, in any version of the experiment's
/// stage.
#[must_use]
pub fn runs_deleted(experiment: &ExperimentId) -> KeyRange {
    RunsByStage::all(experiment).range().beginning(Stage::DELETED)
}

/// Returns the range of runs that were deleted on their own before the experiment's stage reached
/// `version`.
#[must_use]
pub fn runs_deleted_before(experiment: &ExperimentId, version: u32) -> KeyRange {
    runs_deleted(experiment).until(&Stage::Deleted { version }.text())
}

/// Returns the range of deleted logged models.
#[must_use]
pub fn logged_models_deleted(experiment: &ExperimentId) -> KeyRange {
    LoggedModelsByStage::all(experiment).range().beginning(Stage::DELETED)
}

/// Returns the range of all rows of a logged model in its experiment's partition, except its
/// document.
#[must_use]
pub fn rows_of_logged_model(experiment: &ExperimentId, model: &ModelId) -> KeyRange {
    LoggedModel::all(experiment).range().beginning(&list_positions::of_value(model.as_str()))
}

/// Returns the range of deleted experiments.
#[must_use]
pub fn experiments_deleted(workspace: &Name) -> KeyRange {
    ExperimentsByStage::all(workspace).range().beginning(Stage::DELETED)
}

/// Returns the range of the label schemas that follow the given one in its experiment, newest
/// first.
#[must_use]
pub fn label_schemas_after(schema: &LabelSchemaId) -> KeyRange {
    let place = format!("{}#{schema}", Descending(schema.created()).text());
    LabelSchema::all(&schema.experiment()).range().after(&place)
}

/// Returns the range of the review queues that follow the given one in its experiment, newest
/// first.
#[must_use]
pub fn review_queues_after(queue: &ReviewQueueId) -> KeyRange {
    let place = format!("{}#{queue}", Descending(queue.created()).text());
    ReviewQueue::all(&queue.experiment()).range().after(&place)
}

/// Returns the range of a review queue's items, newest first, that follow the item of the given
/// trace. `created` is the time in ms at which that item was added.
#[must_use]
pub fn review_items_after(queue: &ReviewQueueId, created: i64, trace: &TraceId) -> KeyRange {
    ReviewItemsByTime::all(queue).range().after(&format!("{}#{trace}", Descending(created).text()))
}

/// Returns the ranges of the entries of a list, which are in one or several partitions.
#[must_use]
pub fn entries_of_list(experiment: &ExperimentId, entity_type: &Name, kind: ListKind, of: &Field) -> Vec<KeyRange> {
    match kind {
        ListKind::Metric => vec![RankByMetric::partition(experiment, of)],
        ListKind::Param => vec![RankByParam::partition(experiment, of)],
        ListKind::Tokens(level) => {
            TokenPart::all(level).map(|part| FullText::partition(experiment, &part, entity_type, of)).collect()
        }
    }
}

/// Returns the range of entries with this token of a field.
#[must_use]
pub fn with_token(experiment: &ExperimentId, level: Level, entity_type: &Name, field: &Field, token: &str) -> KeyRange {
    let part = TokenPart::of(level, token);
    FullText::all(experiment, &part, entity_type, field).token(&token.into()).range()
}

/// Returns the range of entries whose token of a field has this prefix.
#[must_use]
pub fn with_tokens_beginning(
    experiment: &ExperimentId,
    level: Level,
    entity_type: &Name,
    field: &Field,
    beginning: &str,
) -> KeyRange {
    let part = TokenPart::of(level, beginning);
    let all = FullText::all(experiment, &part, entity_type, field).range();
    all.beginning(&Value::from(beginning).beginning())
}

/// Returns the ranges of copies. There are two, because copies of entities that were deleted on
/// their own are in a separate partition.
#[must_use]
pub fn copies(experiment: &ExperimentId, entity_type: &Name) -> [KeyRange; 2] {
    OwnStage::ALL.map(|stage| IndexedCopy::partition(experiment, &stage, entity_type))
}

/// Returns the range of an evaluation dataset and its records, whose keys follow that of the
/// dataset.
#[must_use]
pub fn evaluation_dataset_with_records(dataset: &EvaluationDatasetId) -> KeyRange {
    EvaluationDataset::all(dataset).range().through(EvaluationRecord::all(dataset))
}

#[cfg(test)]
mod tests {
    use model::DatasetRecordId;

    use super::*;
    use crate::index::IndexEntry;
    use crate::rows::{
        EvaluationDatasetTag, JournalCall, JournalNames, LoggedModelMetrics, LoggedModelParam, LoggedModelTag,
        MetricChart, RunMetrics, RunOutput, RunParam, RunTag, VersionOfRun,
    };
    use crate::{Bucket, Descending, DescendingDouble, Digest, IndexKey, Key, Ordinal, WideDigest};

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
        let others = [RunParam::key(&EXPERIMENT, &run, &last), RunTag::key(&EXPERIMENT, &run, &last)];
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
    fn the_journal_comes_before_the_documents_and_history_is_not_among_them() {
        let run = RunId::parse("run").unwrap();
        let name = Name::from("m");
        let keys = [
            MetricJournal::key(&run, &Digest(0)),
            MetricJournal::key(&run, &Digest(u64::MAX)),
            JournalCall::key(&run, &Digest(0)),
            JournalCall::key(&run, &Digest(u64::MAX)),
            JournalNames::key(&run, &WideDigest(7)),
            RunMetrics::key(&run),
            RunMetricsBucket::key(&run, &Bucket::of("m")),
        ];
        assert!(keys.is_sorted_by_key(|key| &key.sk));
        let segment = MetricSegment::key(&run, &name, &Ascending(1), &Ascending(2), &Digest(3));
        let version =
            VersionOfRun::key(&crate::ModelKey::from("run"), &crate::ModelKey::from(name.0.as_str()), &Ordinal(1));
        let row = MetricChart::key(&run, &name, &Ordinal(1), &Ordinal(u32::MAX));
        let archived = ArchivedSegments::key(&run, &name, &Ordinal(0));
        let of_history = [archived, row, segment];
        check(&journal_and_metrics(&run), &keys, &[&of_history[..], std::slice::from_ref(&version)].concat());
        check(&charts_and_segments(&run), &of_history, &[&keys[..], &[version]].concat());
    }

    #[test]
    fn segments_lie_between_two_times() {
        let run = RunId::parse("run").unwrap();
        let (name, other) = (Name::from("m"), Name::from("m1"));
        let key =
            |time, step, digest| MetricSegment::key(&run, &name, &Ascending(time), &Ascending(step), &Digest(digest));
        let before = [key(-1, 9, 9), key(5, 1, 9), key(5, 2, 0), key(5, 2, u64::MAX)];
        let within = [key(5, 3, 0), key(6, -1, 7), key(7, 7, u64::MAX)];
        let behind =
            [key(7, 8, 0), key(8, 0, 0), MetricSegment::key(&run, &other, &Ascending(6), &Ascending(0), &Digest(0))];
        let range = segments_between(&run, &name, Some((5, 2)), Some((7, 7)));
        check(&range, &within, &[&before[..], &behind].concat());
        check(&segments_between(&run, &name, Some((5, 2)), None), &[&within[..], &behind[..2]].concat(), &before);
        check(&segments_between(&run, &name, None, Some((7, 7))), &[&before[..], &within].concat(), &behind);
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
    fn what_the_indexer_derives_is_found_by_its_lists() {
        let run = RunId::new(1, EXPERIMENT, 7);
        let (field, other, value, kind) =
            (Field::from("f"), Field::from("f2"), Value::from("value"), Name::from("run"));
        let entity = Name::from(run.as_str());
        let by_level = |level, of: &Field| {
            let part = TokenPart::of(level, &value.0);
            FullText::key(&EXPERIMENT, &part, &kind, of, &value, &Descending(1), &entity)
        };
        let entries = |of: &Field| {
            [
                (
                    ListKind::Metric,
                    RankByMetric::key(&EXPERIMENT, of, &DescendingDouble(f64::NAN), &Descending(1), &run),
                ),
                (ListKind::Param, RankByParam::key(&EXPERIMENT, of, &value, &Descending(1), &run)),
                (ListKind::Tokens(Level::Trigram), by_level(Level::Trigram, of)),
                (ListKind::Tokens(Level::Value), by_level(Level::Value, of)),
            ]
        };
        let (here, elsewhere) = (entries(&field), entries(&other));
        let copies_of =
            OwnStage::ALL.map(|stage| IndexedCopy::key(&EXPERIMENT, &stage, &kind, &Descending(1), &entity));
        for (kind_of_list, entry) in &here {
            let ranges = entries_of_list(&EXPERIMENT, &kind, *kind_of_list, &field);
            let holds = |key: &Key| ranges.iter().any(|range| range.contains(key));
            assert!(holds(entry));
            let others = here.iter().filter(|(_, key)| key != entry).chain(&elsewhere).map(|(_, key)| key);
            assert!(others.chain(&copies_of).all(|key| !holds(key)), "{kind_of_list:?}");
        }
        for (range, copy) in copies(&EXPERIMENT, &kind).iter().zip(&copies_of) {
            check(range, std::slice::from_ref(copy), &here.clone().map(|(_, key)| key));
        }
        for (level, entry) in [Level::Trigram, Level::Value].into_iter().zip(&here[2..]) {
            assert!(with_token(&EXPERIMENT, level, &kind, &field, "value").contains(&entry.1));
            assert!(with_tokens_beginning(&EXPERIMENT, level, &kind, &field, "v").contains(&entry.1));
            assert!(!with_token(&EXPERIMENT, level, &kind, &field, "val").contains(&entry.1));
        }
        assert!(with_tokens_beginning(&EXPERIMENT, Level::Value, &kind, &field, "").contains(&here[3].1));
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
