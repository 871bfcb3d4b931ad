//! Random searches over random runs must find exactly the runs that a plain scan of all runs finds.
//! This must not depend on the indexer's state: it may have indexed everything, nothing, only the
//! earlier changes, or everything twice.

use entities::SearchableRun;
use entities::indexed_fields_setting::{ExperimentFieldPatterns, ExperimentFieldsSetting};
use mlflow_api::ExperimentId;
use mlflow_api::inputs::{CONTEXT_TAG, Dataset, DatasetInput};
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::{KeyValue, Run, RunStatus, ViewType};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use search::parse_run_search;
use tracking::store::{LogBatchData, LoggedMetric, NewExperiment, NewRun, RunChange, SearchBounds, Store};

use crate::indexed_site::{changes, index, index_records};
use crate::server::{LEASE, ROOT, Server, Site};

const TIME: i64 = 1_700_000_000_000;
const METRICS: [&str; 4] = ["acc", "loss", "rare", "val loss"];
const PARAMS: [&str; 4] = ["model", "lr", "long", "rare"];
const TAGS: [&str; 4] = ["team", "mlflow.parentRunId", "mlflow.user", "note"];
const DATASETS: [&str; 4] = ["iris", "iris #2", "Iris", "wine"];
const STATUSES: [RunStatus; 4] = [RunStatus::Running, RunStatus::Finished, RunStatus::Failed, RunStatus::Killed];
const NAMES: [&str; 8] =
    ["zebra-9", "Zebra-9", "serious-newt-353", "x", "", "train run é#1", "TRAIN_run 100%", "newts"];

struct Corpus {
    site: Site,
    random: StdRng,
    experiments: Vec<ExperimentId>,
    runs: Vec<String>,
}

fn long_value(random: &mut StdRng) -> String {
    format!("{}{}", "shared beginning ".repeat(20), random.random_range(0..4))
}

impl Corpus {
    async fn new(seed: u64, experiments: usize, runs: usize) -> Self {
        let site = Site::new().await;
        let mut ids = Vec::new();
        for number in 0..experiments {
            let new = NewExperiment { name: format!("experiment {number}"), ..NewExperiment::default() };
            ids.push(site.server.store.experiment_create(&new).await.unwrap());
        }
        if experiments > 1 {
            // The second experiment has indexed fields in addition to those of the server, and
            // searches cover both experiments.
            let own = ExperimentFieldPatterns {
                values: Some(vec!["tags.note".to_owned()]),
                text: Some(vec!["params.*".to_owned()]),
            };
            let own = ExperimentFieldsSetting { indexed: own.clone(), searched: own };
            own.write_after(&ExperimentFieldsSetting::default(), &site.table, ids[0]).await.unwrap();
        }
        let mut corpus = Self { site, random: StdRng::seed_from_u64(seed), experiments: ids, runs: Vec::new() };
        for _ in 0..runs {
            corpus.create().await;
        }
        corpus
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among.choose(&mut self.random).unwrap()
    }

    fn value(&mut self, of: &str) -> String {
        match of {
            "long" => long_value(&mut self.random),
            "lr" => format!("0.{}", self.random.random_range(0..50)),
            _ => self.pick(&["a", "b", "B", "ab", "", "x y", "50%", "#1"]).to_owned(),
        }
    }

    fn metric_value(&mut self) -> f64 {
        match self.random.random_range(0..12) {
            0 => f64::NAN,
            1 => 0.0,
            2 => -0.0,
            3 => f64::INFINITY,
            4 => -1.5,
            5..=7 => 1.0,
            _ => f64::from(self.random.random_range(0..1_000)) / 100.0,
        }
    }

    async fn create(&mut self) {
        let experiment = *self.experiments.choose(&mut self.random).unwrap();
        let new = NewRun {
            user_id: self.pick(&["ada", "bob"]).to_owned(),
            name: self.pick(&NAMES).to_owned(),
            start_time: TIME + self.random.random_range(0..200),
            tags: Vec::new(),
        };
        // The experiment may be deleted, in which case creating a run fails.
        let Ok(run) = self.site.server.store.run_create(experiment, &new).await else { return };
        let run = run.info.run_id;
        self.runs.push(run.clone());
        self.log(&run, 6).await;
        if self.random.random_range(0..2) == 0 {
            self.set_status(&run).await;
        }
        if self.random.random_range(0..10) == 0 {
            self.site.server.store.run_delete(&run).await.unwrap();
        }
    }

