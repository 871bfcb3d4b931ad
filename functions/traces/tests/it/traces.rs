//! Traces without their spans: requests of clients, tags, links, reads.

use serde_json::json;

use crate::server::{ALL, Site, id, info, span};

#[tokio::test]
async fn what_is_said_twice_is_merged() {
    let site = Site::new().await;
    let mut first = info(1, "0");
    first["tags"] = json!({ "a": "1", "mlflow.traceName": "agent", "mlflow.trace.spansLocation": "mine" });
    first["trace_metadata"] = json!({ "mlflow.trace.tokenUsage": "{\"input_tokens\": 3}", "k": "v" });
    first["request_preview"] = "question".into();
    site.server.start(&first).await.ok();
    let mut second = info(1, "0");
    second["tags"] = json!({ "b": "2" });
    second["trace_metadata"] = json!({ "mlflow.trace.tokenUsage": "{\"output_tokens\": 4, \"other\": 1}" });
    second["request_time"] = "2023-11-14T22:13:19.500Z".into();
    let answer = site.other().await.start(&second).await.ok();
    let trace = site.server.info(1).await;
    assert_eq!(answer["trace"]["trace_info"], trace);
    assert_eq!(
        (&trace["request_preview"], &trace["request_time"]),
        (&json!("question"), &json!("2023-11-14T22:13:19.500Z"))
    );
    let metadata = json!({ "k": "v", "mlflow.trace.infoFinalized": "true", "mlflow.trace.tokenUsage": "{\"input_tokens\": 3, \"output_tokens\": 4}" });
    assert_eq!(trace["trace_metadata"], metadata);
    let location = format!("{}/0/traces/{}/artifacts", test_site::ROOT, id(1));
    assert_eq!(
        trace["tags"],
        json!({ "a": "1", "b": "2", "mlflow.artifactLocation": location, "mlflow.traceName": "agent" })
    );
}

#[tokio::test]
async fn tags_are_set_and_deleted() {
    let site = Site::new().await;
    site.server.start(&info(1, "0")).await.ok();
    let path = format!("traces/{}/tags", id(1));
    site.server.call("PATCH", &path, json!({ "key": "k", "value": "v" })).await.ok();
    assert_eq!(site.server.info(1).await["tags"]["k"], "v");
    site.server.call("DELETE", &path, json!({ "key": "k" })).await.ok();
    let again = site.server.call("DELETE", &path, json!({ "key": "k" })).await;
    assert_eq!(
        again.refused(404, "RESOURCE_DOES_NOT_EXIST"),
        format!("No trace tag with key 'k' for trace with ID '{}'", id(1))
    );
    let location = json!({ "key": "mlflow.trace.spansLocation", "value": "x" });
    let refused = site.server.call("PATCH", &path, location).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(refused, "Tag 'mlflow.trace.spansLocation' is immutable and cannot be set on a trace.");
    site.server.call("PATCH", &format!("traces/{}/tags", id(7)), json!({ "key": "k" })).await.missing();
}

#[tokio::test]
async fn reads_name_what_is_there() {
    let site = Site::new().await;
    let server = &site.server;
    server.export(&[span(1, 1, None, 0, 1)]).await.ok();
    let mut announced = info(2, "0");
    announced["trace_metadata"] = json!({ "mlflow.trace.sizeStats": "{\"num_spans\": 2}" });
    server.start(&announced).await.ok();
    server.export(&[span(2, 1, None, 0, 1)]).await.ok();
    let ids = json!({ "trace_ids": [id(9), id(2), id(1), id(2)] });
    let infos = server.call_at("POST", &format!("{ALL}/batchGetInfos"), ids.to_string()).await.ok();
    let found: Vec<_> = infos["trace_infos"].as_array().unwrap().iter().map(|info| info["trace_id"].clone()).collect();
    assert_eq!(found, [id(2), id(1)]);
    // One of the two spans of the second trace has not arrived.
    let (one, two) = (id(1), id(2));
    let whole = server.get_at(&format!("{ALL}/batchGet"), &[("trace_ids", &two), ("trace_ids", &one)]).await.ok();
    assert_eq!(whole["traces"].as_array().unwrap().len(), 1);
    let refused = server.get_at(&format!("{ALL}/get"), &[("trace_id", &two)]).await;
    let message = refused.refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(message, format!("Trace with ID {two} is not fully exported yet, please try again later."));
    let none = json!({ "trace_ids": [id(1)], "experiment_ids": [] });
    assert_eq!(server.call_at("POST", &format!("{ALL}/batchGetInfos"), none.to_string()).await.ok(), json!({}));
    let missing = server.get_at(&format!("{ALL}/get"), &[("trace_id", &id(9))]).await;
    assert_eq!(missing.refused(404, "RESOURCE_DOES_NOT_EXIST"), format!("Trace with ID {} is not found.", id(9)));
}

#[tokio::test]
async fn old_clients_start_and_end_traces() {
    let site = Site::new().await;
    let new = json!({ "experiment_id": "0", "timestamp_ms": 5, "request_metadata": [{ "key": "k", "value": "v" }], "tags": [] });
    let started = site.server.post("traces", new).await.ok()["trace_info"].take();
    assert_eq!((&started["status"], &started["execution_time_ms"]), (&json!("IN_PROGRESS"), &json!(0)));
    let path = format!("traces/{}", started["request_id"].as_str().unwrap());
    let ended = json!({ "timestamp_ms": 12, "status": "ERROR", "tags": [{ "key": "t", "value": "x" }] });
    let ended = site.server.call("PATCH", &path, ended).await.ok()["trace_info"].take();
    assert_eq!((&ended["status"], &ended["execution_time_ms"]), (&json!("ERROR"), &json!(7)));
    let read = site.server.get(&format!("{path}/info"), &[]).await.ok()["trace_info"].take();
    assert_eq!(read, ended);
}

#[tokio::test]
async fn links_may_be_repeated() {
    let site = Site::new().await;
    site.server.start(&info(1, "0")).await.ok();
    let run = site.server.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
    let link = json!({ "run_id": run["run"]["info"]["run_id"], "trace_ids": [id(1), id(2)] });
    let prompts = json!({ "trace_id": id(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
    for _ in 0..2 {
        site.server.post("traces/link-to-run", link.clone()).await.ok();
        site.server.post("traces/link-prompts", prompts.clone()).await.ok();
    }
    let many: Vec<_> = (0..101).map(id).collect();
    let refused = site.server.post("traces/link-to-run", json!({ "run_id": "r", "trace_ids": many })).await;
    assert!(refused.refused(400, "INVALID_PARAMETER_VALUE").starts_with("Cannot link more than 100 traces"));
}
