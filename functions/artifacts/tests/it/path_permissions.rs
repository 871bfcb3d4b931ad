//! Permissions for paths. A path belongs to the experiment that it names, and callers without
//! permissions on this experiment are rejected before anything is read or written.

use std::path::Path;
use std::sync::Arc;

use access::{Action, Guard, Resource, Visibility};
use artifact_store::ArtifactStore;
use mlflow_api::ExperimentId;
use serde_json::json;
use table::Table;
use test_site::{TestAuthorizer, TestClient, TestEnvironment};

use crate::server::PROXY;

/// Returns the artifacts function over a directory, for callers with only these permissions.
fn guarded(table: &Table, directory: &Path, allowed: Vec<(Action, Guard)>) -> TestClient {
    let store = artifacts::store::Store::new(table.clone(), ArtifactStore::in_directory(directory));
    let only = TestAuthorizer::new(Visibility::Everything, move |wanted| allowed.contains(wanted));
    TestClient(service::router(artifacts::routes(), &service::FunctionContext::new(store, Arc::new(only))))
}

/// Returns the status codes of the proxy's endpoints below a prefix, for endpoints that write, for
/// endpoints that read, and for deletion.
async fn statuses(api: &TestClient, ajax: bool, path: &str) -> ([u16; 4], [u16; 3], u16) {
    let served = if ajax { PROXY.replace("/api/", "/ajax-api/") } else { PROXY.to_owned() };
    let base = served.strip_suffix("/artifacts").unwrap();
    let call = async |method: &str, path: String, body: &str| api.call_at(method, &path, body.to_owned()).await.status;
    let parts = json!({ "path": "x", "num_parts": 1, "upload_id": "u", "parts": [{ "part_number": 1, "etag": "e" }] });
    let parts = parts.to_string();
    let writes = [
        call("PUT", format!("{served}/{path}"), "x").await,
        call("POST", format!("{base}/mpu/create/{path}"), &parts).await,
        call("POST", format!("{base}/mpu/complete/{path}"), &parts).await,
        call("POST", format!("{base}/mpu/abort/{path}"), &parts).await,
    ];
    let reads = [
        call("GET", format!("{served}/{path}"), "").await,
        api.get_at(&served, &[("path", path)]).await.status,
        call("GET", format!("{base}/presigned/{path}"), "").await,
    ];
    (writes, reads, call("DELETE", format!("{served}/{path}"), "").await)
}

#[tokio::test]
async fn a_path_needs_the_right_to_its_experiment_or_to_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let table = TestEnvironment::new().await.table;
    let api = |allowed| guarded(&table, directory.path(), allowed);
    let seven = Guard::Experiment(ExperimentId::parse("7").unwrap());
    let all = Guard::Workspace(Resource::Experiment);
    // A directory supports neither multipart uploads nor presigned URLs. Only callers with
    // permission on the path get the corresponding error (501).
    let (may_write, may_read) = ([200, 501, 501, 501], [200, 200, 501]);
    let editor = api(vec![(Action::Read, seven.clone()), (Action::Update, seven.clone())]);
    let reader = api(vec![(Action::Read, seven)]);
    let manager = api([Action::Read, Action::Update, Action::Delete].map(|action| (action, all.clone())).to_vec());
    let nobody = api(Vec::new());
    for ajax in [false, true] {
        assert_eq!(statuses(&editor, ajax, "7/r/artifacts/x").await, (may_write, may_read, 403));
        assert!(directory.path().join("7/r/artifacts/x").is_file());
        for path in ["8/r/artifacts/x", "007/x", "models/x", "x", "7%2f..%2f8", "77/x"] {
            let refused = if path.contains("..") { 400 } else { 403 };
            assert_eq!(statuses(&editor, ajax, path).await, ([refused; 4], [refused; 3], refused), "{path}");
        }
        assert_eq!(statuses(&reader, ajax, "7/r/artifacts/x").await, ([403; 4], may_read, 403));
        assert_eq!(statuses(&nobody, ajax, "7/r/artifacts/x").await, ([403; 4], [403; 3], 403));
        assert_eq!(statuses(&manager, ajax, "models/x").await, (may_write, may_read, 200));
        let served = if ajax { PROXY.replace("/api/", "/ajax-api/") } else { PROXY.to_owned() };
        assert_eq!(editor.get_at(&served, &[]).await.status, 403);
        assert_eq!(manager.get_at(&served, &[]).await.status, 200);
    }
}

