use artifact_store::Archive;
use entities::attributes::REBUILD;
use entities::indexed_fields_setting::ExperimentFieldsSetting;
use runtime::clock::SimulatedClock;
use serde_json::json;
use test_site::{TABLE, TestClient, TestEnvironment};
use tracking::store::Store;

use super::index_rebuild::IndexRebuild;
use super::*;

#[test]
fn a_pattern_that_can_match_no_field_is_refused() {
    for text in ["*", "tags.*", "!tags.mlflow.*", "t*", "tags.a", "attributes.run_name", "params.*.x", "*note*"] {
        assert_eq!(pattern(text), Ok(text.to_owned()));
    }
    for text in ["", "!", "note", "tag.*", "tags", "Tags.a", "metrics.*", "!param.x"] {
        assert!(pattern(text).is_err(), "{text}");
    }
}

/// A table with experiments of two runs each, where each run has a note.
struct TestTable {
    site: TestEnvironment,
    api: TestClient,
    clock: SimulatedClock,
}

impl TestTable {
    async fn new() -> Self {
        let site = TestEnvironment::with_stream().await;
        let store = Store::new(site.table.clone(), "s3://bucket/artifacts");
        let api = TestClient(tracking::router(&store, test_site::everybody()));
        Self { site, api, clock: SimulatedClock::begin() }
    }

    async fn experiment(&self, name: &str) -> ExperimentId {
        let answer = self.api.post("experiments/create", json!({ "name": name })).await.ok();
        let id = answer["experiment_id"].as_str().unwrap().to_owned();
        for note in ["a long walk", "a short one"] {
            let tags = json!([{ "key": "note", "value": note }]);
            self.api.post("runs/create", json!({ "experiment_id": id, "start_time": 1, "tags": tags })).await.ok();
        }
        ExperimentId::parse(&id).unwrap()
    }

    async fn rebuild(&self, part: ReindexTarget) {
        self.rebuild_some(part, None).await;
    }

    /// Rebuilds the index with at most `at_once` runs waiting.
    async fn rebuild_some(&self, part: ReindexTarget, at_once: Option<u32>) {
        let archive = Archive::default();
        let rebuilt = rebuild(&self.site.table, Some(self.site.engine.clone()), TABLE, &archive, part, at_once);
        tokio::select! { rebuilt = rebuilt => rebuilt.unwrap(), () = self.clock.drive() => {} }
    }

    async fn setting(&self) -> IndexedFieldsSetting {
        IndexedFieldsSetting::read(&self.site.table).await.unwrap()
    }

    /// Returns the number of index tokens of notes in an experiment.
    async fn tokens(&self, experiment: ExperimentId) -> usize {
        let begin = format!("IX#{experiment}#T#");
        let is_of_note = |key: &str| key.starts_with(&begin) && key.contains("tags.note");
        let items = self.site.items().await;
        items.iter().filter(|item| item["PK"]["S"].as_str().is_some_and(is_of_note)).count()
    }

    async fn found(&self, experiments: &[ExperimentId], filter: &str) -> usize {
        let ids: Vec<_> = experiments.iter().map(ToString::to_string).collect();
        let body = json!({ "experiment_ids": ids, "filter": filter });
        self.api.post("runs/search", body).await.ok()["runs"].as_array().map_or(0, Vec::len)
    }
}

