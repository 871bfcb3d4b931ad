//! A server in the test's own process, on a table of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use key_schema::Key;
use key_schema::definition::{PK, SK};
use key_schema::rows::RowDescription;
use registry::store::Store;
use serde_json::{Value, json};
use table::{Retry, Table};
use tower::ServiceExt;

pub(crate) const ROOT: &str = "s3://bucket/artifacts";
pub(crate) const TABLE: &str = "mlflow";

/// One process of the server.
#[derive(Clone)]
pub(crate) struct Server {
    router: Router,
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A server over an engine of its own, with faults between them.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) faults: FaultInjector,
    /// The table without faults.
    pub(crate) table: Table,
    /// The server whose requests meet the faults.
    pub(crate) server: Server,
    /// Another process on the same table, whose requests meet none.
    pub(crate) other: Server,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let table = Table::new(engine.client(), TABLE);
        table.create_if_missing().await.unwrap();
        let faults = FaultInjector::new(engine.http_client());
        let server = Server::on(&Table::new(faults.client(), TABLE));
        let other = Server::on(&table);
        Self { engine, faults, table, server, other }
    }

    /// A server whose requests meet the faults and that soon gives up.
    pub(crate) fn impatient(&self) -> Server {
        let short = Duration::from_millis(1);
        let retry = Retry { attempts: 2, first_pause: short, longest_pause: short, ..Retry::default() };
        Server::on(&Table::new(self.faults.client(), TABLE).with_retry(retry))
    }

    /// All items, by their keys, as DynamoDB writes them. How often a model was written to is left out, as a write that is
    /// repeated counts twice, and nonces, which are drawn. None holds what is not declared of its row.
    pub(crate) async fn dump(&self) -> BTreeMap<String, Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        let undeclared: Vec<_> = items.iter().flat_map(undeclared).collect();
        assert_eq!(undeclared, Vec::<String>::new());
        let named = items.into_iter().map(|mut item| {
            let Key { pk, sk } = key_of(&item);
            item.as_object_mut().unwrap().remove("edits");
            item.as_object_mut().unwrap().remove("nonce");
            (format!("{pk} {sk}"), item)
        });
        named.collect()
    }
}

/// The key of an item as DynamoDB writes it.
fn key_of(item: &Value) -> Key {
    let part = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
    Key { pk: part(PK), sk: part(SK) }
}

/// What of an item `key-schema` does not declare of its row.
fn undeclared(item: &Value) -> Vec<String> {
    let code = |value: &'_ Value| value.as_object().unwrap().keys().next().unwrap().clone();
    let attributes: Vec<_> =
        item.as_object().unwrap().iter().map(|(name, value)| (name.clone(), code(value))).collect();
    RowDescription::undeclared(&key_of(item), attributes.iter().map(|(name, code)| (name.as_str(), code.as_str())))
}

impl Server {
    pub(crate) fn on(table: &Table) -> Self {
        Self { router: registry::router(&Store::new(table.clone(), ROOT)) }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        self.call_text(method, path, body.to_string()).await
    }

    pub(crate) async fn call_text(&self, method: &str, path: &str, body: String) -> Answer {
        let request = Request::builder().method(method).uri(format!("/api/2.0/mlflow/{path}"));
        let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(body));
        self.send(request.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str, body: Value) -> Answer {
        self.call("DELETE", path, body).await
    }

    pub(crate) async fn get(&self, path: &str, arguments: &[(&str, &str)]) -> Answer {
        let arguments: Vec<_> =
            arguments.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let uri = format!("/api/2.0/mlflow/{path}?{}", arguments.join("&"));
        self.send(Request::get(uri).body(Body::empty()).unwrap()).await
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
        Answer { status, body: serde_json::from_slice(&body).unwrap_or_else(|_| text()) }
    }

    pub(crate) async fn model(&self, name: &str) {
        self.post("registered-models/create", json!({ "name": name })).await.ok();
    }

