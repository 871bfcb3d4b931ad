//! Memory usage of responses. This test is a separate process, because allocations of other tests
//! would be counted as well.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../it/calls/mod.rs"]
mod calls;
#[path = "../it/server.rs"]
#[expect(dead_code, reason = "some items are only used by other tests")]
mod server;

use axum::body::{Body, Bytes};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use server::{Server, Site, run_ids};
use tower::ServiceExt;

const RUNS: usize = 12;
/// The longest profile of a dataset that MLflow accepts.
const PROFILE: usize = 16_777_215;
/// Maximum memory usage of the process, in bytes. It includes the engine and all of its data.
const MAX_MEMORY_BYTES: usize = 300 << 20;

/// Returns the peak memory usage of the process since the last call, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kilobytes << 10
}

/// Returns the body of a response, as it was received.
async fn body(server: &Server, path: &str, message: &Value) -> Bytes {
    let request = Request::post(format!("/api/2.0/mlflow/{path}")).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(message.to_string())).unwrap();
    let response = server.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap().to_bytes()
}

/// Creates twelve runs, each with a compressible dataset of 17 MB, which takes up only a few KB in
/// the table.
#[tokio::test]
#[ignore = "packs and unpacks 400 MB; part of `make test-slow`"]
async fn runs_with_long_datasets_come_in_pages_that_fit_into_memory() {
    let site = Site::new().await;
    let experiment = site.server.experiment("long datasets").await;
    for number in 0..RUNS {
        let run = site.server.run_at(&experiment, i64::try_from(number).unwrap()).await;
        let name = format!("dataset {number}");
        let dataset = json!({
            "name": name, "digest": "d", "source_type": "local", "source": "s", "profile": "x".repeat(PROFILE),
        });
        let inputs = json!({ "run_id": run, "datasets": [{ "dataset": dataset }] });
        site.server.post("runs/log-inputs", inputs).await.ok();
    }
    peak_memory();
    let mut search = json!({ "experiment_ids": [experiment] });
    let (mut found, mut longest) = (Vec::new(), 0);
    loop {
        let body = body(&site.server, "runs/search", &search).await;
        longest = longest.max(body.len());
        let page: Value = serde_json::from_slice(&body).unwrap();
        let runs = run_ids(&page);
        assert!(!runs.is_empty());
        found.extend(runs);
        match page["next_page_token"].as_str() {
            Some(token) => search["page_token"] = token.into(),
            None => break,
        }
    }
    found.dedup();
    let peak = peak_memory();
    println!("longest response: {longest} bytes, peak memory usage: {peak} bytes");
    assert_eq!(found.len(), RUNS);
    assert!(longest < PROFILE + 10_000, "the longest response has {longest} bytes");
    assert!(peak < MAX_MEMORY_BYTES, "the peak memory usage was {peak} bytes");
}