#[tokio::test]
async fn who_may_read_no_runs_is_shown_none_of_their_ids() {
    let directory = tempfile::tempdir().unwrap();
    let run = "0123456789abcdef".repeat(2);
    for place in [format!("7/{run}/artifacts"), "7/models/m-1/artifacts".to_owned()] {
        std::fs::create_dir_all(directory.path().join(place)).unwrap();
    }
    std::fs::write(directory.path().join(format!("7/{run}/artifacts/x")), "x").unwrap();
    let table = TestEnvironment::new().await.table;
    for (kind, expected, statuses) in [
        (Resource::Trace, vec![run.as_str(), "models"], [200, 200]),
        (Resource::Run, vec!["models"], [403, 403]),
        (Resource::LoggedModel, vec![run.as_str(), "models"], [200, 200]),
    ] {
        let store = artifacts::store::Store::new(table.clone(), ArtifactStore::in_directory(directory.path()));
        let judge = TestAuthorizer::of_asks(Visibility::Everything, move |ask| ask.kind != kind);
        let api =
            TestClient(service::router(artifacts::routes(), &service::FunctionContext::new(store, Arc::new(judge))));
        let listed = api.get_at(PROXY, &[("path", "7")]).await.ok();
        let mut names: Vec<_> =
            listed["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{kind:?}");
        let of_run = [
            api.get_at(PROXY, &[("path", &format!("7/{run}"))]).await.status,
            api.get_at(&format!("{PROXY}/7/{run}/artifacts/x"), &[]).await.status,
        ];
        assert_eq!(of_run, statuses, "{kind:?}");
        assert_eq!(api.call_at("DELETE", &format!("{PROXY}/7"), String::new()).await.status, 403, "{kind:?}");
    }
}

/// In a multipart upload, the name of the file is in the body. It must not refer to another
/// experiment.
#[tokio::test]
async fn the_name_of_an_upload_in_parts_changes_nothing_of_whose_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let table = TestEnvironment::new().await.table;
    let seven = Guard::Experiment(ExperimentId::parse("7").unwrap());
    let api = guarded(&table, directory.path(), vec![(Action::Update, seven)]);
    let base = PROXY.strip_suffix("/artifacts").unwrap();
    for (place, name, expected) in [
        ("7", "8/x", 501),
        ("7", "../8/x", 501),
        ("7", "..", 400),
        ("7", "..%2f8", 400),
        ("8", "x", 403),
        ("8", "../7/x", 403),
        (".", "7", 501),
        (".", "7/x", 403),
    ] {
        let parts = json!([{ "part_number": 1, "etag": "e" }]);
        let body = json!({ "path": name, "num_parts": 1, "upload_id": "u", "parts": parts }).to_string();
        for step in ["create", "complete", "abort"] {
            let answer = api.call_at("POST", &format!("{base}/mpu/{step}/{place}"), body.clone()).await;
            assert_eq!(answer.status, expected, "{step} {place} {name}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn artifacts_of_a_run_or_a_model_need_the_right_to_its_experiment() {
    let directory = tempfile::tempdir().unwrap();
    let table = TestEnvironment::new().await.table;
    let tracking = tracking::store::Store::new(table.clone(), "mlflow-artifacts:/");
    let everything = TestClient(tracking::router(&tracking, test_site::everybody()));
    let text =
        |answer: &serde_json::Value, pointer: &str| answer.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let mut made = Vec::new();
    for name in ["mine", "of another"] {
        let new = everything.post("experiments/create", json!({ "name": name })).await.ok();
        let experiment = text(&new, "/experiment_id");
        let run = everything.post("runs/create", json!({ "experiment_id": experiment })).await.ok();
        let model = everything.post("logged-models", json!({ "experiment_id": experiment, "name": "m" })).await.ok();
        made.push((experiment, text(&run, "/run/info/run_id"), text(&model, "/model/info/model_id")));
    }
    let mine = Guard::Experiment(ExperimentId::parse(&made[0].0).unwrap());
    let may = |actions: &[Action]| {
        let allowed = actions.iter().map(|action| (*action, mine.clone())).collect();
        guarded(&table, directory.path(), allowed)
    };
    // Returns the statuses of endpoints that write, and those of endpoints that read. Presigned
    // URLs exist only for files in a bucket, so their endpoints respond with 400 to permitted
    // callers.
    let statuses = async |api: &TestClient, (_, run, model): &(String, String, String)| {
        let post = async |path: &str, body: serde_json::Value| api.post(path, body).await.status;
        let (of_run, of_model) = (json!({ "run_id": run, "path": "x" }), json!({ "model_id": model, "path": "x" }));
        let upload = format!("/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=x");
        let writes = [
            api.call_at("POST", &upload, "x".to_owned()).await.status,
            post("artifacts/presigned-upload-url", of_run.clone()).await,
            post("artifacts/presigned-upload-url", of_model).await,
        ];
        let list = "mlflow/artifacts/list";
        let reads = [
            api.get_at(&format!("/api/2.0/{list}"), &[("run_id", run)]).await.status,
            api.get_at(&format!("/ajax-api/2.0/{list}"), &[("run_id", run)]).await.status,
            api.get_at("/get-artifact", &[("run_uuid", run), ("path", "x")]).await.status,
            post("artifacts/presigned-download-url", of_run).await,
        ];
        (writes, reads)
    };
    let editor = may(&[Action::Read, Action::Update]);
    assert_eq!(statuses(&editor, &made[0]).await, ([200, 400, 400], [200, 200, 200, 400]));
    assert_eq!(statuses(&editor, &made[1]).await, ([403; 3], [403; 4]));
    assert_eq!(statuses(&may(&[Action::Read]), &made[0]).await, ([403; 3], [200, 200, 200, 400]));
    assert_eq!(statuses(&may(&[]), &made[0]).await, ([403; 3], [403; 4]));
}
