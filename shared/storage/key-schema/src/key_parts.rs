//! Parsers for single parts of keys that cannot be parsed as a whole, because a text in them may be
//! truncated.

use model::{EvaluationDatasetId, ExperimentId, RunId};

use crate::rows::{
    ArchivedSegments, IndexList, MetricSegment, ModelVersion, Scorer, VersionOfRun, WorkspaceEvaluationDataset,
    WorkspaceScorer,
};
use crate::{Digest, Key, ListKind, ModelKey, Name, Ordinal, Segment, list_positions};

/// Returns the version whose document has this sort key. `None` for any other row. The name in the
/// partition key may be truncated.
#[must_use]
pub fn version_of_document(sort_key: &str) -> Option<u32> {
    let versions = ModelVersion::all(&ModelKey::from("")).range();
    Ordinal::read(versions.place(sort_key)?).map(|Ordinal(version)| version)
}

/// Returns the version in the sort key of a [`VersionOfRun`](crate::rows::VersionOfRun). The name
/// of its home may be truncated.
#[must_use]
pub fn version_of_run(sort_key: &str) -> Option<u32> {
    let (_home, version) = VersionOfRun::all(&ModelKey::from("")).range().place(sort_key)?.split_once('#')?;
    Ordinal::read(version).map(|Ordinal(version)| version)
}

/// Returns the hash of the points in the sort key of a
/// [`MetricSegment`](crate::rows::MetricSegment). The name of the metric may be truncated.
#[must_use]
pub fn points_of_segment(sort_key: &str) -> Option<Digest> {
    let run = RunId::new(0, ExperimentId::DEFAULT, 0);
    let (_metric_and_time, points) = MetricSegment::all(&run).range().place(sort_key)?.rsplit_once('#')?;
    Digest::read(points)
}

/// Returns the name of the metric in the sort key of a
/// [`MetricSegment`](crate::rows::MetricSegment), as keys contain it: encoded, and truncated if it
/// is long.
#[must_use]
pub fn metric_of_segment(sort_key: &str) -> Option<&str> {
    let run = RunId::new(0, ExperimentId::DEFAULT, 0);
    Some(MetricSegment::all(&run).range().place(sort_key)?.split_once('#')?.0)
}

/// Returns the number in the sort key of an [`ArchivedSegments`](crate::rows::ArchivedSegments)
/// row. The name of the metric may be truncated.
#[must_use]
pub fn number_of_archived_segments(sort_key: &str) -> Option<u32> {
    let run = RunId::new(0, ExperimentId::DEFAULT, 0);
    let (_metric, number) = ArchivedSegments::all(&run).range().place(sort_key)?.rsplit_once('#')?;
    Ordinal::read(number).map(|Ordinal(number)| number)
}

/// Returns the dataset that a row lists, given the row's sort key in a workspace's or an
/// experiment's list of evaluation datasets. The name of the workspace or experiment in the key may
/// be truncated.
#[must_use]
pub fn listed_evaluation_dataset(sort_key: &str) -> Option<EvaluationDatasetId> {
    let of_workspace = WorkspaceEvaluationDataset::all(&Name::from("")).range();
    of_workspace.place(sort_key).and_then(EvaluationDatasetId::parse)
}

/// Returns the experiment of the scorer that a row lists, given the row's sort key in a workspace's
/// list of scorers. The names of the workspace and the scorer in the key may be truncated.
#[must_use]
pub fn experiment_of_listed_scorer(sort_key: &str) -> Option<ExperimentId> {
    let scorers = WorkspaceScorer::all(&Name::from("")).range();
    scorers.place(sort_key).and_then(|place| ExperimentId::read(list_positions::value(place)))
}

/// Returns the experiment of a [`Scorer`](crate::rows::Scorer). `None` for any other row. The name
/// of the scorer may be truncated.
#[must_use]
pub fn experiment_of_scorer(key: &Key) -> Option<ExperimentId> {
    let experiment = ExperimentId::read(key.pk.strip_prefix("EXP#")?)?;
    Scorer::all(&experiment).range().contains(key).then_some(experiment)
}

/// Returns the kind of a list, given the sort key of its [`IndexList`](crate::rows::IndexList) row.
/// The name of the field may be truncated.
#[must_use]
pub fn kind_of_list(sort_key: &str) -> Option<ListKind> {
    let lists = IndexList::all(&ExperimentId::DEFAULT).range();
    let mut parts = lists.place(sort_key)?.split('#').skip(1);
    ListKind::read(parts.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ascending;
    use crate::rows::{ExperimentEvaluationDataset, ModelVersionTag, ScorerVersion};
    use model::ScorerId;

    #[test]
    fn parts_of_keys_with_long_names_are_read() {
        let long = Name("#".repeat(2_000));
        let dataset = EvaluationDatasetId::new(1_700_000_000_000, 7);
        let version = Ordinal(7);
        let home = ModelKey::from(long.0.as_str());
        assert_eq!(version_of_document(&ModelVersion::key(&home, &version).sk), Some(7));
        assert_eq!(version_of_document(&ModelVersionTag::key(&home, &version, &long).sk), None);
        assert_eq!(version_of_run(&VersionOfRun::key(&home, &home, &version).sk), Some(7));
        for key in [ExperimentEvaluationDataset::key(&long, &dataset), WorkspaceEvaluationDataset::key(&long, &dataset)]
        {
            assert_eq!(listed_evaluation_dataset(&key.sk), Some(dataset.clone()));
        }
        let run = RunId::new(1, ExperimentId::DEFAULT, 1);
        let segment = MetricSegment::key(&run, &long, &Ascending(1), &Ascending(2), &Digest(3));
        assert_eq!(points_of_segment(&segment.sk), Some(Digest(3)));
        assert_eq!(metric_of_segment(&segment.sk), Some(long.text().as_str()));
        let archived = ArchivedSegments::key(&run, &long, &Ordinal(70));
        assert_eq!(number_of_archived_segments(&archived.sk), Some(70));
        assert_eq!(number_of_archived_segments(&segment.sk), None);
        let list = IndexList::key(&ExperimentId::DEFAULT, &long, &ListKind::Param, &long.0.as_str().into());
        assert_eq!(kind_of_list(&list.sk), Some(ListKind::Param));
        let scorer = Scorer::key(&ExperimentId::DEFAULT, &long);
        assert_eq!(experiment_of_scorer(&scorer), Some(ExperimentId::DEFAULT));
        let version = ScorerVersion::key(&ExperimentId::DEFAULT, &ScorerId::new(1, ExperimentId::DEFAULT, 7), &version);
        assert_eq!(experiment_of_scorer(&version), None);
        let scorer = WorkspaceScorer::key(&long, &ExperimentId::DEFAULT, &long);
        assert_eq!(experiment_of_listed_scorer(&scorer.sk), Some(ExperimentId::DEFAULT));
    }
}
