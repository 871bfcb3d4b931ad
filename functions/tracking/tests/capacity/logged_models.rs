//! What logged models cost.

use crate::calls::ModelPoint;
use ledger::Ledger;
use mlflow_api::ExperimentId;
use mlflow_api::logged_models::ModelStatus;
use mlflow_api::requests::logged_models::{ModelOrderClause, SearchLoggedModels};
use tracking::store::NewLoggedModel;

use crate::{Bench, TIME, params};

/// A model as autologging makes it.
fn new_model(number: usize) -> NewLoggedModel {
    NewLoggedModel {
        name: format!("model-{number}"),
        source_run_id: format!("{:032x}", number % 20),
        params: params(0..20, "value"),
        tags: params(0..3, "tag"),
        ..NewLoggedModel::default()
    }
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

pub(crate) async fn measure(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let created = store.logged_model_create(experiment, &new_model(0)).await.unwrap();
    let model = created.info.model_id.as_str();
    store.logged_model_finalize(model, ModelStatus::Ready).await.unwrap();
    ledger.row("create a logged model with 20 params, and finalize it", Some((4.0, 8.0)), &meter.take(), 1);
    store.logged_model_set_tags(model, vec![("stage".to_owned(), "test".to_owned())]).await.unwrap();
    ledger.row("set a tag", Some((1.0, 4.0)), &meter.take(), 1);
    store.logged_model_log_params(model, params(20..30, "value")).await.unwrap();
    ledger.row("log ten params", Some((1.0, 4.0)), &meter.take(), 1);
    for step in 0..200 {
        store.logged_model_log_metrics(&[point(model, "loss", step)]).await.unwrap();
    }
    ledger.row("log one metric for it (mean over 200 calls), beside the run", Some((1.5, 8.0)), &meter.take(), 200);
    let points: Vec<_> = (0..1_000).map(|step| point(model, "bulk", step)).collect();
    store.logged_model_log_metrics(&points).await.unwrap();
    ledger.row("log 1,000 points for it, beside the run", Some((3.0, 30.0)), &meter.take(), 1);
    assert_eq!(store.logged_model_get(model, false).await.unwrap().data.metrics.len(), 1_200);
    ledger.row("get it, with 1,200 points", Some((2.0, 0.0)), &meter.take(), 1);

    for number in 1..1_000 {
        let created = store.logged_model_create(experiment, &new_model(number)).await.unwrap();
        let points =
            ["accuracy", "f1", "loss"].map(|key| point(&created.info.model_id, key, i64::try_from(number).unwrap()));
        store.logged_model_log_metrics(&points).await.unwrap();
        meter.take();
        if number == 999 {
            let found = store.logged_model_get(&created.info.model_id, false).await.unwrap();
            assert_eq!((found.data.metrics.len(), found.data.params.len()), (3, 20));
            ledger.row("get one with three metrics", Some((1.0, 0.0)), &meter.take(), 1);
            store.logged_model_delete(&created.info.model_id).await.unwrap();
            ledger.row("delete it", Some((2.0, 10.0)), &meter.take(), 1);
        }
    }
    for (name, filter, order_by, found, requests) in [
        ("the latest 100 of 1,000", "", &[][..], 100, Some(4.0)),
        ("those of a run, 50 of 1,000", "source_run_id = '00000000000000000000000000000007'", &[], 50, Some(4.0)),
        ("the best 100 of 1,000 by a metric", "", &["metrics.accuracy"], 100, None),
        ("a param filter, of 1,000", "params.param_0003 = 'value3'", &[], 100, None),
    ] {
        let page = store.logged_model_search(search(experiment, filter, order_by)).await.unwrap();
        assert_eq!(page.models.len(), found, "{name}");
        ledger.row(&format!("search: {name}"), requests.map(|requests| (requests, 0.0)), &meter.take(), 1);
    }
}
