//! Expired traces are removed with all their data, and no other traces are.

use std::sync::Mutex;
use std::time::Duration;

use artifact_store::ArtifactStore;
use key_schema::{Key, rows};
use mlflow_api::proto_json::time_text;
use mlflow_api::{ExperimentId, TraceId, Workspace};
use retention::{RemovalReport, RemovedEntity, Retention};
use serde_json::json;
use table::{Condition, Table, bytes, text};
use test_site::{all_troubles, key_of};

use crate::expiry::{HOUR, assert_shown, set_tag, shown, trace};
use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, info, span};
use crate::test_packer::{pack_all, pack_some};

/// The traces that a removal has reported.
#[derive(Default)]
struct Log(Mutex<(u64, Vec<String>)>);

impl RemovalReport for Log {
    fn removed(&self, _: RemovedEntity) {}

    fn removed_traces(&self, _: ExperimentId, traces: u64) {
        self.0.lock().unwrap().0 += traces;
    }

    fn removed_histories(&self, _: ExperimentId, _: u64) {}

    fn archived_traces(&self, _: ExperimentId, _: u64) {}

    fn archived_histories(&self, _: ExperimentId, _: u64) {}

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        self.0.lock().unwrap().1.push(format!("files of {experiment}: {why}"));
    }

    fn kept(&self, entity: RemovedEntity, why: &str) {
        self.0.lock().unwrap().1.push(format!("{entity} stays: {why}"));
    }
}

/// Removes expired traces and returns their number.
async fn remove(table: &Table, artifacts: &ArtifactStore) -> mlflow_api::Result<u64> {
    let (retention, log) = (Retention::new(table.clone(), artifacts.clone()), Log::default());
    retention.remove_expired_traces(&Workspace::default(), &log).await?;
    retention.remove_trace_files(&Workspace::default(), &log).await?;
    let (removed, kept) = log.0.into_inner().unwrap();
    assert_eq!(kept, Vec::<String>::new());
    Ok(removed)
}

async fn would_remove(table: &Table) -> bool {
    let retention = Retention::new(table.clone(), ArtifactStore::default());
    !retention.expired_traces(&Workspace::default()).await.unwrap().is_empty()
}

/// Returns all keys that contain the id of one of these traces.
async fn named(site: &Site, numbers: &[u32]) -> Vec<String> {
    let keys = site.dump().await.into_keys();
    keys.filter(|key| numbers.iter().any(|number| key.contains(&id(*number)))).collect()
}

/// Creates two traces that started four days ago, and one that starts now. Then lets some time
/// pass.
async fn make(server: &Server) {
    for (number, ago) in [(1, 96 * HOUR), (2, 95 * HOUR), (3, 0)] {
        trace(server, number, "0", ago).await;
    }
    runtime::clock::sleep(Duration::from_mins(15)).await;
}

async fn pack(site: &Site, how: u32) {
    match how {
        0 => {}
        1 => pack_some(site, 2, |place| place == 0).await,
        _ => pack_all(site, 3).await,
    }
}

#[test]
fn a_trace_goes_with_all_that_hangs_on_it() {
    timed(async {
        for how in 0..3 {
            let site = Site::new().await;
            make(&site.server).await;
            pack(&site, how).await;
            let kept = named(&site, &[3]).await;
            assert_eq!(remove(&site.table, &ArtifactStore::default()).await.unwrap(), 0, "there is no policy");
            set_tag(&site.server, "0", "1d").await;
            assert!(would_remove(&site.table).await);
            assert_eq!(remove(&site.table, &ArtifactStore::default()).await.unwrap(), 2);
            assert!(!would_remove(&site.table).await, "days are listed, but are empty");
            assert_eq!(named(&site, &[1, 2]).await, Vec::<String>::new());
            assert_eq!(named(&site, &[3]).await, kept);
            let blocks = site.dump().await.into_keys().filter(|key| key.contains(" B#")).count();
            assert_eq!(blocks, usize::from(how > 0));
            assert_eq!(remove(&site.table, &ArtifactStore::default()).await.unwrap(), 0);
            // Removed traces do not reappear when the retention policy is disabled.
            set_tag(&site.server, "0", "off").await;
            assert_shown(shown(&site.other().await, "0").await, &[3]);
        }
    });
}

