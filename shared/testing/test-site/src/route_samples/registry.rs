//! Samples of the registry.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{ROOT, SampleClient, V2};
use crate::route_samples::tracking::{experiment, run, with_a_file};

pub(crate) async fn writes(walk: &mut SampleClient) {
    let models = "/api/2.0/mlflow/registered-models";
    let versions = "/api/2.0/mlflow/model-versions";
    walk.post("registered-models/create", json!({ "name": "old", "tags": [{ "key": "drop", "value": "x" }] })).await;
    walk.send(&format!("PATCH {models}/update"), &[], json!({ "name": "old", "description": "d" })).await;
    walk.post("registered-models/set-tag", json!({ "name": "old", "key": "k", "value": "x".repeat(4_000) })).await;
    walk.send(&format!("DELETE {models}/delete-tag"), &[], json!({ "name": "old", "key": "drop" })).await;
    for _ in 0..2 {
        let tags = json!([{ "key": "drop", "value": "x" }, { "key": "long", "value": "x".repeat(4_000) }]);
        let new = json!({ "name": "old", "source": format!("{ROOT}/model"), "tags": tags });
        walk.post("model-versions/create", new).await;
    }
    walk.post("registered-models/alias", json!({ "name": "old", "alias": "champion", "version": "1" })).await;
    walk.post("registered-models/rename", json!({ "name": "old", "new_name": "new" })).await;
    let first = json!({ "name": "new", "version": "1" });
    let with = |fields: Value| {
        let mut body = first.clone();
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    walk.send(&format!("PATCH {versions}/update"), &[], with(json!({ "description": "d" }))).await;
    let stage = with(json!({ "stage": "Production", "archive_existing_versions": true }));
    walk.post("model-versions/transition-stage", stage).await;
    walk.post("model-versions/set-tag", with(json!({ "key": "k", "value": "v" }))).await;
    walk.send(&format!("DELETE {versions}/delete-tag"), &[], with(json!({ "key": "drop" }))).await;
    walk.send(&format!("DELETE {models}/alias"), &[], json!({ "name": "new", "alias": "champion" })).await;
    walk.send(&format!("DELETE {versions}/delete"), &[], first.clone()).await;
    walk.send(&format!("DELETE {models}/delete"), &[], json!({ "name": "new" })).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let tags = json!([{ "key": "short", "value": "s" }, { "key": "long", "value": "x".repeat(3_000) }]);
    walk.post("registered-models/create", json!({ "name": "before", "tags": tags })).await;
    let run = "0".repeat(32);
    for _ in 0..2 {
        let new = json!({ "name": "before", "source": "s3://elsewhere/m", "tags": tags, "run_link": "l", "description": "d" });
        walk.post("model-versions/create", new).await;
    }
    let alias = json!({ "name": "before", "alias": "champion", "version": "1" });
    walk.post("registered-models/alias", alias).await;
    let stage = json!({ "name": "before", "version": "1", "stage": "Staging", "archive_existing_versions": false });
    walk.post("model-versions/transition-stage", stage).await;
    walk.post("registered-models/rename", json!({ "name": "before", "new_name": "after" })).await;
    let get = |path: &str| (format!("GET {V2}/{path}"), json!({}));
    let search = |path: &str, body: Value| (format!("GET {V2}/{path}"), body);
    let reads = vec![
        get("registered-models/get?name=after"),
        get("registered-models/get-latest-versions?name=after"),
        (format!("POST {V2}/registered-models/get-latest-versions"), json!({ "name": "after" })),
        get("registered-models/alias?name=after&alias=champion"),
        search("registered-models/search", json!({})),
        search("registered-models/search", json!({ "filter": "tags.short = 's'" })),
        search("registered-models/search", json!({ "order_by": ["last_updated_timestamp DESC"] })),
        get("model-versions/get?name=after&version=1"),
        get("model-versions/get-download-uri?name=after&version=1"),
        search("model-versions/search", json!({})),
        search("model-versions/search", json!({ "filter": "name = 'after'", "order_by": ["creation_timestamp"] })),
        search("model-versions/search", json!({ "filter": format!("run_id = '{run}'") })),
    ];
    walk.read(reads).await;
    sources(walk).await;
}

/// Creates versions with each kind of source (a run, another version, a logged model), and reads a
/// file of one of them.
async fn sources(walk: &mut SampleClient) {
    let experiment = experiment(walk, "sources").await;
    let run = run(walk, &experiment).await;
    walk.post("registered-models/create", json!({ "name": "kept" })).await;
    let source = format!("{ROOT}/{experiment}/{run}/artifacts/m");
    walk.post("model-versions/create", json!({ "name": "kept", "source": source, "run_id": run })).await;
    walk.post("model-versions/create", json!({ "name": "kept", "source": "models:/kept/1" })).await;
    let model = with_a_file(walk, "files of a version").await;
    let of_model = json!({ "name": "kept", "source": format!("models:/{model}"), "model_id": model });
    walk.post("model-versions/create", of_model).await;
    let of_run = json!({ "filter": format!("run_id = '{run}'") });
    walk.read(vec![(format!("GET {V2}/model-versions/search"), of_run)]).await;
    let file = "?name=kept&version=3&path=x";
    walk.send_with("GET /model-versions/get-artifact", &[], file, json!({}), 200).await;
}
