//! The cost of searches in an experiment with 10,000 runs. The searches are measured twice, before
//! any run is indexed and after all runs are indexed, and the cost of indexing is measured too.
//! Tests that skip slow parts use 1,000 runs instead.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use embedded_engine::Engine;
use mlflow_api::ExperimentId;
use mlflow_api::requests::runs::SearchRuns;
use table::UsageMeter;
use test_site::ledger::{Budget, CostLedger, budget};

use super::filled_table::{self, FilledTable, index};
use super::{experiment, process, search};
use crate::calls::Calls;

const RUNS: i64 = 10_000;
const FEWER_RUNS: i64 = 1_000;

/// A search, its name in the ledger, and the number of runs on its page (0 for any number).
struct Search {
    name: &'static str,
    filter: &'static str,
    order_by: &'static [&'static str],
    found: usize,
    budget: Budget,
}

const SEARCHES: &[Search] = &[
    Search {
        name: "latest 100",
        filter: "",
        order_by: &[],
        found: 100,
        budget: budget([3.0, 0.0, 21.0], [2.0, 0.0, 20.0]),
    },
    Search {
        name: "top 100 by a metric",
        filter: "",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        budget: budget([6.0, 0.0, 110.0], [5.0, 0.0, 109.0]),
    },
    Search {
        name: "a metric filter, ordered by that metric",
        filter: "metrics.metric_3 < 400",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        budget: budget([6.0, 0.0, 109.0], [5.0, 0.0, 108.0]),
    },
    Search {
        name: "a metric filter, ordered by that metric, smallest first",
        filter: "metrics.metric_3 > 400",
        order_by: &["metrics.metric_3 ASC"],
        found: 100,
        budget: budget([6.0, 0.0, 109.0], [5.0, 0.0, 108.0]),
    },
    Search {
        name: "params + tags, one run in 9",
        filter: "params.optimizer = 'optimizer 2' AND tags.team = 'team 1'",
        order_by: &[],
        found: 100,
        budget: budget([10.0, 0.0, 120.0], [8.0, 0.0, 118.0]),
    },
    Search {
        name: "params + tags, one run in 15",
        filter: "params.model = 'model 2' AND tags.team = 'team 1'",
        order_by: &[],
        found: 100,
        budget: budget([13.0, 0.0, 128.0], [11.0, 0.0, 126.0]),
    },
    Search {
        name: "a param and a tag, ordered by a metric, about 70 match",
        filter: "params.rate = '0.042' AND tags.team != 'team 1'",
        order_by: &["metrics.metric_1 DESC"],
        found: 0,
        budget: budget([7.0, 0.0, 104.0], [5.0, 0.0, 102.0]),
    },
    Search {
        name: "run_name LIKE '%special%', 20 match",
        filter: "attributes.run_name LIKE '%special%'",
        order_by: &[],
        found: 20,
        budget: budget([6.0, 0.0, 25.0], [4.0, 0.0, 23.0]),
    },
    Search {
        name: "run_name LIKE '%x%', 20 match",
        filter: "attributes.run_name LIKE '%x%'",
        order_by: &[],
        found: 20,
        budget: budget([11.0, 0.0, 421.0], [9.0, 0.0, 419.0]),
    },
    Search {
        name: "run_name ILIKE 'SPECIAL%' ordered by a metric, 20 match",
        filter: "attributes.run_name ILIKE 'SPECIAL%'",
        order_by: &["metrics.metric_0"],
        found: 20,
        budget: budget([6.0, 0.0, 25.0], [4.0, 0.0, 23.0]),
    },
    Search {
        name: "status = 'FAILED', one run in 50",
        filter: "attributes.status = 'FAILED'",
        order_by: &[],
        found: 100,
        budget: budget([6.0, 0.0, 108.0], [4.0, 0.0, 106.0]),
    },
    Search {
        name: "status = 'FINISHED', the other runs",
        filter: "attributes.status = 'FINISHED'",
        order_by: &[],
        found: 100,
        budget: budget([6.0, 0.0, 109.0], [4.0, 0.0, 107.0]),
    },
    Search {
        name: "a param, ordered by a metric",
        filter: "params.model = 'model 2'",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        budget: budget([11.0, 0.0, 160.0], [9.0, 0.0, 158.0]),
    },
    Search {
        name: "a metric filter that matches one run in 100, newest first",
        filter: "metrics.metric_3 > 990",
        order_by: &[],
        found: 100,
        budget: budget([6.0, 0.0, 109.0], [5.0, 0.0, 108.0]),
    },
    Search {
        name: "ordered by name",
        filter: "",
        order_by: &["run_name"],
        found: 100,
        budget: budget([7.0, 0.0, 113.0], [5.0, 0.0, 111.0]),
    },
    Search {
        name: "ordered by end_time",
        filter: "",
        order_by: &["end_time"],
        found: 100,
        budget: budget([7.0, 0.0, 113.0], [5.0, 0.0, 111.0]),
    },
    Search {
        name: "run_name LIKE '%y-train', 5 match, 1,000 contain the word",
        filter: "attributes.run_name LIKE '%y-train'",
        order_by: &[],
        found: 5,
        budget: budget([10.0, 0.0, 60.0], [8.0, 0.0, 60.0]),
    },
    Search {
        name: "params.model LIKE '%zzz%', none matches",
        filter: "params.model LIKE '%zzz%'",
        order_by: &[],
        found: 0,
        budget: budget([10.0, 0.0, 300.0], [10.0, 0.0, 300.0]),
    },
    Search {
        name: "tags.note ILIKE '%OF 77%', about 110 match",
        filter: "tags.note ILIKE '%OF 77%'",
        order_by: &[],
        found: 100,
        budget: budget([15.0, 0.0, 500.0], [15.0, 0.0, 500.0]),
    },
];

