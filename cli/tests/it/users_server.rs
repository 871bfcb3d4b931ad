//! Servers with users, and their clients.

use std::sync::Arc;

use access::Authorizer;
use artifact_store::ArtifactStore;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Environment;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{UserName, Workspace};
use serde_json::{Value, json};
use table::Table;
use test_site::{ROOT, TABLE, TestClient, TestEnvironment, TestResponse};

use crate::test_server::of_table;

pub(crate) const PASSWORD: &str = "correct horse battery";

/// A user, and the server process that the user's requests are sent to.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) api: TestClient,
    pub(crate) name: &'static str,
    pub(crate) password: &'static str,
}

/// Starts another process over these tables.
pub(crate) async fn process(table: &Table, access: &Table, default: PermissionLevel) -> TestClient {
    process_for(table, access, default, None).await
}

/// Starts another process. If `creators` is given, creating experiments and models requires the
/// role of this name.
pub(crate) async fn process_for(
    table: &Table,
    access: &Table,
    default: PermissionLevel,
    creators: Option<&str>,
) -> TestClient {
    let nobody: Arc<dyn Authorizer> = access::AllowAll::shared();
    let around = Environment::new(nobody, table.clone()).with_artifacts(ROOT, ArtifactStore::below(ROOT));
    let around = around.with_users(table.clone(), access.clone(), default).with_creators(creators.map(str::to_owned));
    TestClient(domain::mount(&of_table(), &[], &around).await.unwrap())
}

pub(crate) struct Server {
    pub(crate) site: TestEnvironment,
    pub(crate) access: Table,
    /// Store for writes that bypass the server.
    pub(crate) users: auth::store::Store,
    pub(crate) admin: Client,
}

impl Server {
    pub(crate) async fn new(default: PermissionLevel) -> Self {
        let site = TestEnvironment::new().await;
        let access = site.table.beside(format!("{TABLE}-access"));
        access.create_access_if_missing().await.unwrap();
        let tracking = tracking::store::Store::new(site.table.clone(), ROOT);
        tracking.experiment_create_default(&Workspace::default()).await.unwrap();
        let basic = permissions::UserAuthorizer::new(site.table.clone(), access.clone(), default);
        let users = auth::store::Store::new(site.table.clone(), access.clone(), basic);
        users.user_create(&UserName::new("admin").unwrap(), PASSWORD.to_owned(), true).await.unwrap();
        let api = process(&site.table, &access, default).await;
        Self { site, access, users, admin: Client { api, name: "admin", password: PASSWORD } }
    }

    /// Creates a user whose requests go to the same process.
    pub(crate) async fn user(&self, name: &'static str) -> Client {
        let body = json!({ "username": name, "password": PASSWORD });
        self.admin.v2("POST", "users/create", body).await.ok();
        Client { name, ..self.admin.clone() }
    }

    /// Returns a client of the same user whose requests go to another process.
    pub(crate) async fn elsewhere(&self, client: &Client, default: PermissionLevel) -> Client {
        Client { api: process(&self.site.table, &self.access, default).await, ..client.clone() }
    }

    pub(crate) async fn grant(&self, user: &Client, kind: &str, id: &str, level: &str) {
        let body = json!({ "username": user.name, "resource_type": kind, "resource_id": id, "permission": level });
        self.admin.v3("POST", "users/permissions/grant", body).await.ok();
    }

    pub(crate) async fn revoke(&self, user: &Client, kind: &str, id: &str) -> TestResponse {
        let body = json!({ "username": user.name, "resource_type": kind, "resource_id": id });
        self.admin.v3("POST", "users/permissions/revoke", body).await
    }
}

impl Client {
    pub(crate) async fn at(&self, method: &str, path: &str, body: &Value) -> TestResponse {
        let credentials = STANDARD.encode(format!("{}:{}", self.name, self.password));
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        let request = request.header(AUTHORIZATION, format!("Basic {credentials}"));
        self.api.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn v2(&self, method: &str, path: &str, body: Value) -> TestResponse {
        self.at(method, &format!("/api/2.0/mlflow/{path}"), &body).await
    }

    pub(crate) async fn v3(&self, method: &str, path: &str, body: Value) -> TestResponse {
        self.at(method, &format!("/api/3.0/mlflow/{path}"), &body).await
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let made = self.v2("POST", "experiments/create", json!({ "name": name })).await.ok();
        made["experiment_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn reads(&self, experiment: &str) -> u16 {
        self.v2("GET", &format!("experiments/get?experiment_id={experiment}"), json!({})).await.status
    }

    pub(crate) async fn found(&self) -> Vec<String> {
        let found = self.v2("POST", "experiments/search", json!({ "max_results": 100 })).await.ok();
        let experiments = found["experiments"].as_array().cloned().unwrap_or_default();
        let mut ids: Vec<_> = experiments.iter().map(|one| one["experiment_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    pub(crate) async fn permissions(&self) -> Vec<(String, String, String)> {
        let listed = self.v3("GET", "users/current/permissions", json!({})).await.ok();
        let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
        let rows = listed["permissions"].as_array().unwrap();
        rows.iter()
            .map(|row| (text(row, "resource_type"), text(row, "resource_pattern"), text(row, "permission")))
            .collect()
    }
}
