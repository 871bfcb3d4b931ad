//! Who may do what: a path is its experiment's, and everybody else is refused before a byte is read or written.

use std::sync::Arc;

use access::{Action, Guarded, Resource, Visible};
use artifact_store::Artifacts;
use mlflow_api::ExperimentId;
use test_site::{Api, Judge, Site};

use crate::server::PROXY;

#[tokio::test]
async fn a_path_needs_the_right_to_its_experiment_or_to_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let table = Site::new().await.table;
    let api = |allowed: Vec<(Action, Guarded)>| {
        let store = artifacts::store::Store::new(table.clone(), Artifacts::in_directory(directory.path()));
        let only = Judge::new(Visible::Everything, move |wanted| allowed.contains(wanted));
        Api(service::router(artifacts::routes(), &service::Frame::guarded(store, Arc::new(only))))
    };
    let seven = Guarded::Experiment(ExperimentId::parse("7").unwrap());
    let all = Guarded::Workspace(Resource::Experiment);
    let statuses = async |api: &Api, path: &str| {
        let put = api.call_at("PUT", &format!("{PROXY}/{path}"), "x".to_owned()).await.status;
        let get = api.get_at(&format!("{PROXY}/{path}"), &[]).await.status;
        let list = api.get_at(PROXY, &[("path", path)]).await.status;
        let delete = api.call_at("DELETE", &format!("{PROXY}/{path}"), String::new()).await.status;
        [put, get, list, delete]
    };
    let editor = api(vec![(Action::Read, seven.clone()), (Action::Update, seven.clone())]);
    assert_eq!(statuses(&editor, "7/r/artifacts/x").await, [200, 200, 200, 403]);
    assert!(directory.path().join("7/r/artifacts/x").is_file());
    for path in ["8/r/artifacts/x", "007/x", "models/x", "x", "7%2f..%2f8", "77/x"] {
        let refused = if path.contains("..") { 400 } else { 403 };
        assert_eq!(statuses(&editor, path).await, [refused; 4], "{path}");
    }
    assert_eq!(editor.get_at(PROXY, &[]).await.status, 403);
    let reader = api(vec![(Action::Read, seven)]);
    assert_eq!(statuses(&reader, "7/r/artifacts/x").await, [403, 200, 200, 403]);
    let manager = api([Action::Read, Action::Update, Action::Delete].map(|action| (action, all.clone())).to_vec());
    assert_eq!(statuses(&manager, "models/x").await, [200; 4]);
    assert_eq!(manager.get_at(PROXY, &[]).await.status, 200);
}