    async fn log(&mut self, run: &str, most: usize) {
        let mut batch = LogBatchData::default();
        for _ in 0..self.random.random_range(0..=most) {
            let key = self.pick(&METRICS).to_owned();
            let (value, step) = (self.metric_value(), self.random.random_range(0..5));
            if key != "rare" || self.random.random_range(0..20) == 0 {
                batch.metrics.push(LoggedMetric { key, value, timestamp: TIME + step, step, model: None });
            }
        }
        for key in PARAMS {
            let is_there = self.random.random_range(0..if key == "rare" { 30 } else { 2 }) == 0;
            let already = self.site.server.store.run_get(run).await.unwrap();
            if is_there && !already.data.params.iter().any(|param| param.key == key) {
                batch.params.push((key.to_owned(), self.value(key)));
            }
        }
        for key in TAGS {
            if self.random.random_range(0..3) == 0 {
                batch.tags.push((key.to_owned(), self.value(key)));
            }
        }
        // The result is ignored, because the update fails if the run is deleted.
        let _ = self.site.server.store.run_log_batch(run, &batch).await;
        if self.random.random_range(0..4) == 0 {
            let inputs = [self.dataset(), self.dataset()];
            let _ = self.site.server.store.run_log_inputs(run, &inputs, &[]).await;
        }
    }

    fn dataset(&mut self) -> DatasetInput {
        let [name, digest] = [self.pick(&DATASETS), self.pick(&["d1", "d2"])].map(str::to_owned);
        let context = self.pick(&["", "train", "eval"]).to_owned();
        let tags = if context.is_empty() {
            Vec::new()
        } else {
            vec![KeyValue { key: CONTEXT_TAG.to_owned(), value: context }]
        };
        DatasetInput { tags, dataset: Dataset { name, digest, source: "s".to_owned(), ..Dataset::default() } }
    }

    async fn set_status(&mut self, run: &str) {
        let status = *STATUSES.choose(&mut self.random).unwrap();
        let end_time = Some(TIME + self.random.random_range(0..50));
        let change = RunChange { status: Some(status), end_time, name: None };
        let _ = self.site.server.store.run_update(run, &change).await;
    }

    async fn change(&mut self) {
        let run = self.runs.choose(&mut self.random).unwrap().clone();
        let store = self.site.server.store.clone();
        match self.random.random_range(0..8) {
            0 => self.create().await,
            1 => self.set_status(&run).await,
            2 => drop(store.run_delete(&run).await),
            3 => drop(store.run_restore(&run).await),
            4 => {
                let name = Some(self.pick(&NAMES).to_owned());
                drop(store.run_update(&run, &RunChange { name, ..RunChange::default() }).await);
            }
            5 => {
                let tag = self.pick(&["team", "mlflow.runName"]);
                drop(store.run_delete_tag(&run, tag).await);
            }
            _ => self.log(&run, 3).await,
        }
    }

    fn filter(&mut self) -> String {
        let count = self.random.random_range(0..4);
        let predicates: Vec<_> = (0..count).map(|_| self.predicate()).collect();
        predicates.join(" AND ")
    }

    fn predicate(&mut self) -> String {
        let comparator = self.pick(&["=", "!=", "LIKE", "ILIKE"]);
        let text = match self.random.random_range(0..3) {
            0 => self.pick(&[
                "%ebra%", "zebra-9", "ZEBRA%", "%newt%", "%-newt-%", "x", "%x%", "%9", "_ebra-9", "%", "a%", "%#1",
            ]),
            1 => self.pick(&[
                "%serious%",
                "train%",
                "%n_run%",
                "%b",
                "b",
                "ab",
                "",
                "%00\\%",
                "serious-%-353",
                "%é%",
                "shared%",
            ]),
            _ => self.pick(&["a", "b", "B", "ab", "x y", "50%", "0.1%", "0.25", "%2", "zebra-9", "Zebra-9", "newts"]),
        };
        match self.random.random_range(0..13) {
            12 => {
                let comparator = self.pick(&["=", "=", "!=", "LIKE", "ILIKE"]);
                match self.random.random_range(0..3) {
                    0 => format!("dataset.digest {comparator} '{}'", self.pick(&["d1", "d2", "d%"])),
                    1 => format!("dataset.context {comparator} '{}'", self.pick(&["train", "eval", "%a%"])),
                    _ => {
                        format!("dataset.name {comparator} '{}'", self.pick(&["iris", "Iris", "iris%", "%e%", "none"]))
                    }
                }
            }
            0..=2 => {
                let comparator = self.pick(&["=", "!=", "<", "<=", ">", ">="]);
                let number = self.pick(&["1.0", "0", "-1.5", "5", "9.9", "1e400", "-1e400", "0.5"]);
                format!("metrics.`{}` {comparator} {number}", self.pick(&METRICS))
            }
            3 | 4 => format!("params.{} {comparator} '{text}'", self.pick(&PARAMS)),
            5 => format!("tags.`{}` {comparator} '{text}'", self.pick(&TAGS)),
            6 => {
                let key = self.pick(&["params.rare", "params.model", "tags.team", "tags.`mlflow.runName`"]);
                format!("{key} {}", self.pick(&["IS NULL", "IS NOT NULL"]))
            }
            7 | 8 => format!("attributes.run_name {comparator} '{text}'"),
            9 => {
                let comparator = self.pick(&["=", "!=", "LIKE", "ILIKE"]);
                format!("status {comparator} '{}'", self.pick(&["FINISHED", "FAILED", "RUNNING", "F%", "finished"]))
            }
            10 => {
                let comparator = self.pick(&["=", "!=", "<", "<=", ">", ">="]);
                let number = TIME + self.random.random_range(-10..210);
                format!("{} {comparator} {number}", self.pick(&["start_time", "end_time"]))
            }
            _ => {
                let run = self.runs.choose(&mut self.random).unwrap();
                format!("run_id IN ('{run}', 'none')")
            }
        }
    }