#[test]
fn a_removal_may_stop_anywhere() {
    timed(async {
        for how in [1, 2] {
            let site = Site::new().await;
            make(&site.server).await;
            pack(&site, how).await;
            set_tag(&site.server, "0", "1d").await;
            let whole = site.copy().await;
            remove(&whole.table, &ArtifactStore::default()).await.unwrap();
            let expected = whole.dump().await;
            // If only a sample is tested, every third call is interrupted. Where this starts
            // depends on the variant, so that the variants interrupt different calls.
            let (first, step) = if all_troubles() { (1, 1) } else { (u64::from(how), 3) };
            let mut cuts = 0;
            for call in (first..).step_by(step) {
                let copy = site.copy().await;
                copy.faults.cut_off_at(call);
                let outcome = remove(&copy.impatient(), &ArtifactStore::default()).await;
                copy.faults.work_again();
                assert_shown(shown(&copy.other().await, "0").await, &[3]);
                let is_whole = outcome.is_ok();
                remove(&copy.table, &ArtifactStore::default()).await.unwrap();
                let mut left = copy.dump().await;
                // The lock of the interrupted process is ignored, because it expires.
                left.retain(|key, _| !key.ends_with(" L"));
                assert_eq!(left, expected, "cut off at {call}");
                if is_whole {
                    break;
                }
                cuts += 1;
            }
            assert!(cuts > 1, "{cuts}");
        }
    });
}

#[test]
fn what_cannot_be_read_keeps_nothing_else_from_being_removed() {
    timed(async {
        let site = Site::new().await;
        let odd = site.server.experiment("odd").await;
        // This location is invalid, but earlier versions accepted it from clients.
        let key = rows::Experiment::key(&ExperimentId::parse(&odd).unwrap());
        let item = site.table.get(&key).await.unwrap().unwrap().with("location", text("mlflow-artifacts:/a\\b"));
        site.table.put(item, &Condition::Always).await.unwrap();
        for (number, experiment, ago) in [(1, "0", 96), (2, "0", 96), (3, "0", 48), (4, odd.as_str(), 96)] {
            trace(&site.server, number, experiment, ago * HOUR).await;
        }
        runtime::clock::sleep(Duration::from_mins(15)).await;
        pack_all(&site, 1).await;
        let is_block = |key: &Key| key.sk.starts_with("B#") && key.sk.ends_with(&id(1));
        let block = site.items().await.iter().map(key_of).find(is_block).unwrap();
        let block = site.table.get(&block).await.unwrap().unwrap();
        site.table.put(block.clone().with("core", bytes(vec![1])), &Condition::Always).await.unwrap();
        for experiment in ["0", odd.as_str()] {
            set_tag(&site.server, experiment, "1d").await;
        }
        let artifacts = ArtifactStore::in_directory(std::env::temp_dir().as_path());
        let error = remove(&site.table, &artifacts).await.unwrap_err();
        assert_eq!(error.cause.as_deref(), Some("1 blocks of traces cannot be read"));
        assert_eq!(named(&site, &[2, 3, 4]).await, Vec::<String>::new());
        assert!(named(&site, &[1]).await.iter().any(|key| key.starts_with("TRACE#")));
        site.table.put(block, &Condition::Always).await.unwrap();
        assert_eq!(remove(&site.table, &artifacts).await.unwrap(), 1);
        assert_eq!(named(&site, &[1]).await, Vec::<String>::new());
    });
}

#[test]
fn what_was_changed_or_has_moved_stays() {
    timed(async {
        for how in [0, 2] {
            let site = Site::new().await;
            make(&site.server).await;
            pack(&site, how).await;
            let before = named(&site, &[1, 2, 3]).await;
            // The client has moved the trace to the current time.
            let mut moved = info(1, "0");
            moved["request_time"] = time_text(entities::now_ms()).into();
            site.server.start(&moved).await.ok();
            // The trace was changed recently, by a process that has not read the policy yet.
            let tag = json!({ "key": "k", "value": "v" });
            site.server.call("PATCH", &format!("traces/{}/tags", id(2)), tag).await.ok();
            set_tag(&site.server, "0", "1d").await;
            assert_eq!(remove(&site.table, &ArtifactStore::default()).await.unwrap(), 0);
            let after = named(&site, &[1, 2, 3]).await;
            let lost: Vec<_> = before.iter().filter(|key| !after.contains(key) && !key.starts_with("TR#")).collect();
            assert_eq!(lost, Vec::<&String>::new());
            assert_shown(shown(&site.other().await, "0").await, &[1, 3]);
            runtime::clock::sleep(Duration::from_mins(15)).await;
            assert_eq!(remove(&site.table, &ArtifactStore::default()).await.unwrap(), 1);
            assert_eq!(named(&site, &[2]).await, Vec::<String>::new());
            assert_shown(shown(&site.other().await, "0").await, &[1, 3]);
            set_tag(&site.server, "0", "off").await;
            assert_shown(shown(&site.other().await, "0").await, &[1, 3]);
        }
    });
}

