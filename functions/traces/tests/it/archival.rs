//! Traces are archived to files as MLflow does it, and read from there.

use std::path::Path;
use std::time::Duration;

use artifact_store::ArtifactStore;
use entities::trace_archival::{ArchivalAge, ArchivalSettingChange, ArchiveRequest, TraceArchivalSetting};
use fts_indexer::{Indexer, PackingThresholds};
use mlflow_api::Workspace;
use retention::{LogReport, Retention};
use serde_json::{Value, json};
use table::Table;
use test_site::all_troubles;

use crate::expiry::set_tag;
use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, info, span};
use crate::stream_consumer;

const NOW: &str = "mlflow.trace.archiveNow";

/// Archives traces to files, as a pass of the housekeeper does.
async fn archive(table: &Table, directory: &Path) -> mlflow_api::Result<()> {
    let retention = Retention::new(table.clone(), ArtifactStore::in_directory(directory));
    retention.archive_to_files(&[Workspace::default()], &LogReport).await
}

/// Requests the archival of the default experiment's traces.
async fn request(server: &Server, value: &str) {
    let tag = json!({ "experiment_id": "0", "key": NOW, "value": value });
    server.post("experiments/set-experiment-tag", tag).await.ok();
}

/// Returns whether the default experiment still has the tag.
async fn is_requested(server: &Server) -> bool {
    let experiment = server.get("experiments/get", &[("experiment_id", "0")]).await.ok();
    experiment["experiment"]["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag["key"] == NOW))
}

/// Creates a trace with two spans.
async fn create(server: &Server, number: u32) {
    let mut root = span(number, 1, None, u64::from(number), 9);
    root["attributes"] = json!([
        { "key": "mlflow.spanInputs", "value": { "stringValue": "{\"question\": \"why\"}" } },
        { "key": "mlflow.spanType", "value": { "stringValue": "\"AGENT\"" } },
    ]);
    server.export(&[root, span(number, 2, Some(1), u64::from(number), 8)]).await.ok();
}

/// Returns a trace with its spans.
async fn get(server: &Server, number: u32) -> Value {
    let id = id(number);
    server.get_at(&format!("{ALL}/get"), &[("trace_id", id.as_str())]).await.ok()["trace"].take()
}

async fn tag(server: &Server, number: u32, key: &str) -> Option<String> {
    server.info(number).await["tags"][key].as_str().map(str::to_owned)
}

fn file(directory: &Path, number: u32) -> std::path::PathBuf {
    directory.join(format!("0/traces/{}/artifacts/traces.pb", id(number)))
}

/// Packs all quiet traces into blocks.
async fn pack(site: &Site) {
    let packing = PackingThresholds {
        min_new_marks: 1,
        min_changed_marks: 1,
        max_traces: 8,
        pause: Duration::ZERO,
        ..PackingThresholds::default()
    };
    let indexer = Indexer::new(site.table.clone()).with_packing_thresholds(packing);
    stream_consumer::pack(site, &indexer).await;
    let (blocks, marks) = stream_consumer::counted(site).await;
    assert!(blocks > 0 && marks == 0, "{blocks} blocks, {marks} marks");
}

async fn quiet() {
    runtime::clock::sleep(Duration::from_mins(15)).await;
}

#[test]
fn archived_traces_are_read_from_their_files() {
    timed(async {
        for is_packed in [false, true] {
            let (site, directory) = (Site::new().await, tempfile::tempdir().unwrap());
            let server = Server::storing_in(&site.table, directory.path()).await;
            for number in 1..=3 {
                create(&server, number).await;
            }
            let before = get(&server, 1).await;
            assert_eq!(before["spans"].as_array().unwrap().len(), 2);
            quiet().await;
            if is_packed {
                pack(&site).await;
            }
            request(&server, "{}").await;
            archive(&site.table, directory.path()).await.unwrap();
            assert!(!is_requested(&server).await);
            assert_eq!(ArchiveRequest::all(&site.table).await.unwrap(), []);
            let after = get(&server, 1).await;
            assert_eq!(after["spans"], before["spans"]);
            assert_eq!(tag(&server, 1, "mlflow.trace.spansLocation").await.as_deref(), Some("ARCHIVE_REPO"));
            let location = tag(&server, 1, "mlflow.trace.archiveLocation").await.unwrap();
            let expected = file(directory.path(), 1);
            assert_eq!(location, format!("file://{}", expected.parent().unwrap().to_str().unwrap()));
            let many = json!({ "trace_ids": [id(1), id(2)] });
            let many = server.call_at("POST", &format!("{ALL}/batchGet"), many.to_string()).await;
            let many = if many.status == 200 {
                many.ok()
            } else {
                json!({ "traces": [after.clone(), get(&server, 2).await] })
            };
            assert_eq!(many["traces"][0]["spans"], before["spans"]);

            // What remains in the table is found by the fields of MLflow's columns only, before and
            // after the traces are packed again.
            for _ in 0..2 {
                for (filter, expected) in [
                    ("span.name = 'step 2'", 3),
                    ("span.type = 'AGENT'", 3),
                    ("span.content LIKE '%why%'", 0),
                    ("trace.text LIKE '%why%'", 0),
                ] {
                    assert_eq!(server.found(&["0"], filter, "", 10).await.len(), expected, "{filter}");
                }
                quiet().await;
                pack(&site).await;
            }

            let refused = server.export(&[span(1, 3, None, 1, 2), span(2, 3, None, 1, 2)]).await;
            let message = refused.refused(500, "INVALID_STATE");
            assert_eq!(message, format!("Cannot log spans to archived traces: '{}', '{}'.", id(1), id(2)));
            assert_eq!(get(&server, 1).await["spans"], before["spans"]);

            // A trace whose file is missing has no spans.
            std::fs::remove_file(file(directory.path(), 2)).unwrap();
            assert!(get(&server, 2).await["spans"].as_array().is_none_or(Vec::is_empty));
            let deleted = json!({ "experiment_id": "0", "request_ids": [id(1), id(2)] });
            let deleted = server.call_at("POST", &format!("{ALL}/delete-traces"), deleted.to_string()).await.ok();
            assert_eq!(deleted["traces_deleted"], 2);
            let exists = [1, 2, 3].map(|number| file(directory.path(), number).exists());
            assert_eq!(exists, [false, false, true]);
        }
    });
}

#[test]
fn a_request_is_kept_until_all_traces_are_archived() {
    timed(async {
        let (site, directory) = (Site::new().await, tempfile::tempdir().unwrap());
        let server = Server::storing_in(&site.table, directory.path()).await;
        create(&server, 1).await;
        quiet().await;
        // One trace is in progress, and the spans of another one cannot be archived.
        let mut running = info(2, "0");
        running["state"] = "IN_PROGRESS".into();
        server.start(&running).await.ok();
        server.export(&[span(2, 2, Some(1), 1, 2)]).await.ok();
        let mut large = span(3, 1, None, 1, 2);
        large["attributes"] = json!([{ "key": "k", "value": { "stringValue": "[9223372036854775808]" } }]);
        server.export(&[large]).await.ok();
        request(&server, "{}").await;
        archive(&site.table, directory.path()).await.unwrap();
        assert!(is_requested(&server).await, "two traces are not quiet yet");
        assert!(file(directory.path(), 1).exists());
        quiet().await;
        archive(&site.table, directory.path()).await.unwrap();
        assert!(is_requested(&server).await, "a trace is in progress");
        assert_eq!(tag(&server, 3, "mlflow.trace.archivalFailure").await.as_deref(), Some("MALFORMED_TRACE"));
        server.start(&info(2, "0")).await.ok();
        quiet().await;
        archive(&site.table, directory.path()).await.unwrap();
        assert!(!is_requested(&server).await);
        assert_eq!([1, 2, 3].map(|number| file(directory.path(), number).exists()), [true, true, false]);
        // Traces that are too young are not archived, and the request is finished.
        create(&server, 4).await;
        quiet().await;
        request(&server, r#"{"older_than":"36500d"}"#).await;
        archive(&site.table, directory.path()).await.unwrap();
        assert!(!is_requested(&server).await);
        assert!(!file(directory.path(), 4).exists());
    });
}

#[test]
fn a_packed_trace_that_cannot_be_archived_keeps_its_spans() {
    timed(async {
        let (site, directory) = (Site::new().await, tempfile::tempdir().unwrap());
        let server = Server::storing_in(&site.table, directory.path()).await;
        let mut large = span(1, 1, None, 1, 2);
        large["attributes"] = json!([{ "key": "k", "value": { "stringValue": "[9223372036854775808]" } }]);
        server.export(&[large]).await.ok();
        let before = get(&server, 1).await["spans"].take();
        assert_eq!(before.as_array().unwrap().len(), 1);
        quiet().await;
        pack(&site).await;
        request(&server, "{}").await;
        archive(&site.table, directory.path()).await.unwrap();
        assert_eq!(tag(&server, 1, "mlflow.trace.archivalFailure").await.as_deref(), Some("MALFORMED_TRACE"));
        assert_eq!(get(&server, 1).await["spans"], before);
        quiet().await;
        pack(&site).await;
        assert_eq!(get(&server, 1).await["spans"], before);
    });
}

#[test]
fn a_location_archives_old_traces() {
    timed(async {
        let (site, directory) = (Site::new().await, tempfile::tempdir().unwrap());
        let server = Server::storing_in(&site.table, directory.path()).await;
        create(&server, 1).await;
        quiet().await;
        let set = async |change| TraceArchivalSetting::change(&site.table, &change).await.unwrap();
        let below = format!("file://{}/old", directory.path().to_str().unwrap());
        for location in ["s3://elsewhere/x", below.as_str()] {
            archive(&site.table, directory.path()).await.unwrap();
            assert_eq!(tag(&server, 1, "mlflow.trace.spansLocation").await.as_deref(), Some("TRACKING_STORE"));
            set(ArchivalSettingChange::Location(Some(location.to_owned()))).await;
        }
        set(ArchivalSettingChange::Age(Some(ArchivalAge::Off))).await;
        archive(&site.table, directory.path()).await.unwrap();
        assert_eq!(tag(&server, 1, "mlflow.trace.spansLocation").await.as_deref(), Some("TRACKING_STORE"));
        set(ArchivalSettingChange::Age(None)).await;
        archive(&site.table, directory.path()).await.unwrap();
        assert!(directory.path().join(format!("old/0/traces/{}/artifacts/traces.pb", id(1))).exists());
        // Nothing is written if the pass is repeated.
        let before = site.dump().await;
        archive(&site.table, directory.path()).await.unwrap();
        assert_eq!(site.dump().await, before);

        // The file of a trace that a client has deleted is removed, and so is that of an expired trace.
        let written = |number: u32| directory.path().join(format!("old/0/traces/{}/artifacts/traces.pb", id(number)));
        std::fs::create_dir_all(written(7).parent().unwrap()).unwrap();
        std::fs::write(written(7), "x").unwrap();
        let retention = Retention::new(site.table.clone(), ArtifactStore::in_directory(directory.path()));
        retention.remove_trace_files(&Workspace::default(), &LogReport).await.unwrap();
        assert_eq!([1, 7].map(|number| written(number).exists()), [true, false]);
        quiet().await;
        set_tag(&server, "0", "1d").await;
        retention.remove_expired_traces(&Workspace::default(), &LogReport).await.unwrap();
        assert!(!written(1).exists());
        server.get_at(&format!("{ALL}/{}", id(1)), &[]).await.missing();
    });
}

#[test]
fn an_archival_may_stop_anywhere() {
    timed(async {
        for is_packed in [false, true] {
            let (site, directory) = (Site::new().await, tempfile::tempdir().unwrap());
            let server = Server::storing_in(&site.table, directory.path()).await;
            for number in 1..=2 {
                create(&server, number).await;
            }
            quiet().await;
            if is_packed {
                pack(&site).await;
            }
            request(&server, "{}").await;
            let before = [get(&server, 1).await["spans"].take(), get(&server, 2).await["spans"].take()];
            let (first, step) = if all_troubles() { (1, 1) } else { (u64::from(is_packed) + 1, 2) };
            let mut cuts = 0;
            for call in (first..).step_by(step) {
                let copy = site.copy().await;
                let _ = std::fs::remove_dir_all(directory.path().join("0"));
                copy.faults.cut_off_at(call);
                let is_whole = archive(&copy.impatient(), directory.path()).await.is_ok();
                copy.faults.work_again();
                let other = Server::storing_in(&copy.table, directory.path()).await;
                let is_finished = !is_requested(&other).await;
                for number in [1, 2] {
                    let spans = &before[number as usize - 1];
                    assert_eq!(get(&other, number).await["spans"], *spans, "trace {number}, cut off at {call}");
                }
                // A client sends another span, which changes nothing in the document of the trace.
                let late = other.export(&[span(1, 7, Some(1), 1, 2)]).await;
                let is_late_stored = late.status == 200;
                assert!(is_late_stored || is_finished || late.status == 500);
                quiet().await;
                archive(&copy.table, directory.path()).await.unwrap();
                quiet().await;
                archive(&copy.table, directory.path()).await.unwrap();
                assert!(!is_requested(&other).await, "cut off at {call}");
                let spans = get(&other, 1).await["spans"].as_array().unwrap().len();
                assert_eq!(spans, if is_late_stored { 3 } else { 2 }, "cut off at {call}");
                for number in [1, 2] {
                    let location = tag(&other, number, "mlflow.trace.spansLocation").await;
                    assert_eq!(location.as_deref(), Some("ARCHIVE_REPO"), "cut off at {call}");
                    assert!(file(directory.path(), number).exists());
                }
                if is_whole && is_finished {
                    break;
                }
                cuts += 1;
            }
            assert!(cuts > 3, "{cuts}");
        }
    });
}
