//! Sample writes whose requests to the table differ from those of the domains' samples.

use serde_json::{Value, json};

use test_site::route_samples::{ROOT, SampleClient};

/// Returns entries, each of which is too large for its entity's document.
fn entries(count: usize, bytes: usize) -> Value {
    (0..count).map(|number| json!({ "key": format!("k{number:03}"), "value": "v".repeat(bytes) })).collect()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
}

pub(super) async fn writes(walk: &mut SampleClient) {
    let experiment = walk.post("experiments/create", json!({ "name": "big", "tags": entries(90, 1_100) })).await;
    let experiment = text(&experiment, "/experiment_id");
    let run = walk
        .post("runs/create", json!({ "experiment_id": experiment, "run_name": "big", "tags": entries(120, 1_100) }))
        .await;
    let run = text(&run, "/run/info/run_id");
    // The following writes go into the journal. The first two calls also mark the run afterwards,
    // the second call writes a row of names, and the third call only writes to the journal.
    for step in 1..=3 {
        let metric =
            |number| json!({ "key": format!("layer/{number:03}"), "value": 1, "timestamp": step, "step": step });
        let metrics: Vec<_> = (0..80).map(metric).collect();
        walk.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
    }
    let large = json!({ "run_id": run, "key": "k000", "value": "w".repeat(1_100) });
    walk.post("runs/set-tag", large).await;
    walk.post("runs/delete-tag", json!({ "run_id": run, "key": "k000" })).await;
    walk.post("runs/log-parameter", json!({ "run_id": run, "key": "big", "value": "v".repeat(6_000) })).await;
    let big = json!({ "experiment_id": experiment, "name": "m", "params": entries(120, 1_100) });
    let model = text(&walk.post("logged-models", big).await, "/model/info/model_id");
    walk.post("runs/log-metric", json!({ "run_id": run, "key": "auc", "value": 1, "timestamp": 1, "model_id": model }))
        .await;

    let tags = json!({ "name": "tagged", "tags": entries(90, 1_100) });
    walk.post("registered-models/create", tags).await;
    let source = format!("{ROOT}/{experiment}/{run}/artifacts/m");
    let of_run = json!({ "name": "tagged", "source": source, "run_id": run, "tags": entries(40, 33_000) });
    walk.post("model-versions/create", of_run).await;
    let of_model = json!({ "name": "tagged", "source": format!("models:/{model}"), "model_id": model });
    walk.post("model-versions/create", of_model).await;
    let both = json!({ "name": "tagged", "version": "2", "stage": "Production", "archive_existing_versions": true });
    walk.post("model-versions/transition-stage", both).await;
    walk.send("DELETE /api/2.0/mlflow/registered-models/delete", &[], json!({ "name": "tagged" })).await;

    let all = "/api/3.0/mlflow/datasets";
    let experiments: Vec<_> = (0..130).map(|number| number.to_string()).collect();
    let tags: Vec<_> = (0..20).map(|number| (format!("k{number}"), Value::from("v".repeat(1_100)))).collect();
    let tags = Value::Object(tags.into_iter().collect()).to_string();
    let big = json!({ "name": "d", "experiment_ids": experiments, "tags": tags });
    let dataset = text(&walk.send(&format!("POST {all}/create"), &[], big).await, "/dataset/dataset_id");
    for round in 0..2_u32 {
        // The entries are too large for an item, even when compressed.
        let noise: String = (0..450_000_u32).map(|at| char::from(33 + noise(at + round * 450_000))).collect();
        let records = json!([{ "inputs": { "n": 1 }, "outputs": noise }]).to_string();
        walk.send(&format!("POST {all}/{{dataset_id}}/records"), &[&dataset], json!({ "records": records })).await;
    }
    walk.send(&format!("DELETE {all}/{{dataset_id}}"), &[&dataset], json!({})).await;
}

/// Returns an incompressible sequence of numbers below 90.
fn noise(at: u32) -> u8 {
    let mixed = at.wrapping_mul(2_654_435_761) ^ (at >> 7).wrapping_mul(2_246_822_519);
    let letter = (mixed ^ (mixed >> 15)).wrapping_mul(3_266_489_917) >> 24;
    u8::try_from(letter % 58).unwrap_or_default() + 31
}
