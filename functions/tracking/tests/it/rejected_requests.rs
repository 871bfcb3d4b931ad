//! Malformed requests are rejected, and leave no trace in the table.

use std::collections::BTreeMap;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use test_site::all_troubles;

use crate::server::Site;

/// Returns values that no field accepts, or that are unusual for a field.
fn odd_values() -> Vec<Value> {
    let long = "x".repeat(30_000);
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(18_446_744_073_709_551_615_u64),
        json!([]),
        json!([null]),
        json!([[]]),
        json!([{ "key": 1 }]),
        json!([{ "key": "a#b", "value": {} }]),
        json!({}),
        json!({ "a": {} }),
        json!("../x"),
        json!("a#b"),
        json!("\u{0}"),
        json!("NaN"),
        json!(" "),
        json!(long),
    ]
}

/// Returns a valid request for each endpoint that writes.
fn requests(experiment: &str, run: &str) -> Vec<(&'static str, Value)> {
    let model = json!({ "artifact_path": "p", "flavors": {}, "run_id": run, "utc_time_created": "now" });
    let metric = json!({ "key": "m", "value": 1, "timestamp": 1, "step": 1 });
    vec![
        ("experiments/create", json!({ "name": "n", "artifact_location": "s3://x", "tags": [] })),
        ("experiments/update", json!({ "experiment_id": experiment, "new_name": "n" })),
        ("experiments/delete", json!({ "experiment_id": experiment })),
        ("experiments/restore", json!({ "experiment_id": experiment })),
        ("experiments/set-experiment-tag", json!({ "experiment_id": experiment, "key": "k", "value": "v" })),
        ("experiments/delete-experiment-tag", json!({ "experiment_id": experiment, "key": "k" })),
        ("experiments/search", json!({ "max_results": 1, "filter": "", "order_by": [], "page_token": "" })),
        ("runs/create", json!({ "experiment_id": experiment, "start_time": 1, "run_name": "n", "tags": [] })),
        ("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 1, "run_name": "n" })),
        ("runs/delete", json!({ "run_id": run })),
        ("runs/restore", json!({ "run_id": run })),
        ("runs/search", json!({ "experiment_ids": [experiment], "max_results": 1, "filter": "", "order_by": [] })),
        ("runs/log-metric", json!({ "run_id": run, "key": "m", "value": 1, "timestamp": 1, "step": 1 })),
        ("runs/log-parameter", json!({ "run_id": run, "key": "p", "value": "v" })),
        ("runs/log-batch", json!({ "run_id": run, "metrics": [metric], "params": [], "tags": [] })),
        ("runs/log-model", json!({ "run_id": run, "model_json": model.to_string() })),
        ("runs/outputs", json!({ "run_id": run, "models": [{ "model_id": "m", "step": 1 }] })),
        ("runs/set-tag", json!({ "run_id": run, "key": "k", "value": "v" })),
        ("runs/delete-tag", json!({ "run_id": run, "key": "k" })),
    ]
}

/// Checks whether requests since the last reset of the counters may have changed the table.
fn has_written(site: &Site) -> bool {
    let reads = ["GetItem", "BatchGetItem", "Query"];
    site.faults.all_calls().iter().any(|(operation, calls)| *calls > 0 && !reads.contains(&operation.as_str()))
}

/// Returns the items without the counter of experiment ids. Each attempt to create an experiment
/// uses up an id.
async fn items(site: &Site) -> BTreeMap<String, Value> {
    let mut items = site.dump().await;
    items.retain(|key, _| !key.starts_with("CONFIG "));
    items
}

#[tokio::test]
async fn refused_requests_leave_no_trace() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let run = server.run(&experiment).await;
    let mut before = items(&site).await;
    let (mut refused, mut taken) = (0, 0);
    // By default, each field is tested with half of the unusual values, alternating from field to
    // field.
    let step = if all_troubles() { 1 } else { 2 };
    let mut fields_so_far = 0;
    for (path, good) in requests(&experiment, &run) {
        let fields: Vec<_> = good.as_object().unwrap().keys().cloned().collect();
        let mut bad = vec![json!({}), json!([]), json!("text"), json!(7), json!(null)];
        for field in &fields {
            let mut without = good.clone();
            without.as_object_mut().unwrap().remove(field);
            bad.push(without);
            for odd in odd_values().into_iter().skip(fields_so_far % step).step_by(step) {
                let mut with = good.clone();
                with[field] = odd;
                bad.push(with);
            }
            fields_so_far += 1;
        }
        for body in bad {
            site.faults.reset_calls();
            let answer = server.post(path, body.clone()).await;
            let text = body.to_string();
            let what = format!("{path} {}", text.chars().take(300).collect::<String>());
            assert!(answer.status < 500 || is_invalid_state(&answer.body), "{what} {answer:?}");
            if has_written(&site) {
                let after = items(&site).await;
                if answer.status >= 400 {
                    assert_eq!(after, before, "{what} {answer:?}");
                }
                before = after;
            }
            if answer.status >= 400 {
                refused += 1;
            } else {
                taken += 1;
            }
            if path.ends_with("delete") {
                // The request may have deleted the experiment in spite of the malformed field, so
                // the experiment is restored.
                let _ = server.post("experiments/restore", json!({ "experiment_id": experiment })).await;
                let _ = server.post("runs/restore", json!({ "run_id": run })).await;
                before = items(&site).await;
            }
        }
    }
    let least = if all_troubles() { (400, 50) } else { (200, 25) };
    assert!(refused > least.0 && taken > least.1, "{refused} {taken}");
}

/// Checks for the error of renaming a deleted experiment, for which MLflow returns status 500.
fn is_invalid_state(body: &Value) -> bool {
    body["error_code"] == "INVALID_STATE"
}

