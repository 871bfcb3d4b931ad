//! Samples of label schemas, review queues and issues, which are routes of evaluation.

use serde_json::{Value, json};

use crate::route_samples::SAMPLE_USER;
use crate::route_samples::sample_client::{SampleClient, V3, text};
use crate::route_samples::tracking::experiment;

/// Starts a trace in an experiment.
async fn trace(walk: &mut SampleClient, experiment: &str, number: u32) -> String {
    let id = format!("tr-{number:032x}");
    let info = json!({
        "trace_id": id,
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        "request_time": "2023-11-14T22:13:20Z", "state": "OK",
    });
    walk.send(&format!("POST {V3}/traces"), &[], json!({ "trace": { "trace_info": info } })).await;
    id
}

fn schema(experiment: &str, name: &str) -> Value {
    let input = json!({ "categorical": { "options": ["a", "b"] } });
    json!({ "experiment_id": experiment, "name": name, "type": "FEEDBACK", "input": input, "instruction": "i", "enable_comment": true })
}

fn issue(experiment: &str, name: &str) -> Value {
    json!({
        "experiment_id": experiment, "name": name, "description": "d", "severity": "high", "root_causes": ["r"],
        "categories": ["latency"], "created_by": "u", "metadata": { "k": "v" },
    })
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let experiment = experiment(walk, "reviewed").await;
    let experiment = experiment.as_str();
    let traces = [trace(walk, experiment, 0x7001).await, trace(walk, experiment, 0x7002).await];

    let all = format!("{V3}/label-schemas");
    let created = walk.send(&format!("POST {all}/create"), &[], schema(experiment, "q")).await;
    let id = text(&created, "/label_schema/schema_id");
    let update = json!({ "schema_id": id, "name": "r", "instruction": "j", "enable_comment": false });
    walk.send(&format!("PATCH {all}/update"), &[], update).await;

    let all = format!("{V3}/review-queues");
    let new = json!({ "experiment_id": experiment, "name": "queue", "queue_type": "CUSTOM", "users": ["ann", SAMPLE_USER], "schema_ids": [id] });
    let queue = text(&walk.send(&format!("POST {all}/create"), &[], new).await, "/review_queue/queue_id");
    let user = json!({ "experiment_id": experiment, "user": "ann" });
    walk.send(&format!("POST {all}/get-or-create-user"), &[], user).await;
    let items = json!({ "queue_id": queue, "item_ids": traces });
    for _ in 0..2 {
        walk.send(&format!("POST {all}/items/add"), &[], items.clone()).await;
    }
    let status = json!({ "queue_id": queue, "item_id": traces[0], "status": "COMPLETE", "completed_by": "ann" });
    walk.send(&format!("POST {all}/items/set-status"), &[], status).await;
    walk.send(&format!("POST {all}/items/remove"), &[], json!({ "queue_id": queue, "item_ids": [traces[1]] })).await;
    let update = json!({ "queue_id": queue, "name": "renamed", "update_users": true, "users": ["bob"] });
    walk.send(&format!("POST {all}/update"), &[], update).await;
    walk.send(&format!("POST {all}/delete"), &[], json!({ "queue_id": queue })).await;
    walk.send(&format!("DELETE {V3}/label-schemas/delete"), &[], json!({ "schema_id": id })).await;

    let all = format!("{V3}/issues");
    let created = walk.send(&format!("POST {all}"), &[], issue(experiment, "wrong")).await;
    let id = text(&created, "/issue/issue_id");
    let mut chosen = issue(experiment, "chosen");
    chosen["issue_id"] = "iss-chosen".into();
    walk.send(&format!("POST {all}"), &[], chosen).await;
    let update = json!({
        "issue_id": "one", "status": "resolved", "metadata": { "l": "v" }, "delete_metadata_keys": ["k"], "last_updated_by": "u",
    });
    for id in [id.as_str(), "iss-chosen"] {
        walk.send(&format!("PATCH {all}/{{issue_id}}"), &[id], update.clone()).await;
    }
    // Changes to assessments and traces update the number of traces of an issue.
    let said = json!({ "assessment_id": "a-issue", "assessment_name": id, "issue": { "issue_name": "wrong" } });
    let assessments = format!("POST {V3}/traces/{{trace_id}}/assessments");
    for trace in &traces {
        walk.send(&assessments, &[trace], json!({ "assessment": said })).await;
    }
    let gone = json!({ "experiment_id": experiment, "request_ids": [traces[0]] });
    walk.send(&format!("POST {V3}/traces/delete-traces"), &[], gone).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let experiment = text(&walk.post("experiments/create", json!({ "name": "reviews" })).await, "/experiment_id");
    let experiment = experiment.as_str();
    let trace = trace(walk, experiment, 0x7003).await;
    let created = walk.send(&format!("POST {V3}/label-schemas/create"), &[], schema(experiment, "q")).await;
    let schema = text(&created, "/label_schema/schema_id");
    let new = json!({ "experiment_id": experiment, "name": "queue", "queue_type": "CUSTOM", "users": ["ann", SAMPLE_USER], "schema_ids": [schema] });
    let created = walk.send(&format!("POST {V3}/review-queues/create"), &[], new).await;
    let queue = text(&created, "/review_queue/queue_id");
    let items = json!({ "queue_id": queue, "item_ids": [trace] });
    walk.send(&format!("POST {V3}/review-queues/items/add"), &[], items).await;
    let status = json!({ "queue_id": queue, "item_id": trace, "status": "DECLINED", "completed_by": "ann" });
    walk.send(&format!("POST {V3}/review-queues/items/set-status"), &[], status).await;
    let mut new = issue(experiment, "wrong");
    let noise: String =
        (0..40_000_u32).map(|number| char::from(b'a' + u8::try_from(number * number % 25).unwrap())).collect();
    new["description"] = noise.into();
    let issue = text(&walk.send(&format!("POST {V3}/issues"), &[], new).await, "/issue/issue_id");
    let said = json!({ "assessment_id": "a-issue", "assessment_name": issue, "issue": { "issue_name": "wrong" } });
    walk.send(&format!("POST {V3}/traces/{{trace_id}}/assessments"), &[&trace], json!({ "assessment": said })).await;
    let get = |path: &str, query: &str| (format!("GET {V3}/{path}{query}"), json!({}));
    let search = |more: Value| {
        let mut body = json!({ "experiment_id": experiment });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (format!("POST {V3}/issues/search"), body)
    };
    let reads = vec![
        get("label-schemas/get", &format!("?schema_id={schema}")),
        get("label-schemas/get-by-name", &format!("?experiment_id={experiment}&name=q")),
        get("label-schemas/list", &format!("?experiment_id={experiment}")),
        get("review-queues/get", &format!("?queue_id={queue}")),
        get("review-queues/get-by-name", &format!("?experiment_id={experiment}&name=queue")),
        get("review-queues/list", &format!("?experiment_id={experiment}")),
        get("review-queues/list", &format!("?experiment_id={experiment}&item_id={trace}&user=ann")),
        get("review-queues/items/list", &format!("?queue_id={queue}")),
        get("review-queues/items/list", &format!("?queue_id={queue}&status=DECLINED")),
        get(&format!("issues/{{issue_id={issue}}}"), ""),
        search(json!({ "include_trace_count": true, "include_total_count": true })),
        search(json!({ "view": "basic", "name": "WRO", "order_by": ["name"] })),
    ];
    walk.read(reads).await;
}
