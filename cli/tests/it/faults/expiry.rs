//! Removal of traces past their retention, with a fault at each request. Other traces are not
//! affected, and the next removal ends in the same state as an undisturbed one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use artifact_store::ArtifactStore;
use entities::trace_retention::TraceRetentionCache;
use mlflow_api::proto_json::time_text;
use mlflow_api::{TraceId, Workspace};
use retention::Retention;
use runtime::clock::now_ms;
use serde_json::{Value, json};
use table::{Condition, Table};
use tempfile::TempDir;
use test_site::{BACKGROUND_FAULTS, ROOT, TableDump, TestClient, TestEnvironment, tried};
use trace_blocks::{TracePartition, day_of};

use crate::faults::packing::{counts, keys, pass, timed};
use crate::faults::removal::Silent;
use crate::faults::trace_invariants;
use crate::faults::write_faults::view_cache::Seen;
use crate::faults::write_faults::{client_view, faulty_write};

const DAY: i64 = 86_400_000;
/// Retention in days, much longer than this test lasts by its simulated clock.
const KEPT: i64 = 100;
/// Traces past their retention, as numbers and ages in days: four traces of one day, and one trace
/// of the day before.
const EXPIRED: [(u32, i64); 5] = [(1, 200), (2, 200), (3, 200), (4, 200), (5, 201)];
/// Traces within their retention: one started today, the other is in another experiment.
const KEPT_TRACES: [u32; 2] = [6, 7];
/// A trace without a document, because its export was interrupted.
const CUT_OFF: u32 = 4;

/// Removes traces past their retention and files of removed traces, like `gc`.
pub(crate) async fn remove(table: &Table, artifacts: &ArtifactStore) -> Result<(), String> {
    let retention = Retention::new(table.clone(), artifacts.clone());
    let removed = async {
        retention.remove_expired_traces(&Workspace::default(), &Silent).await?;
        retention.remove_trace_files(&Workspace::default(), &Silent).await
    };
    removed.await.map_err(|error| format!("{error:?}"))
}

/// Returns a predicate for trace partitions. It is true if some traces of the partition's day are
/// within their retention.
pub(crate) async fn is_kept(site: &TestEnvironment) -> impl Fn(&TracePartition) -> bool + use<> {
    let partitions = keys(site).await.iter().filter_map(TracePartition::of_key).collect::<BTreeSet<_>>();
    let experiments: BTreeSet<_> = partitions.iter().map(|partition| partition.experiment).collect();
    let since = TraceRetentionCache::new(site.table.clone()).since(experiments).await.unwrap();
    move |partition| since.of(partition.experiment).is_none_or(|since| partition.day >= day_of(since))
}

pub(crate) fn id(number: u32) -> String {
    format!("tr-{number:032x}")
}

pub(crate) async fn sent(api: &TestClient, method: &str, path: &str, body: Value) -> Value {
    api.call_at(method, path, body.to_string()).await.ok()
}

/// Creates a trace with two spans in a session.
pub(crate) async fn make(api: &TestClient, experiment: &str, number: u32, began: i64) {
    let nanos = |ms: i64| (ms * 1_000_000).to_string();
    let span = |span: i64, parent: &str| {
        json!({
            "traceId": &id(number)[3..], "spanId": format!("{span:016x}"), "parentSpanId": parent, "name": "step",
            "startTimeUnixNano": nanos(began + span - 1), "endTimeUnixNano": nanos(began + 9),
        })
    };
    let spans = json!([span(1, ""), span(2, "0000000000000001")]);
    let export = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
    sent(api, "POST", &format!("/v1/traces?experiment={experiment}"), export).await;
    let info = json!({
        "trace_id": id(number), "request_time": time_text(began), "state": "OK",
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        "trace_metadata": { "mlflow.trace.session": "s" },
    });
    sent(api, "POST", "/api/3.0/mlflow/traces", json!({ "trace": { "trace_info": info } })).await;
}

/// A site with traces in blocks, traces changed since they were packed, a trace without a document,
/// and files of some traces. Some of the traces are past their retention.
struct Ground {
    site: TestEnvironment,
    directory: TempDir,
    artifacts: ArtifactStore,
}

impl Ground {
    async fn new() -> Self {
        let site = TestEnvironment::new().await;
        let store = tracking::store::Store::new(site.table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        let api = faulty_write::api(&site.table);
        let directory = tempfile::tempdir().unwrap();
        let location = directory.path().join("1").to_str().unwrap().to_owned();
        let created = api.post("experiments/create", json!({ "name": "e", "artifact_location": location })).await.ok();
        let experiment = created["experiment_id"].as_str().unwrap();
        let now = now_ms();
        for (number, days) in EXPIRED {
            make(&api, experiment, number, now - days * DAY).await;
        }
        make(&api, experiment, KEPT_TRACES[0], now).await;
        make(&api, "0", KEPT_TRACES[1], now - EXPIRED[0].1 * DAY).await;
        let judged = json!({ "assessment": {
            "assessment_name": "good", "feedback": { "value": true }, "metadata": { "mlflow.trace.session": "s" },
        } });
        sent(&api, "POST", &format!("/api/3.0/mlflow/traces/{}/assessments", id(1)), judged).await;
        let cut_off = TraceId::parse(&id(CUT_OFF)).unwrap();
        site.table.delete(&key_schema::rows::Trace::key(&cut_off), &Condition::Always).await.unwrap();
        pass(&site).await;
        let counted = counts(&site).await;
        assert!(counted.marks == 1 && counted.blocks == 5, "{counted:?}");
        let tags = format!("/api/3.0/mlflow/traces/{}/tags", id(3));
        sent(&api, "PATCH", &tags, json!({ "key": "k", "value": "v" })).await;
        runtime::clock::sleep(std::time::Duration::from_mins(15)).await;
        let kept = json!({ "experiment_id": experiment, "key": "mlflow.trace.retention", "value": format!("{KEPT}d") });
        api.post("experiments/set-experiment-tag", kept).await.ok();
        let artifacts = ArtifactStore::in_directory(directory.path());
        Self { site, directory, artifacts }
    }

    fn file(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("1/traces/{}/artifacts/traces.json", id(number)))
    }