#[tokio::test]
async fn bodies_that_are_no_json_and_unknown_ids() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let run = server.run(&experiment).await;
    let before = site.dump().await;
    for (path, good) in requests(&experiment, &run) {
        if path.ends_with("search") {
            continue;
        }
        for body in ["", "{", "[1", "NaN", "\u{feff}{}", "{\"a\":1}}", "\"{\""] {
            let answer = server.call_text("POST", path, body.to_owned()).await;
            assert_eq!(answer.status, 400, "{path} {body} {answer:?}");
        }
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(server.call_text("POST", path, format!("{{\"run_id\": {deep}}}")).await.status, 400, "{path}");
        for content_type in ["text/plain", "application/x-www-form-urlencoded"] {
            let request = Request::post(format!("/api/2.0/mlflow/{path}")).header(CONTENT_TYPE, content_type);
            let answer = server.send(request.body(Body::from(good.to_string())).unwrap()).await;
            assert_eq!(answer.status, 400, "{path}");
        }
        for unknown in ["999999", "ffffffffffffffffffffffffffffffff", "a#b", "é", "x", "-1", "../..", "\u{0}"] {
            let mut body = good.clone();
            for field in ["experiment_id", "run_id"].into_iter().filter(|field| good.get(*field).is_some()) {
                body[field] = unknown.into();
            }
            if path != "experiments/create" {
                let status = server.post(path, body).await.status;
                assert!([400, 404].contains(&status), "{path} {unknown} {status}");
            }
        }
    }
    assert_eq!(site.dump().await, before);
}

/// A batch is checked completely before any of it is written.
#[tokio::test]
async fn one_bad_entry_spoils_a_batch() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    let before = site.dump().await;
    let good = json!({
        "run_id": run,
        "metrics": [{ "key": "m", "value": 1, "timestamp": 1, "step": 1 }],
        "params": [{ "key": "p", "value": "v" }],
        "tags": [{ "key": "t", "value": "v" }],
    });
    let many = |count: usize| (0..count).map(|number| json!({ "key": number.to_string(), "value": "v" })).collect();
    let metrics = |count: i64| -> Vec<_> {
        (0..count).map(|step| json!({ "key": "m", "value": 1, "timestamp": step, "step": step })).collect()
    };
    for (list, entry) in [
        ("metrics", json!({ "key": "m#", "value": 1, "timestamp": 1, "step": 1 })),
        ("metrics", json!({ "key": "m", "value": 1, "timestamp": -1, "step": 1 })),
        ("metrics", json!({ "key": "m", "timestamp": 1, "step": 1 })),
        ("metrics", json!({ "key": "m".repeat(251), "value": 1, "timestamp": 1, "step": 1 })),
        ("metrics", json!({ "key": "m", "value": 1, "timestamp": 1, "step": 1, "model_id": "none" })),
        ("params", json!({ "key": "p", "value": "other" })),
        ("params", json!({ "key": "p#", "value": "v" })),
        ("params", json!({ "key": "p".repeat(251), "value": "v" })),
        ("params", json!({ "value": "v" })),
        ("tags", json!({ "key": "", "value": "v" })),
        ("tags", json!({ "key": "../t", "value": "v" })),
        ("tags", json!({ "key": "t".repeat(251), "value": "v" })),
    ] {
        let mut batch = good.clone();
        batch[list].as_array_mut().unwrap().push(entry.clone());
        assert_eq!(server.post("runs/log-batch", batch).await.status, 400, "{entry}");
    }
    for (list, entries) in
        [("params", many(101)), ("tags", many(101)), ("metrics", metrics(1_001)), ("metrics", metrics(999))]
    {
        let mut batch = good.clone();
        batch[list] = Value::Array(entries);
        server.post("runs/log-batch", batch).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn odd_reads_are_no_failures_of_the_server() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let run = server.run(&experiment).await;
    let before = site.dump().await;
    for path in [
        "experiments/get",
        "experiments/get-by-name",
        "experiments/search",
        "runs/get",
        "metrics/get-history",
        "metrics/get-history-bulk-interval",
    ] {
        for value in ["", "0", "-1", "x", "a#b", "\u{0}", "é", "99999999999999999999", "NaN", "true", &run] {
            for field in [
                "experiment_id",
                "experiment_name",
                "run_id",
                "run_ids",
                "metric_key",
                "max_results",
                "page_token",
                "start_step",
                "view_type",
                "filter",
                "order_by",
            ] {
                for base in [vec![], vec![("run_id", run.as_str()), ("run_ids", &run), ("metric_key", "m")]] {
                    let arguments = [&[(field, value)][..], &base].concat();
                    let answer = server.get(path, &arguments).await;
                    assert!(answer.status < 500, "{path} {arguments:?} {answer:?}");
                }
            }
        }
    }
    assert_eq!(site.dump().await, before);
}

/// MLflow does not limit the size of these values, but the table does.
#[tokio::test]
async fn what_is_larger_than_an_item_is_refused() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let huge = "x".repeat(500_000);
    for new in [
        json!({ "experiment_id": experiment, "user_id": huge }),
        json!({ "experiment_id": experiment, "run_name": huge }),
        json!({ "experiment_id": experiment, "tags": [{ "key": "k", "value": huge }] }),
        json!({ "experiment_id": experiment, "tags": [{ "key": huge, "value": "v" }] }),
    ] {
        let answer = server.post("runs/create", new).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    let run = server.run(&experiment).await;
    let before = site.dump().await;
    let answer = server.post("runs/update", json!({ "run_id": run, "run_name": huge })).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert_eq!(site.dump().await, before);
    assert_eq!(server.search(json!({ "experiment_ids": [experiment] })).await, [run]);
}