/// The searches that are run while no run is indexed: their indexes in the list of searches, and
/// their budgets.
const UNINDEXED_BUDGETS: &[(usize, Budget)] = &[
    (0, budget([5.0, 0.0, 113.0], [4.0, 0.0, 112.0])),
    (2, budget([11.0, 0.0, 2140.0], [10.0, 0.0, 2139.0])),
    (4, budget([23.0, 0.0, 1119.0], [21.0, 0.0, 1117.0])),
];

/// The searches that are run while 1,000 runs are being logged to: their indexes in the list of
/// searches, and their budgets. Each of these runs takes at most one more request and 8 more read
/// units. In searches that are newest first, this applies only to the runs on the page.
const RUNNING: &[(usize, Budget)] = &[
    (0, budget([105.0, 0.0, 513.0], [104.0, 0.0, 512.0])),
    (1, budget([1017.0, 0.0, 5205.0], [1016.0, 0.0, 5204.0])),
    (2, budget([1017.0, 0.0, 5204.0], [1016.0, 0.0, 5203.0])),
    (4, budget([1021.0, 0.0, 5215.0], [1019.0, 0.0, 5213.0])),
];
const RUNNING_PAGES: [Budget; 2] = [budget([15.0, 0.0, 59.0], [14.0, 0.0, 58.0]); 2];

/// The searches whose fiftieth page costs as much as the first one: their indexes in the list of
/// searches, and the budgets of both pages.
const PAGES: &[(usize, [Budget; 2])] = &[
    (0, [budget([3.0, 0.0, 5.0], [2.0, 0.0, 4.0]), budget([3.0, 0.0, 5.0], [2.0, 0.0, 4.0])]),
    (1, [budget([5.0, 0.0, 20.0], [4.0, 0.0, 19.0]), budget([6.0, 0.0, 21.0], [5.0, 0.0, 20.0])]),
    (4, [budget([6.0, 0.0, 20.0], [4.0, 0.0, 18.0]), budget([6.0, 0.0, 20.0], [4.0, 0.0, 18.0])]),
];

impl Search {
    fn of(&self, experiment: ExperimentId) -> SearchRuns {
        search(experiment, self.filter, self.order_by)
    }

    async fn run(&self, store: &Calls, experiment: ExperimentId) {
        let page = store.run_search(&self.of(experiment)).await.unwrap();
        assert!(self.found == 0 || page.runs.len() == self.found, "{}: {}", self.name, page.runs.len());
    }

    async fn measure(&self, ledger: &mut CostLedger, budget: Budget, filled: &FilledTable, experiment: ExperimentId) {
        let on = [(), ()];
        ledger.row(self.name, budget, &filled.requests, on, async |store, ()| self.run(store, experiment).await).await;
    }

