//! Limits on the size of a single request.

use access::MAX_NAMED_ENTITIES;
use embedded_engine::Engine;
use mlflow_api::limits::MAX_SEARCHED_EXPERIMENTS;
use serde_json::json;
use table::Table;

use crate::test_server::{TABLE, functions, send};

#[tokio::test]
async fn every_search_is_of_a_bounded_number_of_experiments() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let router = functions(&table).await;
    let experiments: Vec<_> = (0..=MAX_SEARCHED_EXPERIMENTS).map(|number| number.to_string()).collect();
    let body = json!({ "experiment_ids": experiments });
    for (method, path) in [
        ("POST", "/api/2.0/mlflow/runs/search"),
        ("POST", "/api/2.0/mlflow/logged-models/search"),
        ("POST", "/api/3.0/mlflow/datasets/search"),
        ("GET", "/api/3.0/mlflow/scorers/list"),
    ] {
        let (status, answer) = send(&router, method, path, &body).await;
        assert_eq!((status, &answer["error_code"]), (400, &json!("INVALID_PARAMETER_VALUE")), "{path} {answer}");
        assert_eq!(answer["message"], "A search takes at most 10000 experiments. Found 10001.", "{path}");
    }
}

#[tokio::test]
async fn configurations_are_asked_for_of_a_bounded_number_of_scorers() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let router = functions(&table).await;
    let path = "/api/3.0/mlflow/scorers/online-configs";
    let ids = |number: usize| json!({ "scorer_ids": vec!["none"; number] });
    assert_eq!(send(&router, "GET", path, &ids(MAX_NAMED_ENTITIES)).await, (200, json!({ "configs": [] })));
    let (status, answer) = send(&router, "GET", path, &ids(MAX_NAMED_ENTITIES + 1)).await;
    assert_eq!((status, &answer["message"]), (400, &json!("A request names at most 10000 scorers.")));
}
