//! The cost of searches.

use embedded_engine::Engine;
use registry::store::{NewModel, RegistrySearch, Store};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};

use super::{PROMPT, bench_on, create, model_series, model_with_versions, search, search_models, search_versions};

/// Measures searches among a tenth of the models. Costs that depend on the page must be equal, and
/// costs that depend on the number of models that are read must be a tenth.
pub(super) async fn rows_of_few(ledger: &mut CostLedger) {
    ledger.section("Searches, among 1,000 models");
    let engine = &Engine::memory().unwrap();
    let bench = &bench_on(engine).await;
    model_series::fill(engine, 1_000, async |store, number| {
        model_with_versions(store, &format!("model {number:05}"), 1).await;
    })
    .await;
    let page = budget([3.0, 0.0, 203.0], [3.0, 0.0, 203.0]);
    let nobody = budget([22.0, 0.0, 1_024.0], [22.0, 0.0, 1_024.0]);
    for (call, filter, order_by, found, budget) in [
        ("first page of 100", "", "name", 100, page),
        ("the latest 100", "", "timestamp DESC", 100, page),
        ("the last 100 by name", "", "name DESC", 100, page),
        ("a tag that no model has", "tags.team = 'none'", "name", 0, nobody),
    ] {
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                let page = search_models(store, &search(filter, &[order_by], "")).await;
                assert_eq!(page.registered_models.len(), found, "{call}");
            })
            .await;
    }
    let of_model = budget([2.0, 0.0, 2.0], [2.0, 0.0, 2.0]);
    ledger
        .row("versions of one model", of_model, bench, [(), ()], async |store, ()| {
            assert_eq!(search_versions(store, "name = 'model 00007'").await, 1);
        })
        .await;
    let of_run = budget([21.0, 0.0, 2021.0], [21.0, 0.0, 2021.0]);
    let run = "run_id = '0190a8f0c0de0000000000000000abcd'";
    ledger
        .row("versions of a run that has 1,000", of_run, bench, [(), ()], async |store, ()| {
            assert_eq!(search_versions(store, run).await, 100);
        })
        .await;
    for number in 997..1_000 {
        let name = format!("model {number:05}");
        bench.store.alias_set(&super::named(&bench.store, &name).await, "champion", "1").await.unwrap();
    }
    let with_aliases = budget([22.0, 0.0, 2024.0], [22.0, 0.0, 2024.0]);
    ledger
        .row(
            "versions of a run that has 1,000, three models with aliases",
            with_aliases,
            bench,
            [(), ()],
            async |store, ()| {
                assert_eq!(search_versions(store, run).await, 100);
            },
        )
        .await;
}

pub(super) async fn rows(ledger: &mut CostLedger) {
    ledger.section("Searches");
    let engine = &Engine::memory().unwrap();
    let bench = &bench_on(engine).await;
    model_series::fill(engine, 10_000, async |store, number| {
        model_with_versions(store, &format!("model {number:05}"), 1).await;
    })
    .await;
    let both = [(), ()];
    ledger
        .row(
            "models: first page of 100 of 10,000",
            budget([3.0, 0.0, 203.0], [3.0, 0.0, 203.0]),
            bench,
            both,
            async |store, ()| {
                assert_eq!(search_models(store, &search("", &[], "")).await.registered_models.len(), 100);
            },
        )
        .await;
    let token = search_models(&bench.store, &search("", &[], "")).await.next_page_token.unwrap();
    ledger
        .row("models: second page", budget([3.0, 0.0, 203.0], [3.0, 0.0, 203.0]), bench, both, async |store, ()| {
            let page = search_models(store, &search("", &[], &token)).await;
            assert!(page.registered_models[0].get().contains(r#""name":"model 00100""#));
        })
        .await;
    ledger
        .row(
            "models: by a prefix of the name",
            budget([3.0, 0.0, 21.0], [3.0, 0.0, 21.0]),
            bench,
            both,
            async |store, ()| {
                let page = search_models(store, &search("name LIKE 'model 0123%'", &[], "")).await;
                assert_eq!(page.registered_models.len(), 10);
            },
        )
        .await;
    ledger
        .row("versions: of one model", budget([2.0, 0.0, 2.0], [2.0, 0.0, 2.0]), bench, both, async |store, ()| {
            assert_eq!(search_versions(store, "name = 'model 00007'").await, 1);
        })
        .await;
    ledger
        .row(
            "versions: of a run that has 10,000",
            budget([201.0, 0.0, 20206.0], [201.0, 0.0, 20206.0]),
            bench,
            both,
            async |store, ()| {
                assert_eq!(search_versions(store, "run_id = '0190a8f0c0de0000000000000000abcd'").await, 100);
            },
        )
        .await;
    ledger
        .row(
            "versions: the latest 100 of 10,000 models with one each",
            budget([10102.0, 0.0, 20207.0], [10102.0, 0.0, 20207.0]),
            bench,
            both,
            async |store, ()| {
                assert_eq!(search_versions(store, "").await, 100);
            },
        )
        .await;
    models_in_order(ledger, engine, bench).await;
}

/// Measures searches in orders other than by name, and filters that reject all models.
async fn models_in_order(ledger: &mut CostLedger, engine: &Engine, bench: &MeteredProcesses<Store>) {
    model_series::fill(engine, 2_000, async |store, number| {
        let tags = vec![(PROMPT.to_owned(), "true".to_owned())];
        create(store, &format!("prompt {number:04}"), &NewModel { tags, ..NewModel::default() }).await;
    })
    .await;
    let of_prompts = |more: &str| format!("tags.`{PROMPT}` = 'true'{more}");
    let (nobody, no_prompt) = ("tags.team = 'none'", of_prompts(" AND tags.team = 'none'"));
    for (call, filter, order_by, max_results, found, budget) in [
        (
            "models: the latest 100 of 10,000",
            "",
            "timestamp DESC",
            100,
            100,
            budget([3.0, 0.0, 202.0], [3.0, 0.0, 202.0]),
        ),
        ("models: the last 100 by name", "", "name DESC", 100, 100, budget([3.0, 0.0, 203.0], [3.0, 0.0, 203.0])),
        (
            "models: a tag that none of 10,000 has",
            nobody,
            "name",
            1,
            0,
            budget([125.0, 0.0, 10211.0], [125.0, 0.0, 10211.0]),
        ),
        (
            "models: a tag that none of 10,000 has, newest first",
            nobody,
            "timestamp DESC",
            1,
            0,
            budget([125.0, 0.0, 10172.0], [125.0, 0.0, 10172.0]),
        ),
        (
            "prompts: a tag that none of 2,000 has",
            no_prompt.as_str(),
            "name",
            1,
            0,
            budget([39.0, 0.0, 2045.0], [39.0, 0.0, 2045.0]),
        ),
        (
            "prompts: the latest 100 of 2,000",
            of_prompts("").as_str(),
            "timestamp DESC",
            100,
            100,
            budget([3.0, 0.0, 103.0], [3.0, 0.0, 103.0]),
        ),
    ] {
        let search = RegistrySearch { max_results, ..search(filter, &[order_by], "") };
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                assert_eq!(search_models(store, &search).await.registered_models.len(), found);
            })
            .await;
    }
}