    fn order_by(&mut self) -> Vec<String> {
        let mut keys = vec![
            "metrics.acc",
            "metrics.loss",
            "metrics.rare",
            "params.model",
            "params.long",
            "params.lr",
            "tags.team",
            "tags.`mlflow.user`",
            "run_name",
            "status",
            "start_time",
            "end_time",
            "run_id",
            "user_id",
        ];
        let count = [0, 1, 1, 2].choose(&mut self.random).copied().unwrap();
        let clauses = (0..count).map(|_| {
            let key = keys.swap_remove(self.random.random_range(0..keys.len()));
            format!("{key} {}", [" ASC", "DESC"].choose(&mut self.random).unwrap())
        });
        clauses.collect()
    }

    fn search(&mut self) -> SearchRuns {
        let count = self.random.random_range(1..=self.experiments.len());
        let view = [ViewType::ActiveOnly, ViewType::ActiveOnly, ViewType::All, ViewType::DeletedOnly];
        SearchRuns {
            experiment_ids: self.experiments.sample(&mut self.random, count).map(ToString::to_string).collect(),
            filter: self.filter(),
            run_view_type: Some(*view.choose(&mut self.random).unwrap()),
            max_results: Some(*[3, 20, 100, 1_000].choose(&mut self.random).unwrap()),
            order_by: self.order_by(),
            page_token: String::new(),
        }
    }