    /// Measures a search in an experiment with few runs, where the page may contain any number of
    /// them.
    async fn measure_few(
        &self,
        ledger: &mut CostLedger,
        among: &str,
        budget: Budget,
        filled: &FilledTable,
        experiment: ExperimentId,
    ) {
        let (call, wanted) = (format!("{among}: {}", self.name), self.of(experiment));
        ledger
            .row(&call, budget, &filled.requests, [(), ()], async |store, ()| {
                store.run_search(&wanted).await.unwrap();
            })
            .await;
    }
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Searches and the indexer, in an experiment with 10,000 runs, none of them indexed");
    let filled = FilledTable::on(&Engine::memory().unwrap()).await;
    // Another experiment in the table must not affect the costs.
    let other = experiment(&filled.requests.store, "other").await;
    let runs =
        filled.runs(0..500, move |store, number| async move { filled_table::run(&store, other, number).await }).await;
    index(&filled.indexing.store, other, &runs).await;
    many_experiments(ledger, &filled).await;
    let large = experiment(&filled.requests.store, "large").await;
    let runs =
        filled.runs(0..RUNS, move |store, number| async move { filled_table::run(&store, large, number).await }).await;
    for (place, budget) in UNINDEXED_BUDGETS {
        SEARCHES[*place].measure(ledger, *budget, &filled, large).await;
    }
    let (first, second) = runs.split_at(runs.len() / 2);
    let on = [first, second].map(|half| half.chunks(1_000).collect::<Vec<_>>());
    let call = "the indexer catches up, per run, in stream batches of 1,000 runs (mean over 5,000)";
    ledger
        .mean(
            call,
            budget([3.49, 41.55, 2.02], [3.49, 41.55, 2.02]),
            &filled.indexing,
            on,
            5_000,
            async |indexer, runs, number| {
                if number % 1_000 == 0 {
                    index(indexer, large, runs[usize::try_from(number / 1_000).unwrap()]).await;
                }
            },
        )
        .await;

    ledger.section("Searches, in an experiment with 10,000 runs of 10 metrics, 5 params and 3 tags");
    for search in SEARCHES {
        search.measure(ledger, search.budget, &filled, large).await;
    }
    for (place, budgets) in PAGES {
        pages(ledger, &SEARCHES[*place], *budgets, &filled, large).await;
    }
    running(ledger, &filled, large).await;
}

/// The searches that cost more in an experiment with few runs, because fewer runs match before the
/// page is full: their indexes in the list of searches, and their budgets.
const FEW_BUDGETS: &[(usize, Budget)] = &[(12, budget([9.0, 0.0, 209.0], [7.0, 0.0, 207.0]))];
/// Budget of the search for the latest runs, if all runs that are being logged to are on the page.
const FEW_LATEST: Budget = budget([106.0, 0.0, 560.0], [105.0, 0.0, 559.0]);

/// Creates an experiment with a tenth of the runs. None of them is indexed.
async fn few() -> (FilledTable, ExperimentId, Vec<String>) {
    let filled = FilledTable::on(&Engine::memory().unwrap()).await;
    let small = experiment(&filled.requests.store, "small").await;
    let make = move |store, number| async move { filled_table::run(&store, small, number).await };
    let runs = filled.runs(0..FEWER_RUNS, make).await;
    (filled, small, runs)
}

/// Measures searches with a tenth of the runs, and thus a tenth of the matches. Most searches cost
/// no more than with all runs.
pub(crate) async fn measure_few(ledger: &mut CostLedger) {
    ledger.section("Searches and the indexer, in an experiment with 1,000 such runs");
    let (filled, small, runs) = few().await;
    let (first, second) = runs.split_at(runs.len() / 2);
    let call = "the indexer catches up, per run, in a stream batch of 500 runs (mean over 500)";
    let most = budget([3.49, 41.55, 2.02], [3.49, 41.55, 2.02]);
    ledger
        .mean(call, most, &filled.indexing, [first, second], 500, async |indexer, runs, number| {
            if number == 0 {
                index(indexer, small, runs).await;
            }
        })
        .await;
    for (place, search) in SEARCHES.iter().enumerate() {
        let own = FEW_BUDGETS.iter().find(|(of, _)| *of == place);
        let budget = own.map_or(search.budget, |(_, budget)| *budget);
        search.measure_few(ledger, "of 1,000 runs", budget, &filled, small).await;
    }
}

/// Measures searches with a hundred additional runs that are being logged to. Each of them has the
/// points of a minute in its journal.
pub(crate) async fn measure_few_running(ledger: &mut CostLedger) {
    let (filled, small, runs) = few().await;
    for half in runs.chunks(runs.len() / 2) {
        index(&filled.indexing.store, small, half).await;
    }
    let make = move |store, number| async move { filled_table::running_run(&store, small, number).await };
    let runs = filled.runs(FEWER_RUNS..FEWER_RUNS + FEWER_RUNS / 10, make).await;
    index(&filled.indexing.store, small, &runs).await;
    filled.log_a_minute(small, &runs).await;
    for (place, budget) in RUNNING {
        let budget = if *place == 0 { FEW_LATEST } else { *budget };
        SEARCHES[*place].measure_few(ledger, "with 100 more runs in progress", budget, &filled, small).await;
    }
}