#[tokio::test]
async fn an_experiment_has_fields_of_its_own_and_none_again() {
    let lab = TestTable::new().await;
    let [one, other] = [lab.experiment("one").await, lab.experiment("other").await];
    lab.rebuild(ReindexTarget::Table(None)).await;
    let before = [lab.tokens(one).await, lab.tokens(other).await];
    assert_eq!(before, [2, 2], "the values of two notes");

    let own = ExperimentFieldPatterns { values: None, text: Some(vec!["tags.note".to_owned()]) };
    lab.rebuild(ReindexTarget::Experiment(one, Some(own.clone()))).await;
    let expected = ExperimentFieldsSetting { indexed: own.clone(), searched: own };
    assert_eq!(lab.setting().await.own.get(&one), Some(&expected));
    assert!(lab.tokens(one).await > before[0], "the trigrams of two notes");
    assert_eq!(lab.tokens(other).await, before[1]);
    let long = "tags.note LIKE '%long%'";
    assert_eq!([lab.found(&[one], long).await, lab.found(&[other], long).await], [1, 1]);
    assert_eq!(lab.found(&[one, other], long).await, 2);

    // Changing the fields of the server does not affect the fields of the experiment.
    let nothing = IndexedFields { values: Vec::new(), text: Vec::new() };
    lab.rebuild(ReindexTarget::Table(Some(nothing.clone()))).await;
    let setting = lab.setting().await;
    assert_eq!((setting.indexed, setting.searched, setting.own.get(&one)), (nothing.clone(), nothing, Some(&expected)));
    assert!(lab.tokens(one).await > lab.tokens(other).await);
    assert_eq!(lab.found(&[one, other], long).await, 2);

    lab.rebuild(ReindexTarget::Experiment(one, Some(ExperimentFieldPatterns::default()))).await;
    assert_eq!(lab.setting().await.own.len(), 0);
    assert_eq!([lab.tokens(one).await, lab.tokens(other).await], [0, 0]);
    assert_eq!(lab.found(&[one, other], long).await, 2);
}

/// After an interrupted change, searches read the documents until `reindex` runs for the experiment
/// or for the table.
#[tokio::test]
async fn a_rebuild_that_was_cut_off_is_made_up_for() {
    let lab = TestTable::new().await;
    let one = lab.experiment("one").await;
    let own = ExperimentFieldPatterns { values: None, text: Some(vec!["tags.note".to_owned()]) };
    for part in [ReindexTarget::Experiment(one, None), ReindexTarget::Table(None)] {
        let cut_off = ExperimentFieldsSetting { indexed: own.clone(), searched: ExperimentFieldPatterns::nothing() };
        let present = lab.setting().await.own.get(&one).cloned().unwrap_or_default();
        cut_off.write_after(&present, &lab.site.table, one).await.unwrap();
        assert!(lab.setting().await.is_between_fields());
        lab.rebuild(part).await;
        assert_eq!(lab.setting().await.own[&one].searched, own);
        assert_eq!(lab.found(&[one], "tags.note LIKE '%long%'").await, 1);
    }
}

/// Runs `reindex` while another `reindex` waits until searches no longer rely on the previous
/// fields. The command that finishes first must not make searches rely on those fields again.
#[tokio::test]
async fn of_two_commands_at_once_one_gives_up() {
    let lab = TestTable::new().await;
    let one = lab.experiment("one").await;
    lab.rebuild(ReindexTarget::Table(None)).await;
    let text = |pattern: &str| ExperimentFieldPatterns { values: None, text: Some(vec![pattern.to_owned()]) };
    lab.rebuild(ReindexTarget::Experiment(one, Some(text("tags.note")))).await;

    let changed = ReindexTarget::Experiment(one, Some(text("tags.other")));
    let before = lab.setting().await;
    let mut unused = before.clone();
    unused.own.get_mut(&one).unwrap().searched = ExperimentFieldPatterns::nothing();
    changed.write(&lab.site.table, &before, &unused).await.unwrap();
    // If the response was lost, repeating the write is not considered a change by another command.
    changed.write(&lab.site.table, &before, &unused).await.unwrap();
    lab.rebuild(ReindexTarget::Experiment(one, None)).await;
    assert_eq!(lab.setting().await.own[&one].searched, text("tags.note"), "all runs are indexed by these fields");
    let mut after = unused.clone();
    after.own.get_mut(&one).unwrap().indexed = text("tags.other");
    let refused = changed.write(&lab.site.table, &unused, &after).await.unwrap_err().to_string();
    assert!(refused.contains("another command has changed these fields"), "{refused}");
    assert_eq!(lab.setting().await.own[&one].indexed, text("tags.note"));

    // A full rebuild starts before another command changes the fields of the server, and ends after
    // it.
    let began = lab.setting().await;
    let nothing = IndexedFields { values: Vec::new(), text: Vec::new() };
    let change = IndexedFieldsSetting { indexed: nothing.clone(), searched: nothing.clone(), ..began.clone() };
    let cut_off = IndexedFieldsSetting { indexed: IndexedFields::default(), ..change.clone() };
    change.write_after(&began, &lab.site.table).await.unwrap();
    ReindexTarget::Table(None).rely_on_fields(&lab.site.table, &cut_off).await.unwrap();
    assert_eq!(lab.setting().await.searched, nothing);
}