#[test]
fn files_go_with_their_traces() {
    timed(async {
        let site = Site::new().await;
        let directory = tempfile::tempdir().unwrap();
        let location = directory.path().join("1").to_str().unwrap().to_owned();
        let created = json!({ "name": "files", "artifact_location": location });
        let created = site.server.post("experiments/create", created).await.ok();
        let experiment = created["experiment_id"].as_str().unwrap();
        let file = |number: u32| directory.path().join(format!("1/traces/{}/artifacts/traces.json", id(number)));
        for (number, ago) in [(1, 96 * HOUR), (2, 0), (3, 0)] {
            trace(&site.server, number, experiment, ago).await;
            std::fs::create_dir_all(file(number).parent().unwrap()).unwrap();
            std::fs::write(file(number), "{}").unwrap();
        }
        std::fs::write(directory.path().join("1/other"), "x").unwrap();
        // Another experiment's run has its artifacts in this experiment's directory `traces`, and a
        // client uses the run's id as a trace id. The files of the run must be kept.
        let run = "0123456789abcdef0123456789abcdef";
        let of_run = directory.path().join(format!("1/traces/{run}/artifacts/model"));
        std::fs::create_dir_all(of_run.parent().unwrap()).unwrap();
        std::fs::write(&of_run, "x").unwrap();
        let mut named_like_it = info(4, experiment);
        named_like_it["trace_id"] = run.into();
        named_like_it["request_time"] = time_text(entities::now_ms() - 96 * HOUR).into();
        site.server.start(&named_like_it).await.ok();
        let artifacts = ArtifactStore::in_directory(directory.path());
        runtime::clock::sleep(Duration::from_mins(15)).await;
        assert_eq!(remove(&site.table, &artifacts).await.unwrap(), 0);
        assert!((1..=3).all(|number| file(number).exists()));
        let deleted = json!({ "experiment_id": experiment, "request_ids": [id(2)] });
        site.server.call_at("POST", &format!("{ALL}/delete-traces"), deleted.to_string()).await.ok();
        set_tag(&site.server, experiment, "1d").await;
        assert_eq!(remove(&site.table, &artifacts).await.unwrap(), 2);
        assert_eq!([1, 2, 3].map(|number| file(number).exists()), [false, false, true]);
        assert!(directory.path().join("1/other").exists() && of_run.exists());
    });
}

#[test]
fn spans_that_came_lately_leave_nothing_behind() {
    timed(async {
        for how in 0..3 {
            let site = Site::new().await;
            make(&site.server).await;
            pack(&site, how).await;
            // The first two exports add spans to an existing trace, and the second one reuses the
            // mark of the first. The third export is interrupted, so its trace has no document.
            let began = u64::try_from(entities::now_ms() - 96 * HOUR - 1_700_000_000_000).unwrap();
            for (number, span_id) in [(1, 2), (1, 3), (9, 1)] {
                site.server.export(&[span(number, span_id, None, began, began + 5)]).await.ok();
                runtime::clock::sleep(Duration::from_secs(50)).await;
            }
            let cut_off = rows::Trace::key(&TraceId::parse(&id(9)).unwrap());
            site.table.delete(&cut_off, &Condition::Always).await.unwrap();
            set_tag(&site.server, "0", "1d").await;
            runtime::clock::sleep(Duration::from_mins(2)).await;
            for _ in 0..2 {
                remove(&site.table, &ArtifactStore::default()).await.unwrap();
                runtime::clock::sleep(Duration::from_mins(2)).await;
            }
            assert_eq!(named(&site, &[1, 2, 9]).await, Vec::<String>::new(), "{how}");
        }
    });
}
