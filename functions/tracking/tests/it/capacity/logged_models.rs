//! The cost of calls about logged models.

use crate::calls::{Calls, ModelPoint};
use mlflow_api::ExperimentId;
use mlflow_api::logged_models::ModelStatus;
use mlflow_api::requests::logged_models::{ModelOrderClause, SearchLoggedModels};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use tracking::store::NewLoggedModel;

use super::{TIME, params, with_experiment};

/// Returns a model like those that autologging creates.
fn new_model(number: usize) -> NewLoggedModel {
    NewLoggedModel {
        name: format!("model-{number}"),
        source_run_id: format!("{:032x}", number % 20),
        params: params(0..20, "value"),
        tags: params(0..3, "tag"),
        ..NewLoggedModel::default()
    }
}

async fn create(store: &Calls, experiment: ExperimentId, number: usize) -> String {
    store.logged_model_create(experiment, &new_model(number)).await.unwrap().info.model_id
}

fn point(model: &str, key: &str, step: i64) -> ModelPoint {
    ModelPoint {
        model: model.to_owned(),
        key: key.to_owned(),
        value: f64::from(i32::try_from(step).unwrap()) / 7.0,
        timestamp: TIME + step * 1_000,
        step,
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        dataset_name: "train".to_owned(),
        dataset_digest: "2dd2d3a4".to_owned(),
    }
}

fn search(experiment: ExperimentId, filter: &str, order_by: &[&str]) -> SearchLoggedModels {
    let clause = |field: &&str| ModelOrderClause {
        field_name: (*field).to_owned(),
        ascending: Some(false),
        dataset_name: String::new(),
        dataset_digest: String::new(),
    };
    SearchLoggedModels {
        experiment_ids: vec![experiment.to_string()],
        filter: filter.to_owned(),
        order_by: order_by.iter().map(clause).collect(),
        max_results: Some(100),
        datasets: Vec::new(),
        page_token: String::new(),
    }
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Logged models");
    let (bench, experiment) = with_experiment().await;
    let call = "create a logged model with 20 params, and finalize it";
    ledger
        .row(call, budget([4.0, 4.0, 2.0], [3.0, 4.0, 1.0]), &bench, [0, 20], async |store, number| {
            let model = create(store, experiment, *number).await;
            store.logged_model_finalize(&model, ModelStatus::Ready).await.unwrap();
        })
        .await;
    // Models with many points are in a separate experiment, so that searches do not read these
    // points.
    let other = super::experiment(&bench.store, "other").await;
    let models = bench.two(async |store| create(store, other, 0).await).await;
    let models = models.each_ref();
    ledger
        .row("set a tag", budget([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]), &bench, models, async |store, model| {
            store.logged_model_set_tags(model, vec![("stage".to_owned(), "test".to_owned())]).await.unwrap();
        })
        .await;
    ledger
        .row("log ten params", budget([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]), &bench, models, async |store, model| {
            store.logged_model_log_params(model, params(20..30, "value")).await.unwrap();
        })
        .await;
    let call = "log one metric for it (mean over 200 calls), in addition to the run";
    ledger
        .mean(call, budget([1.01, 4.04, 0.0], [1.01, 4.04, 0.0]), &bench, models, 200, async |store, model, step| {
            store.logged_model_log_metrics(&[point(model, "loss", step.into())]).await.unwrap();
        })
        .await;
    ledger
        .row(
            "log 1,000 points for it, in addition to the run",
            budget([2.0, 11.0, 0.0], [2.0, 11.0, 0.0]),
            &bench,
            models,
            async |store, model| {
                let points: Vec<_> = (0..1_000).map(|step| point(model, "bulk", step)).collect();
                store.logged_model_log_metrics(&points).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "get it, with 1,200 points",
            budget([2.0, 0.0, 5.0], [2.0, 0.0, 5.0]),
            &bench,
            models,
            async |store, model| {
                assert_eq!(store.logged_model_get(model, false).await.unwrap().data.metrics.len(), 1_200);
            },
        )
        .await;

    among_many(ledger, &bench, experiment).await;
}

async fn among_many(ledger: &mut CostLedger, bench: &MeteredProcesses<Calls>, experiment: ExperimentId) {
    let mut latest = Vec::new();
    // Once the latest two models are deleted, 1,000 models are left, 50 for each run.
    for number in 2..1_002 {
        let model = create(&bench.store, experiment, number).await;
        let step = i64::try_from(number).unwrap();
        let points = ["accuracy", "f1", "loss"].map(|key| point(&model, key, step));
        bench.store.logged_model_log_metrics(&points).await.unwrap();
        latest.push(model);
    }
    let latest = [&latest[latest.len() - 2], &latest[latest.len() - 1]];
    ledger
        .row(
            "get one with three metrics",
            budget([1.0, 0.0, 2.0], [1.0, 0.0, 2.0]),
            bench,
            latest,
            async |store, model| {
                let found = store.logged_model_get(model, false).await.unwrap();
                assert_eq!((found.data.metrics.len(), found.data.params.len()), (3, 20));
            },
        )
        .await;
    ledger
        .row("delete it", budget([2.0, 5.0, 1.0], [2.0, 5.0, 1.0]), bench, latest, async |store, model| {
            store.logged_model_delete(model).await.unwrap();
        })
        .await;
    for (call, filter, order_by, found, budget) in [
        ("search: the latest 100 of 1,000", "", &[][..], 100, budget([3.0, 0.0, 203.0], [3.0, 0.0, 203.0])),
        (
            "search: the 50 of 1,000 that a run created",
            "source_run_id = '00000000000000000000000000000007'",
            &[],
            50,
            budget([2.0, 0.0, 102.0], [2.0, 0.0, 102.0]),
        ),
        (
            "search: the best 100 of 1,000 by a metric",
            "",
            &["metrics.accuracy"],
            100,
            budget([1.0, 0.0, 253.0], [1.0, 0.0, 253.0]),
        ),
        (
            "search: a param filter, among 1,000",
            "params.param_0003 = 'value3'",
            &[],
            100,
            budget([1.0, 0.0, 253.0], [1.0, 0.0, 253.0]),
        ),
    ] {
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                let page = store.logged_model_search(search(experiment, filter, order_by)).await.unwrap();
                assert_eq!(page.models.len(), found, "{call}");
            })
            .await;
    }
}
