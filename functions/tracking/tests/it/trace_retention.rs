//! The experiment tag that sets how long traces are kept.

use entities::trace_retention::TraceRetentionSetting;
use serde_json::{Value, json};

use crate::server::{Site, TestResponse};

const TAG: &str = "mlflow.trace.retention";

/// Returns the number of experiments that the table's retention setting lists. An experiment is
/// listed there before it gets the tag.
async fn named(site: &Site) -> usize {
    TraceRetentionSetting::read(&site.table).await.unwrap().own.len()
}

fn set(experiment: &Value) -> Value {
    json!({ "experiment_id": experiment, "key": TAG, "value": "30d" })
}

#[tokio::test]
async fn only_experiments_that_are_there_take_a_place_among_those_that_may_have_it() {
    let site = Site::new().await;
    let create = async |name: &str| -> TestResponse {
        let new = json!({ "name": name, "tags": [{ "key": TAG, "value": "7d" }] });
        site.server.post("experiments/create", new).await
    };
    let id = create("e").await.ok()["experiment_id"].clone();
    assert_eq!(named(&site).await, 1);
    create("e").await.refused(400, "RESOURCE_ALREADY_EXISTS");
    site.server.post("experiments/set-experiment-tag", set(&json!("12345"))).await.missing();
    assert_eq!(named(&site).await, 1);
    let other = json!(site.server.experiment("other").await);
    site.server.post("experiments/set-experiment-tag", set(&other)).await.ok();
    site.server.post("experiments/set-experiment-tag", set(&id)).await.ok();
    assert_eq!(named(&site).await, 2);
}
