//! Samples of artifacts, which the server stores in a directory. A directory has no presigned URLs,
//! so requests for presigned URLs are refused.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{AJAX_V2, SampleClient, V2, text};
use crate::route_samples::tracking::run;

const PROXY: &str = "/api/2.0/mlflow-artifacts";

/// Creates a run whose artifacts the server stores. Returns its id, and the path of its
/// experiment's artifacts.
async fn kept(walk: &mut SampleClient, name: &str) -> (String, String) {
    let new = json!({ "name": name, "artifact_location": format!("mlflow-artifacts:/{name}") });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    (run(walk, &experiment).await, name.to_owned())
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let (run, _) = kept(walk, "uploaded").await;
    let upload = format!("POST {AJAX_V2}/upload-artifact");
    let query = format!("?run_uuid={run}&path=x");
    walk.send_with(&upload, &[], &query, json!("file"), 200).await;
    for endpoint in ["presigned-upload-url", "presigned-download-url"] {
        let body = json!({ "run_id": run, "path": "x" });
        walk.send_with(&format!("POST {V2}/artifacts/{endpoint}"), &[], "", body, 400).await;
    }
    // Sends requests for an artifact of the default experiment.
    let proxied = format!("{PROXY}/artifacts/{{*artifact_path}}");
    walk.send(&format!("PUT {proxied}"), &["0/sample/x"], json!("file")).await;
    walk.send(&format!("GET {proxied}"), &["0/sample/x"], json!({})).await;
    walk.send(&format!("DELETE {proxied}"), &["0/sample/x"], json!({})).await;
    for part in ["create", "complete", "abort"] {
        let body = json!({ "path": "x", "num_parts": 1, "upload_id": "u", "parts": [] });
        walk.answered(&format!("POST {PROXY}/mpu/{part}/{{*artifact_path}}"), &["0/sample/x"], body).await;
    }
    walk.answered(&format!("GET {PROXY}/presigned/{{*artifact_path}}"), &["0/sample/x"], Value::Null).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let (run, _) = kept(walk, "listed").await;
    let query = format!("?run_uuid={run}&path=x");
    walk.send_with(&format!("POST {AJAX_V2}/upload-artifact"), &[], &query, json!("file"), 200).await;
    walk.send_with("GET /get-artifact", &[], &query, json!({}), 200).await;
    walk.send(&format!("GET {V2}/artifacts/list"), &[], json!({ "run_id": run })).await;
    walk.send_with(&format!("GET {PROXY}/artifacts"), &[], "?path=0", json!({}), 200).await;
    // Requests the run's file again, as an artifact of a version of the model `served`.
    walk.post("registered-models/create", json!({ "name": "served" })).await;
    let found = walk.send(&format!("GET {V2}/runs/get"), &[], json!({ "run_id": run })).await;
    let source = text(&found, "/run/info/artifact_uri");
    walk.post("model-versions/create", json!({ "name": "served", "source": source, "run_id": run })).await;
    let directory = "model-versions/c2VydmVk/1";
    let query = format!("?path={directory}");
    walk.send_with(&format!("GET {PROXY}/artifacts"), &[], &query, json!({}), 200).await;
    let file = format!("{directory}/x");
    walk.send(&format!("GET {PROXY}/artifacts/{{*artifact_path}}"), &[&file], json!({})).await;
    walk.answered(&format!("GET {PROXY}/presigned/{{*artifact_path}}"), &[&file], Value::Null).await;
}
