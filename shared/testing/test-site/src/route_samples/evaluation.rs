//! Samples of evaluation.

use serde_json::{Value, json};

use crate::route_samples::reviews;
use crate::route_samples::sample_client::{SampleClient, V3, ask, text};
use crate::route_samples::tracking::experiment;

pub(crate) async fn writes(walk: &mut SampleClient) {
    let all = "/api/3.0/mlflow/datasets";
    let one = format!("{all}/{{dataset_id}}");
    let new = json!({ "name": "questions", "experiment_ids": ["0"], "tags": json!({ "drop": "x" }).to_string() });
    let created = walk.send(&format!("POST {all}/create"), &[], new).await;
    let dataset = text(&created, "/dataset/dataset_id");
    let dataset = dataset.as_str();
    let ids = [dataset];
    walk.send(&format!("PATCH {one}/tags"), &ids, json!({ "tags": json!({ "k": "v" }).to_string() })).await;
    walk.send(&format!("DELETE {one}/tags/{{key}}"), &[dataset, "drop"], json!({})).await;
    let records: Value =
        (0..120).map(|number| json!({ "inputs": { "n": number }, "outputs": "x".repeat(9) })).collect();
    let mut record = None;
    for _ in 0..2 {
        let merge = json!({ "records": records.to_string() });
        walk.send(&format!("POST {one}/records"), &ids, merge).await;
        let read = ask(&walk.router, "GET", &format!("{all}/{dataset}/records"), &json!({})).await.1;
        let read: Value = serde_json::from_str(&text(&read, "/records")).unwrap();
        record = Some(text(&read, "/0/dataset_record_id"));
    }
    let deleted = json!({ "dataset_record_ids": [record] });
    walk.send(&format!("DELETE {one}/records"), &ids, deleted).await;
    let other = experiment(walk, "other").await;
    walk.send(&format!("POST {one}/add-experiments"), &ids, json!({ "experiment_ids": [other] })).await;
    walk.send(&format!("POST {one}/remove-experiments"), &ids, json!({ "experiment_ids": ["0"] })).await;
    walk.send(&format!("DELETE {one}"), &ids, json!({})).await;

    let all = "/api/3.0/mlflow/scorers";
    let named = json!({ "experiment_id": other, "name": "s" });
    for _ in 0..2 {
        let mut scorer = named.clone();
        scorer["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {}, "x": "y" }).to_string().into();
        walk.send(&format!("POST {all}/register"), &[], scorer).await;
    }
    let config = json!({ "experiment_id": other, "name": "s", "sample_rate": 0, "filter_string": "x" });
    walk.send(&format!("PUT {all}/online-config"), &[], config).await;
    walk.send(&format!("DELETE {all}/delete"), &[], named).await;
    reviews::writes(walk).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let experiment = text(&walk.post("experiments/create", json!({ "name": "ev" })).await, "/experiment_id");
    let tags = json!({ "short": "s", "long": "x".repeat(3_000), "user": "u" }).to_string();
    let new = json!({ "name": "questions", "experiment_ids": [experiment], "tags": tags });
    let dataset = text(&walk.send(&format!("POST {V3}/datasets/create"), &[], new).await, "/dataset/dataset_id");
    let noise: String =
        (0..40_000_u32).map(|number| char::from(b'a' + u8::try_from(number * number % 25).unwrap())).collect();
    let records = json!([
        { "inputs": { "q": 1 }, "outputs": "short", "tags": { "mlflow.user": "u" } },
        { "inputs": { "q": 2 }, "outputs": noise },
    ]);
    let merge = json!({ "records": records.to_string() });
    walk.send(&format!("POST {V3}/datasets/{{dataset_id}}/records"), &[&dataset], merge).await;
    let named = json!({ "experiment_id": experiment, "name": "s" });
    let mut scorer = String::new();
    for round in 0..2 {
        let mut new = named.clone();
        new["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {}, "x": round }).to_string().into();
        scorer = text(&walk.send(&format!("POST {V3}/scorers/register"), &[], new).await, "/scorer_id");
    }
    let config = json!({ "experiment_id": experiment, "name": "s", "sample_rate": 0, "filter_string": "x" });
    walk.send(&format!("PUT {V3}/scorers/online-config"), &[], config).await;
    let (one, named) =
        (format!("{V3}/datasets/{{dataset_id={dataset}}}"), json!({ "experiment_id": experiment, "name": "s" }));
    let get = |path: &str, body: Value| (format!("GET {V3}/{path}"), body);
    let search = |body: Value| (format!("POST {V3}/datasets/search"), body);
    let reads = vec![
        (format!("GET {one}"), json!({})),
        (format!("GET {one}/records"), json!({})),
        (format!("GET {one}/experiment-ids"), json!({})),
        get("datasets/search", json!({ "experiment_ids": [experiment] })),
        search(json!({ "experiment_ids": [experiment] })),
        search(json!({ "experiment_ids": [experiment], "filter_string": "tags.short = 's'" })),
        search(json!({ "filter_string": "name LIKE 'q%'", "order_by": ["name"] })),
        get("scorers/list", json!({ "experiment_id": experiment })),
        get("scorers/versions", named.clone()),
        get("scorers/get", named.clone()),
        get("scorers/get", json!({ "experiment_id": experiment, "name": "s", "version": 1 })),
        get("scorers/online-configs", json!({ "scorer_ids": [scorer] })),
    ];
    walk.read(reads).await;
    reviews::reads(walk).await;
}
