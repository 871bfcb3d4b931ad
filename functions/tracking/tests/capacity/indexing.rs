//! What the indexer does for a run.

use embedded_engine::Engine;
use fts_indexer::Indexer;
use ledger::{Ledger, budget};
use mlflow_api::tracking::RunStatus;
use tracking::store::{Batch, LoggedMetric, NewRun, RunChange};

use super::filled::{Filled, index};
use super::{TIME, experiment};

fn ten_metrics(step: i64) -> Batch {
    let metrics = (0..10).map(|number| LoggedMetric {
        key: format!("metric_{number}"),
        value: f64::from(i32::try_from(step).unwrap()),
        timestamp: TIME + step,
        step,
        model: None,
    });
    Batch { metrics: metrics.collect(), ..Batch::default() }
}

pub(crate) async fn measure(ledger: &mut Ledger) {
    ledger.section("The indexer, beside the requests");
    let Filled { requests, indexing } = Filled::on(&Engine::memory().unwrap()).await;
    let experiment = experiment(&requests.store, "one").await;
    let tags = [("mlflow.user", "somebody"), ("mlflow.source.name", "train.py"), ("mlflow.source.type", "LOCAL")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let new = NewRun { name: "serious-newt-353".to_owned(), start_time: TIME, tags, ..NewRun::default() };
    let runs = requests.two(async |store| store.run_create(experiment, &new).await.unwrap().info.run_id).await;
    let store = &requests.store;
    // Indexes one of the runs.
    let act = async |indexer: &Indexer, run: &&String| index(indexer, experiment, std::slice::from_ref(*run)).await;
    let runs = runs.each_ref();
    ledger.row("a new run, 4 tags", budget([6.0, 24.0, 4.0], [6.0, 24.0, 4.0]), &indexing, runs, act).await;
    for run in runs {
        store.run_log_batch(run, &ten_metrics(0)).await.unwrap();
    }
    ledger.row("its first 10 metrics", budget([6.0, 13.0, 4.0], [6.0, 13.0, 4.0]), &indexing, runs, act).await;
    for step in 1..100 {
        for run in runs {
            store.run_log_batch(run, &ten_metrics(step)).await.unwrap();
        }
    }
    let call = "100 further values of each, in one batch of the stream";
    ledger.row(call, budget([7.0, 24.0, 4.0], [7.0, 24.0, 4.0]), &indexing, runs, act).await;
    ledger.row("the same batch again", budget([3.0, 0.0, 4.0], [3.0, 0.0, 4.0]), &indexing, runs, act).await;
    for run in runs {
        let params = (0..5).map(|number| (format!("param_{number}"), "value".to_owned())).collect();
        store.run_log_batch(run, &Batch { params, ..Batch::default() }).await.unwrap();
    }
    ledger.row("5 params", budget([6.0, 9.0, 4.0], [6.0, 9.0, 4.0]), &indexing, runs, act).await;
    for run in runs {
        let change = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME + 9_000), name: None };
        store.run_update(run, &change).await.unwrap();
    }
    ledger.row("its end", budget([5.0, 5.0, 4.0], [5.0, 5.0, 4.0]), &indexing, runs, act).await;
}
