//! Versions that are created from logged models. The test writes the items of the logged models in
//! the form in which the tracking function writes them.

use key_schema::rows;
use mlflow_api::{ExperimentId, ModelId};
use serde_json::{Value, json};
use table::{Condition, Item, Map, Update, map, number, text};

use crate::server::{ROOT, Site};

/// Creates a logged model of a run, and returns its id and the URI of its artifacts.
async fn logged(site: &Site) -> (String, String) {
    let experiment = ExperimentId::from_number(7).unwrap();
    let id = ModelId::new(1_700_000_000_000, experiment, 5);
    let location = format!("s3://elsewhere/7/models/{id}/artifacts");
    let item = Item::new(rows::LoggedModel::key(&experiment, &id))
        .with("artifact_uri", text(&location))
        .with("source_run", text("the-run"))
        .with("name", text("model"))
        .with("model_type", text(""))
        .with("status", number(2))
        .with("stage", text("active"))
        .with("created", number(1))
        .with("updated", number(1))
        .with("params", map(Map::new()))
        .with("tags", map(Map::new()));
    site.table.put(item, &Condition::Always).await.unwrap();
    (id.to_string(), location)
}

async fn listed(site: &Site) -> Value {
    let items = site.dump().await;
    let model = items.iter().find(|(key, _)| key.contains("LM#")).unwrap().1;
    serde_json::from_str(model["tags"]["M"]["mlflow.modelVersions"]["S"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_version_of_a_logged_model_has_its_artifacts_and_its_run() {
    let site = Site::new().await;
    site.faults.lose_answer_every(3);
    let server = &site.server;
    let (id, location) = logged(&site).await;
    server.model("m").await;
    for (source, download) in [
        (format!("models:/{id}"), location.clone()),
        (format!("{location}/part"), format!("{location}/part")),
        ("s3://bucket/other/x".to_owned(), "s3://bucket/other/x".to_owned()),
    ] {
        let new = json!({ "name": "m", "source": source, "model_id": id });
        let version = server.post("model-versions/create", new).await.ok()["model_version"].clone();
        assert_eq!((version["source"].as_str(), version["run_id"].as_str()), (Some(source.as_str()), Some("the-run")));
        let number = version["version"].as_str().unwrap();
        let found = server.get("model-versions/get-download-uri", &[("name", "m"), ("version", number)]).await.ok();
        assert_eq!(found["artifact_uri"], download);
    }
    let expected: Vec<_> = (1..=3).map(|version| json!({ "name": "m", "version": version })).collect();
    assert_eq!(listed(&site).await, Value::from(expected));
}

#[tokio::test]
async fn a_deleted_logged_model_is_no_source_and_its_tag_is_a_list() {
    let site = Site::new().await;
    let server = &site.server;
    let (id, _) = logged(&site).await;
    server.model("m").await;
    let source = || json!({ "name": "m", "source": format!("models:/{id}"), "model_id": id });
    let key = rows::LoggedModel::key(&ExperimentId::from_number(7).unwrap(), &ModelId::parse(&id).unwrap());
    let tagged = |tag: &str| Update::new(key.clone()).set(("tags", "mlflow.modelVersions"), text(tag));
    site.table.update(&tagged("")).await.unwrap();
    server.post("model-versions/create", source()).await.ok();
    // A client has replaced the value of the tag, so that it is no longer a list of versions.
    site.table.update(&tagged("no list")).await.unwrap();
    let before = site.dump().await;
    server.post("model-versions/create", source()).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(site.dump().await, before);
    assert_eq!(server.version("m").await, 2);
    site.table.update(&Update::new(key).set("stage", text("deleted"))).await.unwrap();
    server.post("model-versions/create", source()).await.refused(400, "INVALID_PARAMETER_VALUE");
}

#[tokio::test]
async fn what_is_not_of_the_logged_model_is_refused() {
    let site = Site::new().await;
    let (id, location) = logged(&site).await;
    site.other.model("m").await;
    let before = site.dump().await;
    let unknown = ModelId::new(1_700_000_000_000, ExperimentId::from_number(7).unwrap(), 6).to_string();
    for (source, model_id, status) in [
        (format!("{location}/../x"), id.as_str(), 400),
        (format!("models:/{unknown}"), &id, 400),
        (format!("models:/{unknown}"), &unknown, 400),
        (format!("models:/{id}"), "", 400),
        ("runs:/the-run/x".to_owned(), &id, 400),
        ("/local".to_owned(), &id, 400),
        ("mlflow-artifacts:/x".to_owned(), &id, 400),
        ("s3://bucket/artifacts/x".to_owned(), &id, 400),
        ("s3://bucket/other/x".to_owned(), &unknown, 404),
    ] {
        let new = json!({ "name": "m", "source": source, "model_id": model_id });
        assert_eq!(site.server.post("model-versions/create", new).await.status, status, "{source}");
    }
    assert_eq!(site.dump().await, before);
}

/// The server sends files from its own bucket to callers who may read a version, but only files of
/// the run or the logged model that the version names.
#[tokio::test]
async fn an_object_of_the_server_is_only_sent_as_part_of_what_the_version_names() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    let object = format!("{ROOT}/7/another-run/artifacts/model");
    let create = async |body: Value| server.post("model-versions/create", body).await;
    let foreign = json!({ "name": "m", "source": object, "run_id": "some-run" });
    create(foreign).await.refused(400, "INVALID_PARAMETER_VALUE");
    // Stock MLflow records these sources, and so does this server.
    create(json!({ "name": "m", "source": object })).await.ok();
    create(json!({ "name": "m", "source": "models:/m/1" })).await.ok();
    for version in ["1", "2"] {
        let arguments = [("name", "m"), ("version", version), ("path", "MLmodel")];
        let found = server.get_at("/model-versions/get-artifact", &arguments).await;
        let message = found.refused(501, "NOT_IMPLEMENTED");
        assert!(message.starts_with("This server cannot read"), "{message}");
        let uri = server.get("model-versions/get-download-uri", &arguments[..2]).await.ok();
        assert_eq!(uri["artifact_uri"], object);
    }
}