#[tokio::test]
async fn experiments_with_fields_of_their_own_are_real_and_few() {
    let lab = TestTable::new().await;
    let one = lab.experiment("one").await;
    let missing = ExperimentId::parse("77").unwrap();
    let refused = check_experiment(&lab.site.table, missing).await.unwrap_err().to_string();
    assert_eq!(refused, "No Experiment with id=77 exists");
    let own = ExperimentFieldsSetting {
        indexed: ExperimentFieldPatterns::nothing(),
        searched: ExperimentFieldPatterns::nothing(),
    };
    for id in 1_000..1_000 + MAX_EXPERIMENTS_WITH_FIELDS {
        let id = ExperimentId::parse(&id.to_string()).unwrap();
        own.write_after(&ExperimentFieldsSetting::default(), &lab.site.table, id).await.unwrap();
    }
    let refused = check_experiment(&lab.site.table, one).await.unwrap_err().to_string();
    assert_eq!(refused, "at most 100 experiments may have fields of their own");
}

/// Returns the number of runs that are waiting for a rebuild.
async fn waiting(lab: &TestTable) -> usize {
    lab.site.items().await.iter().filter(|item| item.get(REBUILD.name()).is_some()).count()
}

#[tokio::test]
async fn few_runs_wait_at_a_time() {
    let lab = TestTable::new().await;
    let experiments = [lab.experiment("one").await, lab.experiment("other").await];
    let index = RunIndex::new(lab.site.table.clone());
    let mut runs = IndexRebuild::of(&index, &experiments);
    for expected in [3, 3, 4] {
        runs.mark(expected).await.unwrap();
        assert_eq!((runs.waiting(), waiting(&lab).await), (expected, expected));
    }
    let [one, _] = experiments;
    let before = lab.tokens(one).await;
    let own = ExperimentFieldPatterns { values: None, text: Some(vec!["tags.note".to_owned()]) };
    lab.rebuild_some(ReindexTarget::Experiment(one, Some(own)), Some(1)).await;
    assert!(lab.tokens(one).await > before);
    assert_eq!(lab.found(&[one], "tags.note LIKE '%long%'").await, 1);
    lab.rebuild_some(ReindexTarget::Table(None), Some(1)).await;
    assert_eq!(waiting(&lab).await, 0);
    assert_eq!(lab.found(&experiments, "tags.note = 'a long walk'").await, 2);
}

/// A rebuild eventually gives up on runs that cannot be indexed, and continues with other runs.
#[tokio::test]
async fn two_portions_that_nobody_indexes_end_a_rebuild_if_there_are_more() {
    for (at_once, left, marked, is_whole) in [(1, 2, 3, false), (2, 4, 4, true), (3, 4, 4, true)] {
        let lab = TestTable::new().await;
        let experiments = [lab.experiment("one").await, lab.experiment("other").await];
        let index = RunIndex::new(lab.site.table.clone());
        let mut runs = IndexRebuild::of(&index, &experiments);
        runs.max_stall = Duration::from_secs(20);
        let bar = ProgressBar::hidden();
        let limit = WaitingLimit::Fixed(at_once);
        let ended =
            tokio::select! { ended = runs.finish(&limit, &bar) => ended, () = lab.clock.drive() => unreachable!() };
        assert_eq!((bar.position(), runs.unindexed_count, waiting(&lab).await), (0, left, marked), "{at_once} at once");
        match ended {
            Ok(()) => assert!(is_whole && runs.unindexed_example.is_some(), "{at_once} at once"),
            Err(failure) => {
                let text = failure.to_string();
                assert!(!is_whole && text.starts_with("none of 2 runs was indexed in time"), "{text}");
            }
        }
        let time = lab.clock.elapsed();
        assert!((Duration::from_secs(40)..Duration::from_secs(44)).contains(&time), "{time:?}");
    }
}