/// Measures a search for a part of a name over many experiments. There are so many that the search
/// does not read all lists of each experiment.
async fn many_experiments(ledger: &mut CostLedger, filled: &FilledTable) {
    let mut ids = Vec::new();
    for number in 0..200 {
        ids.push(experiment(&filled.requests.store, &format!("one of many {number}")).await.to_string());
    }
    let filter = "attributes.run_name LIKE '%special-ox%'".to_owned();
    let wanted = SearchRuns { experiment_ids: ids, filter, ..search(ExperimentId::DEFAULT, "", &[]) };
    let call = "run_name LIKE '%special-ox%' over 200 experiments";
    let most = budget([603.0, 0.0, 801.0], [600.0, 0.0, 600.0]);
    ledger
        .row(call, most, &filled.requests, [(), ()], async |store, ()| {
            assert!(store.run_search(&wanted).await.unwrap().runs.is_empty());
        })
        .await;
}

/// Measures searches with runs that are being logged to, so that the latest runs of the experiment
/// have all changed since they were indexed.
async fn running(ledger: &mut CostLedger, filled: &FilledTable, large: ExperimentId) {
    ledger.section(
        "Searches, in the same experiment with 1,000 more runs in progress, each with a minute of points in its journal",
    );
    let make = move |store, number| async move { filled_table::running_run(&store, large, number).await };
    let runs = filled.runs(RUNS..RUNS + 1_000, make).await;
    index(&filled.indexing.store, large, &runs).await;
    filled.log_a_minute(large, &runs).await;
    for (place, budget) in RUNNING {
        SEARCHES[*place].measure(ledger, *budget, filled, large).await;
    }
    pages(ledger, &SEARCHES[0], RUNNING_PAGES, filled, large).await;
}

/// Measures the first and the fiftieth page of searches with ten runs per page.
async fn pages(
    ledger: &mut CostLedger,
    search: &Search,
    budgets: [Budget; 2],
    filled: &FilledTable,
    experiment: ExperimentId,
) {
    let wanted = RefCell::new(SearchRuns { max_results: Some(10), ..search.of(experiment) });
    for (page, budget) in [1, 50].into_iter().zip(budgets) {
        let call = format!("{}, pages of 10: page {page}", search.name);
        ledger
            .row(&call, budget, &filled.requests, [(), ()], async |store, ()| {
                let wanted = wanted.borrow().clone();
                assert_eq!(store.run_search(&wanted).await.unwrap().runs.len(), 10);
            })
            .await;
        for _ in page..50 {
            let asked = wanted.borrow().clone();
            let answer = filled.requests.store.run_search(&asked).await.unwrap();
            wanted.borrow_mut().page_token = answer.next_page_token.unwrap();
        }
    }
}

/// Checks that searches for the latest runs and for the top runs by a metric cost the same with
/// 10,000 and with 100,000 runs.
pub(crate) async fn at_scale() {
    // The engine uses files, because a database in memory is limited to a gigabyte. If there is a
    // file system in memory, it is used to avoid waiting for a disk.
    let in_memory = Path::new("/dev/shm");
    let directory = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() }.unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let filled = FilledTable::on(&engine).await;
    let large = experiment(&filled.requests.store, "large").await;
    let meter = UsageMeter::default();
    let metered = process(filled.requests.table().metered(meter.clone()));
    let mut costs = Vec::new();
    let mut count = 0;
    for runs in [RUNS, 10 * RUNS] {
        while count < runs {
            let numbers = count..count + 1_000;
            let make = move |store, number| async move { filled_table::small_run(&store, large, number).await };
            let ids = filled.runs(numbers, make).await;
            index(&filled.indexing.store, large, &ids).await;
            engine.trim_stream(Duration::ZERO).await.unwrap();
            count += 1_000;
        }
        let mut cost = Vec::new();
        for search in &SEARCHES[..2] {
            search.run(&metered, large).await;
            meter.take();
            search.run(&metered, large).await;
            let usage = meter.take();
            cost.push((search.name, usage.requests, usage.read_units));
        }
        costs.push(cost);
    }
    assert_eq!(costs[0], costs[1], "10,000 runs, 100,000 runs");
}