    /// Writes files of a trace past its retention, of one within it, and of one that a client has
    /// deleted.
    fn put_files(&self) {
        for number in [2, KEPT_TRACES[0], 99] {
            std::fs::create_dir_all(self.file(number).parent().unwrap()).unwrap();
            std::fs::write(self.file(number), "{}").unwrap();
        }
    }

    fn check_files(&self) {
        assert_eq!([2, KEPT_TRACES[0], 99].map(|number| self.file(number).exists()), [false, true, false]);
    }
}

/// Returns all items, except the leases, requests and schedules of packing.
async fn left(site: &TestEnvironment) -> TableDump {
    let passing = |key: &str| key.ends_with(" L") || key.ends_with(" P") || key.starts_with("LATER#");
    site.dump().await.into_iter().filter(|(key, _)| !passing(key)).collect()
}

/// Checks the invariants during a removal: clients find the same traces as before, and the items of
/// these traces are unchanged.
async fn check(ground: &Ground, site: &TestEnvironment, seen: &Value, kept: &TableDump) -> Result<(), String> {
    trace_invariants::check(site, is_kept(site).await).await?;
    let found = client_view::of(&faulty_write::api(&site.table), "/traces").await?;
    if found != *seen {
        return Err(format!("found {found}"));
    }
    let items = left(site).await;
    if let Some((key, _)) = kept.iter().find(|(key, item)| items.get(*key) != Some(item)) {
        return Err(format!("{key} is not as it was"));
    }
    if ground.file(KEPT_TRACES[0]).exists() { Ok(()) } else { Err("a file is gone".to_owned()) }
}

/// Checks the invariants after an interrupted removal, and the state after the next one.
async fn ends(ground: &Ground, site: &TestEnvironment, seen: &Value, after: &TableDump) -> Result<(), String> {
    check(ground, site, seen, after).await?;
    remove(&site.table, &ground.artifacts).await?;
    ground.check_files();
    if left(site).await == *after { Ok(()) } else { Err("the next removal leaves something else".to_owned()) }
}

#[test]
fn an_expiry_survives_a_fault_at_each_of_its_requests() {
    timed(async {
        let ground = Ground::new().await;
        let seen = client_view::of(&faulty_write::api(&ground.site.table), "/traces").await.unwrap();
        assert_eq!(seen["infos"].as_array().unwrap().len(), KEPT_TRACES.len());
        ground.put_files();
        let before = left(&ground.site).await;
        let clean = ground.site.copy();
        clean.faults.keep_order();
        remove(&clean.faulty(), &ground.artifacts).await.unwrap();
        ground.check_files();
        let after = left(&clean).await;
        let named = |number: u32| after.keys().any(|key| key.contains(&id(number)));
        assert!(EXPIRED.iter().all(|(number, _)| !named(*number)), "{:?}", after.keys());
        assert!(KEPT_TRACES.iter().all(|number| named(*number)));
        assert!(after.iter().all(|(key, item)| before.get(key) == Some(item)));
        check(&ground, &clean, &seen, &after).await.unwrap();
        let requests = clean.faults.order();
        let (tables, mut met) = (Seen::<()>::of(&ground.site, "").await, BTreeSet::new());
        assert!(requests.len() > 20, "{requests:?}");
        for (nth, operation) in (1..).zip(&requests) {
            for (trouble, calls) in tried(nth, operation, &BACKGROUND_FAULTS) {
                let course = format!("{trouble:?} at {nth} for {calls}");
                let wrong = |what: String| panic!("{course}: {what}");
                ground.put_files();
                let site = ground.site.copy();
                site.faults.trouble_at(trouble, nth, calls);
                let outcome = remove(&site.impatient(), &ground.artifacts).await;
                site.faults.work_again();
                let is_there = [2, 99].map(|number| ground.file(number).exists());
                if calls == 1 {
                    outcome.unwrap_or_else(|error| wrong(format!("a single fault has to be tolerated, but {error}")));
                    assert!(left(&site).await == after, "{course}");
                    ground.check_files();
                } else if met.insert((tables.state(&site).await.kind, is_there)) {
                    // The remaining steps depend only on the content of the table and on the files,
                    // so they are skipped if both have occurred before.
                    let packed = site.copy();
                    ends(&ground, &site, &seen, &after).await.unwrap_or_else(wrong);
                    ground.put_files();
                    pass(&packed).await;
                    let packed = ends(&ground, &packed, &seen, &after).await;
                    packed.unwrap_or_else(|what| wrong(format!("packed in between: {what}")));
                }
            }
        }
    });
}