    /// Creates a version and returns its number.
    pub(crate) async fn version(&self, name: &str) -> u32 {
        self.version_of_run(name, "").await
    }

    pub(crate) async fn version_of_run(&self, name: &str, run: &str) -> u32 {
        let new = json!({ "name": name, "source": format!("{ROOT}/model"), "run_id": run });
        let answer = self.post("model-versions/create", new).await.ok();
        answer["model_version"]["version"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn model_of(&self, name: &str) -> Answer {
        self.get("registered-models/get", &[("name", name)]).await
    }

    pub(crate) async fn version_at(&self, name: &str, version: u32) -> Answer {
        self.get("model-versions/get", &[("name", name), ("version", &version.to_string())]).await
    }

    pub(crate) async fn by_alias(&self, name: &str, alias: &str) -> Answer {
        self.get("registered-models/alias", &[("name", name), ("alias", alias)]).await
    }

    pub(crate) async fn set_alias(&self, name: &str, alias: &str, version: u32) -> Answer {
        let body = json!({ "name": name, "alias": alias, "version": version.to_string() });
        self.post("registered-models/alias", body).await
    }

    pub(crate) async fn set_version_tag(&self, name: &str, version: u32, key: &str, value: &str) -> Answer {
        let body = json!({ "name": name, "version": version.to_string(), "key": key, "value": value });
        self.post("model-versions/set-tag", body).await
    }

    pub(crate) async fn set_tag(&self, name: &str, key: &str, value: &str) -> Answer {
        self.post("registered-models/set-tag", json!({ "name": name, "key": key, "value": value })).await
    }

    pub(crate) async fn transition(&self, name: &str, version: u32, stage: &str, archive: bool) -> Answer {
        let body = json!({
            "name": name, "version": version.to_string(), "stage": stage, "archive_existing_versions": archive,
        });
        self.post("model-versions/transition-stage", body).await
    }

    pub(crate) async fn rename(&self, name: &str, new_name: &str) -> Answer {
        self.post("registered-models/rename", json!({ "name": name, "new_name": new_name })).await
    }

    /// The versions a filter finds, as name and number, in the order of both.
    pub(crate) async fn versions(&self, filter: &str) -> Vec<(String, u32)> {
        let order = [("filter", filter), ("order_by", "name"), ("order_by", "version_number")];
        let found = self.get("model-versions/search", &order).await.ok();
        let versions = found["model_versions"].as_array().cloned().unwrap_or_default();
        versions.iter().map(|version| (text(version, "name"), text(version, "version").parse().unwrap())).collect()
    }

    /// The names of models on all pages of a search.
    pub(crate) async fn models(&self, arguments: &[(&str, &str)]) -> Vec<String> {
        let mut names = Vec::new();
        let mut token = String::new();
        loop {
            let mut arguments = arguments.to_vec();
            arguments.push(("page_token", &token));
            let page = self.get("registered-models/search", &arguments).await.ok();
            let models = page["registered_models"].as_array().cloned().unwrap_or_default();
            names.extend(models.iter().map(|model| text(model, "name")));
            match page["next_page_token"].as_str() {
                Some(next) => next.clone_into(&mut token),
                None => return names,
            }
        }
    }
}

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// A refusal with this code; its message.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> String {
        let found = (self.status, self.body["error_code"].as_str().unwrap_or_default());
        assert_eq!(found, (status, code), "{}", self.body);
        self.body["message"].as_str().unwrap().to_owned()
    }

    /// The refusal of what is not there.
    #[track_caller]
    pub(crate) fn missing(self) {
        self.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

/// The tags of a model or a version, by key.
pub(crate) fn tags(entity: &Value) -> BTreeMap<String, String> {
    let tags = entity["tags"].as_array().cloned().unwrap_or_default();
    tags.iter().map(|tag| (text(tag, "key"), text(tag, "value"))).collect()
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}
