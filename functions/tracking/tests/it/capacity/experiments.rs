//! The cost of calls about experiments. These processes have no leases, because deleting an
//! experiment waits until leases have expired. Leases would save requests only in calls about runs.

use embedded_engine::Engine;
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Key, Name, Stage, rows};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::ViewType;
use table::Item;
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use tracking::store::ExperimentSearch;

use super::{TIME, experiment, run, table, without_leases};
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

async fn bench() -> MeteredProcesses<Calls> {
    MeteredProcesses::new(table(&Engine::memory().unwrap()).await, without_leases)
}

/// Creates the experiments that are searched, except for four of them.
async fn others(bench: &MeteredProcesses<Calls>) {
    for number in 0..21 {
        experiment(&bench.store, &format!("other {number}")).await;
    }
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Experiments");
    let bench = bench().await;
    ledger
        .row(
            "create experiment",
            budget([2.0, 7.0, 0.0], [2.0, 7.0, 0.0]),
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
        .row("rename experiment", budget([2.0, 10.0, 1.0], [2.0, 10.0, 1.0]), &bench, ids, async |store, id| {
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
            budget([2.0, 8.0, 1.0], [2.0, 8.0, 1.0]),
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
            budget([2.0, 10.0, 1.0], [2.0, 10.0, 1.0]),
            &bench,
            ids,
            async |store, id| {
                store.experiment_restore(*id).await.unwrap();
            },
        )
        .await;
    others(&bench).await;
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

/// Creates the 25 experiments that [`measure`] searches, and makes the changes to them that its
/// rows measure.
async fn with_25() -> MeteredProcesses<Calls> {
    let bench = bench().await;
    let store = &bench.store;
    for name in ["one", "two"] {
        experiment(store, name).await;
    }
    for name in ["three", "four"] {
        let id = experiment(store, name).await;
        store.experiment_set_tag(id, "team", "research").await.unwrap();
        store.experiment_rename(id, &format!("renamed {id}")).await.unwrap();
        for number in 0..24 {
            run(store, id, TIME + number).await;
        }
        store.experiment_delete(id).await.unwrap();
        store.experiment_restore(id).await.unwrap();
    }
    others(&bench).await;
    bench
}

/// Measures lists of thousands of experiments, and adds the results as further rows of the section.
pub(crate) async fn measure_long_lists(ledger: &mut CostLedger) {
    let bench = &with_25().await;
    add_many(bench, 10_000).await;
    let some = |requests, read_units| budget([requests, 0.0, read_units], [requests, 0.0, read_units]);
    for (call, filter, budget) in [
        (
            "search: a part of a name that matches none of 10,000 experiments, newest first",
            "name ILIKE '%nothing%'",
            some(8.0, 287.0),
        ),
        ("search: a tag that none of 10,000 experiments has", "tags.kind = 'nothing'", some(118.0, 10_312.0)),
    ] {
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                assert!(store.experiment_search(&search(filter)).await.unwrap().experiments.is_empty());
            })
            .await;
    }
    let missing = "tags.`mlflow.experiment.isGateway` IS NULL";
    for (call, filter, order, budget) in [
        (
            "search: the latest 25 of 10,000 experiments",
            "",
            "creation_time DESC",
            budget([2.0, 0.0, 26.0], [2.0, 0.0, 26.0]),
        ),
        (
            "search: the 25 of 10,000 experiments that were updated last, without a tag",
            missing,
            "last_update_time DESC",
            budget([2.0, 0.0, 29.0], [2.0, 0.0, 29.0]),
        ),
    ] {
        let search = ExperimentSearch { order_by: vec![order.to_owned()], max_results: 25, ..search(filter) };
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                let found = store.experiment_search(&search).await.unwrap();
                assert_eq!(found.experiments.len(), 25);
            })
            .await;
    }
}

/// Adds copies of an experiment that the store created.
async fn add_many(bench: &MeteredProcesses<Calls>, count: i64) {
    let name = |number: i64| Name::from(format!("an experiment of a team, number {number}").as_str());
    let name_key = |number| rows::ExperimentName::key(&Name::from("default"), &name(number));
    let model = rows::Experiment::key(&experiment(&bench.store, name(0).0.as_str()).await);
    let items = bench.table().get_many(&[model.clone(), name_key(0)]).await.unwrap();
    let like = |key: &Key, own: Key| {
        let mut item = items[key].clone();
        item.0.extend(Item::new(own).0);
        item
    };
    for portion in (1..count).collect::<Vec<_>>().chunks(1_000) {
        let items = portion.iter().flat_map(|number| {
            let id = ExperimentId::from_number(u64::try_from(1_000_000 + number).unwrap()).unwrap();
            let (stage, time) = (Stage::Active, Descending(TIME + number));
            let listed = like(&name_key(0), name_key(*number))
                .indexed(ExperimentsByStage::key(&stage, &time, &id))
                .indexed(ExperimentsByChange::key(&stage, &time, &id));
            [like(&model, rows::Experiment::key(&id)), listed]
        });
        bench.table().write_many(items.collect(), &[]).await.unwrap();
    }
}