    async fn all_runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for run in &self.runs {
            runs.push(self.site.server.store.run_get(run).await.unwrap());
        }
        runs
    }

    /// Searches with random filters and orders, page by page, and compares the results with a plain
    /// scan of `runs`.
    async fn compare(&mut self, searches: usize) {
        let runs = self.all_runs().await;
        for _ in 0..searches {
            let mut search = self.search();
            let (filter, order) = parse_run_search(&search.filter, &search.order_by).unwrap();
            let passes = |run: &&Run| {
                search.experiment_ids.contains(&run.info.experiment_id)
                    && search.run_view_type.unwrap().shows(run.info.lifecycle_stage)
                    && filter.matches(&SearchableRun(run))
            };
            let mut expected: Vec<_> = runs.iter().filter(passes).collect();
            expected.sort_by_cached_key(|run| order.key(&SearchableRun(run)));
            let expected: Vec<_> = expected.iter().map(|run| serde_json::to_value(run).unwrap()).collect();
            let mut found = Vec::new();
            for page in 0.. {
                let answer = self.site.server.store.run_search(&search).await.unwrap();
                assert!(answer.runs.len() <= usize::try_from(search.max_results.unwrap()).unwrap());
                found.extend(answer.runs.iter().map(|run| serde_json::to_value(run).unwrap()));
                let Some(token) = answer.next_page_token else { break };
                assert!(page < 1_000 && !answer.runs.is_empty(), "an empty page, or too many pages: {search:?}");
                search.page_token = token;
            }
            let ids = |runs: &[serde_json::Value]| {
                runs.iter().map(|run| run["info"]["run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(ids(&found), ids(&expected), "{search:?}");
            assert_eq!(found, expected, "{search:?}");
        }
    }
}

/// Returns the number of searches per test, if `RANDOM_SEARCHES` is set.
fn many() -> Option<usize> {
    std::env::var("RANDOM_SEARCHES").ok().and_then(|count| count.parse().ok())
}

/// Returns the number of searches per test. `RANDOM_SEARCHES` raises it, as in `make test-slow`.
fn searches() -> usize {
    many().unwrap_or(12)
}

/// Returns the number of runs, or of rounds, of a test. It is `most` if `RANDOM_SEARCHES` is set,
/// and a third of it otherwise.
fn size(most: usize) -> usize {
    if many().is_some() { most } else { most / 3 }
}

#[tokio::test]
async fn with_everything_indexed() {
    let mut corpus = Corpus::new(1, 2, size(400)).await;
    index(&corpus.site).await;
    assert!(changes(&corpus.site).await.is_empty(), "no marks are left");
    corpus.compare(searches()).await;
}

#[tokio::test]
async fn with_the_indexer_stopped() {
    Corpus::new(2, 2, size(300)).await.compare(searches()).await;
}

#[tokio::test]
async fn with_the_indexer_behind() {
    let mut corpus = Corpus::new(3, 2, size(350)).await;
    index(&corpus.site).await;
    for _ in 0..size(8) {
        for _ in 0..30 {
            corpus.change().await;
        }
        corpus.compare(searches() / 4).await;
        // A random half of the records is delivered, in random order.
        let mut some = changes(&corpus.site).await;
        some.retain(|_| corpus.random.random());
        some.reverse();
        index_records(&corpus.site, some).await;
        corpus.compare(searches() / 4).await;
    }
}

/// If an experiment has many marked runs, a search that is newest first reads only the marks of its
/// candidates.
#[tokio::test]
#[ignore = "takes nine seconds of a core; part of `make test-slow`"]
async fn with_more_marks_than_are_read_beforehand() {
    let mut corpus = Corpus::new(6, 1, 400).await;
    index(&corpus.site).await;
    let mut runs = corpus.runs.clone();
    runs.retain(|_| corpus.random.random_range(0..4) > 0);
    for run in runs {
        corpus.log(&run, 3).await;
    }
    let marks = changes(&corpus.site).await.len();
    assert!(marks > 256, "{marks}");
    corpus.compare(searches() / 3).await;
}

/// In a long experiment, a search that is newest first reads the newest runs. If they do not fill
/// the page, it reads the whole experiment.
#[tokio::test]
async fn with_a_long_experiment_that_is_not_indexed() {
    let mut corpus = Corpus::new(7, 2, size(240)).await;
    for newest in [10, 40] {
        let store = Store::with_lease(corpus.site.table.clone(), ROOT, LEASE);
        let store = store.with_search_bounds(SearchBounds { marks: 20, newest });
        corpus.site.server = Server::with(&store);
        corpus.compare(searches()).await;
    }
    index(&corpus.site).await;
    // All runs of the first experiment change, except for a few.
    let experiment = corpus.experiments[0].to_string();
    for run in corpus.all_runs().await.into_iter().filter(|run| run.info.experiment_id == experiment).skip(9) {
        corpus.log(&run.info.run_id, 3).await;
    }
    corpus.compare(searches()).await;
}

#[tokio::test]
async fn with_batches_that_come_twice_and_late() {
    let mut corpus = Corpus::new(4, 1, size(250)).await;
    let first = changes(&corpus.site).await;
    index_records(&corpus.site, first.clone()).await;
    for _ in 0..60 {
        corpus.change().await;
    }
    let second = changes(&corpus.site).await;
    index_records(&corpus.site, second.clone()).await;
    let before = corpus.site.dump().await;
    index_records(&corpus.site, first).await;
    index_records(&corpus.site, second).await;
    assert_eq!(corpus.site.dump().await, before, "there was nothing left to do");
    corpus.compare(searches()).await;
}

#[tokio::test]
async fn with_an_experiment_that_was_deleted_and_restored() {
    let mut corpus = Corpus::new(5, 2, size(250)).await;
    index(&corpus.site).await;
    let experiment = corpus.experiments[0];
    corpus.site.server.store.experiment_delete(experiment).await.unwrap();
    corpus.compare(searches() / 2).await;
    for _ in 0..20 {
        corpus.change().await;
    }
    corpus.compare(searches() / 4).await;
    corpus.site.server.store.experiment_restore(experiment).await.unwrap();
    for _ in 0..20 {
        corpus.change().await;
    }
    index(&corpus.site).await;
    corpus.compare(searches() / 2).await;
}
