//! What calls about experiments cost. Deleting one waits for the end of leases, so there are none here; no call but those about runs
//! would be spared a request by one.

use std::time::Duration;

use embedded_engine::Engine;
use ledger::{Bench, Ledger, budget};
use mlflow_api::tracking::ViewType;
use tracking::store::{ExperimentSearch, Store};

use super::{ROOT, TIME, experiment, run, table};
use crate::calls::Calls;

fn search(filter: &str) -> ExperimentSearch {
    ExperimentSearch {
        view: ViewType::ActiveOnly,
        filter: filter.to_owned(),
        order_by: Vec::new(),
        max_results: 20,
        page_token: String::new(),
    }
}

pub(crate) async fn measure(ledger: &mut Ledger) {
    ledger.section("Experiments");
    let process = |table| Calls(Store::with_lease(table, ROOT, Duration::ZERO));
    let bench = Bench::new(table(&Engine::memory().unwrap()).await, process);
    ledger
        .row(
            "create experiment",
            budget([2.0, 6.0, 0.0], [2.0, 6.0, 0.0]),
            &bench,
            ["one", "two"],
            async |store, name| {
                experiment(store, name).await;
            },
        )
        .await;
    let ids = [experiment(&bench.store, "three").await, experiment(&bench.store, "four").await];
    ledger
        .row("get experiment", budget([1.0, 0.0, 1.0], [1.0, 0.0, 1.0]), &bench, ids, async |store, id| {
            store.experiment_get(*id).await.unwrap();
        })
        .await;
    ledger
        .row(
            "get experiment by name",
            budget([2.0, 0.0, 2.0], [2.0, 0.0, 2.0]),
            &bench,
            ["three", "four"],
            async |store, name| {
                store.experiment_get_by_name(name).await.unwrap();
            },
        )
        .await;
    ledger
        .row("set a tag of an experiment", budget([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]), &bench, ids, async |store, id| {
            store.experiment_set_tag(*id, "team", "research").await.unwrap();
        })
        .await;
    ledger
        .row("rename experiment", budget([2.0, 8.0, 1.0], [2.0, 8.0, 1.0]), &bench, ids, async |store, id| {
            store.experiment_rename(*id, &format!("renamed {id}")).await.unwrap();
        })
        .await;
    for number in 0..24 {
        for id in ids {
            run(&bench.store, id, TIME + number).await;
        }
    }
    ledger
        .row(
            "delete an experiment with 24 runs",
            budget([2.0, 6.0, 1.0], [2.0, 6.0, 1.0]),
            &bench,
            ids,
            async |store, id| {
                store.experiment_delete(*id).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "restore an experiment with 24 runs",
            budget([2.0, 6.0, 1.0], [2.0, 6.0, 1.0]),
            &bench,
            ids,
            async |store, id| {
                store.experiment_restore(*id).await.unwrap();
            },
        )
        .await;
    for number in 0..21 {
        experiment(&bench.store, &format!("other {number}")).await;
    }
    for (call, filter, budget) in [
        ("search: 20 experiments", "", budget([2.0, 0.0, 21.0], [2.0, 0.0, 21.0])),
        ("search: 20 of 25 experiments by name", "name LIKE 'other%'", budget([2.0, 0.0, 21.0], [2.0, 0.0, 21.0])),
    ] {
        ledger
            .row(call, budget, &bench, [(), ()], async |store, ()| {
                let found = store.experiment_search(&search(filter)).await.unwrap();
                assert_eq!(found.experiments.len(), 20);
            })
            .await;
    }
}
