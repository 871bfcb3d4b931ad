//! The servers, and the entities in their workspaces.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use access::{
    AccessCheck, Authorizer, AuthorizerItems, Caller, EntityEvent, Guard, Identity, RequestHead, Restriction, User,
    Visibility,
};
use artifact_store::ArtifactStore;
use axum::body::Body;
use domain::Environment;
use entities::workspaces::{WorkspaceChange, Workspaces};
use futures::future::BoxFuture;
use http::Request;
use http::header::CONTENT_TYPE;
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{Error, ErrorCode, Result, UserName, Workspace};
use permissions::{Account, UserAuthorizer};
use serde_json::{Value, json};
use table::{Table, Write};
use test_site::{ROOT, TABLE, TestClient, TestEnvironment, TestResponse};

use crate::test_server::of_table;

/// The header that identifies the sender of a request in these tests.
const SENDER: &str = "x-sender";
/// The name of the administrator.
pub(super) const ADMIN: &str = "admin";
/// The workspaces.
pub(super) const WORKSPACES: [&str; 3] = ["default", "team", "other"];

/// The senders known to a server, by the value of the header. All of them have accounts.
type Senders = Arc<Mutex<HashMap<String, (UserName, Restriction)>>>;

/// The authorizer of users, but with authentication by a header instead of passwords.
struct ByHeader {
    basic: UserAuthorizer,
    access: Table,
    senders: Senders,
    /// The users that have been read.
    accounts: Mutex<HashMap<UserName, Arc<User>>>,
}

impl Authorizer for ByHeader {
    fn authenticate<'a>(&'a self, arrived: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            let sender = arrived.headers.get(SENDER).and_then(|sender| sender.to_str().ok()).unwrap_or_default();
            let known = self.senders.lock().unwrap().get(sender).cloned();
            let (name, restriction) = known.ok_or_else(|| Error::new(ErrorCode::Unauthenticated, "unknown"))?;
            let read = self.accounts.lock().unwrap().get(&name).cloned();
            let user = match read {
                Some(user) => user,
                None => Arc::new(Account::find(&self.access, &name).await?.unwrap().user),
            };
            self.accounts.lock().unwrap().insert(name, Arc::clone(&user));
            Ok(Identity { caller: Caller::User(user), restriction, ..Identity::anonymous() })
        })
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guard],
    ) -> BoxFuture<'a, Result<(Identity, AuthorizerItems)>> {
        self.basic.read(identity, table, guards)
    }

    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        self.basic.authorize(identity, asked, read)
    }

    fn visibility<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        self.basic.visibility(identity)
    }

    fn writes(&self, identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
        self.basic.writes(identity, event)
    }
}

/// A process of the server, with or without workspaces.
#[derive(Clone)]
pub(super) struct Process {
    api: TestClient,
    has_workspaces: bool,
}

impl Process {
    /// Sends a request as a sender in a workspace.
    pub(super) async fn ask(&self, sender: &str, workspace: &str, request: &Asked) -> TestResponse {
        let body = if request.body.is_null() { Body::empty() } else { Body::from(request.body.to_string()) };
        self.api.send(self.request(sender, workspace, request).body(body).unwrap()).await
    }

    fn request(&self, sender: &str, workspace: &str, request: &Asked) -> http::request::Builder {
        let built = Request::builder().method(request.method).uri(&request.path).header(SENDER, sender);
        let built = if self.has_workspaces { built.header("x-mlflow-workspace", workspace) } else { built };
        built.header(CONTENT_TYPE, "application/json")
    }

    /// Sends the span of a trace, which completes the trace.
    async fn export(&self, workspace: &str, experiment: &str, trace: &str) {
        let span = json!({
            "traceId": trace.trim_start_matches("tr-"),
            "spanId": "0000000000000001",
            "name": "s",
            "startTimeUnixNano": "1767225600000000000",
            "endTimeUnixNano": "1767225601000000000",
        });
        let request = Asked::post("/v1/traces", json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] }));
        let built = self.request(ADMIN, workspace, &request).header("x-mlflow-experiment-id", experiment);
        self.api.send(built.body(Body::from(request.body.to_string())).unwrap()).await.ok();
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: Value::Null }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: "POST", path: path.into(), body }
    }
}

/// Tables with users, files, and three workspaces whose entities have the same names.
pub(super) struct World {
    site: TestEnvironment,
    access: Table,
    files: tempfile::TempDir,
    senders: Senders,
    /// The process through which all entities are created.
    pub(super) maker: Process,
    /// The ids in each workspace.
    pub(super) ids: BTreeMap<&'static str, Ids>,
}

/// The ids of the entities in a workspace, by the test's names of the entities.
pub(super) type Ids = BTreeMap<String, String>;

impl World {
    pub(super) async fn new() -> Self {
        let site = TestEnvironment::new().await;
        let access = site.table.beside(format!("{TABLE}-access"));
        access.create_access_if_missing().await.unwrap();
        let tracking = tracking::store::Store::new(site.table.clone(), ROOT);
        tracking.experiment_create_default(&Workspace::default()).await.unwrap();
        let (files, senders) = (tempfile::tempdir().unwrap(), Senders::default());
        let maker = process(&site.table, &access, &files, &senders, PermissionLevel::NoPermissions, true).await;
        let mut world = Self { site, access, files, senders, maker, ids: BTreeMap::new() };
        let admin = UserName::new(ADMIN).unwrap();
        world.users().user_create(&admin, "correct horse battery".to_owned(), true).await.unwrap();
        world.know(ADMIN, ADMIN, Restriction::default());
        let all = Workspaces::new(world.site.table.clone());
        for workspace in WORKSPACES {
            if workspace != "default" {
                all.create(&Workspace::parse(workspace).unwrap(), &WorkspaceChange::default()).await.unwrap();
            }
            let ids = furnish(&world.maker, workspace).await;
            world.ids.insert(workspace, ids);
        }
        world
    }

    /// Mounts another process, whose caches are empty.
    pub(super) async fn process(&self, default: PermissionLevel, has_workspaces: bool) -> Process {
        process(&self.site.table, &self.access, &self.files, &self.senders, default, has_workspaces).await
    }

    fn users(&self) -> auth::store::Store {
        let basic = UserAuthorizer::new(self.site.table.clone(), self.access.clone(), PermissionLevel::NoPermissions);
        auth::store::Store::new(self.site.table.clone(), self.access.clone(), basic)
    }

    /// Creates a user, who is also a sender.
    pub(super) async fn user(&self, name: &str) {
        self.users().service_create(&UserName::new(name).unwrap()).await.unwrap();
        self.know(name, name, Restriction::default());
    }

    /// Adds a sender: a user, with credentials that are narrowed by a restriction.
    pub(super) fn know(&self, sender: &str, user: &str, restriction: Restriction) {
        let known = (UserName::new(user).unwrap(), restriction);
        self.senders.lock().unwrap().insert(sender.to_owned(), known);
    }

    /// Sends a request as the administrator, which must succeed.
    pub(super) async fn make(&self, workspace: &str, path: &str, body: Value) -> Value {
        self.maker.ask(ADMIN, workspace, &Asked::post(path, body)).await.ok()
    }
}

async fn process(
    table: &Table,
    access: &Table,
    files: &tempfile::TempDir,
    senders: &Senders,
    default: PermissionLevel,
    has_workspaces: bool,
) -> Process {
    let nobody: Arc<dyn Authorizer> = access::AllowAll::shared();
    let artifacts = ArtifactStore::in_directory(files.path());
    let around = Environment::new(nobody, table.clone()).with_artifacts(ROOT, artifacts);
    let around = around.with_users(table.clone(), access.clone(), default);
    let basic = around.user_authorizer.clone().unwrap();
    let (access, senders) = (access.clone(), Arc::clone(senders));
    let authorizer = Arc::new(ByHeader { basic, access, senders, accounts: Mutex::default() });
    let around = Environment { authorizer, ..around };
    let around = if has_workspaces { around.with_workspaces() } else { around };
    Process { api: TestClient(domain::mount(&of_table(), &[], &around).await.unwrap()), has_workspaces }
}

/// Creates one or two entities of every kind in a workspace. Returns their ids.
async fn furnish(process: &Process, workspace: &str) -> Ids {
    let mut ids = Ids::new();
    let send = async |method: &'static str, path: String, body: Value| {
        process.ask(ADMIN, workspace, &Asked { method, path, body }).await.ok()
    };
    let v2 = async |path: &str, body: Value| send("POST", format!("/api/2.0/mlflow/{path}"), body).await;
    let v3 = async |path: &str, body: Value| send("POST", format!("/api/3.0/mlflow/{path}"), body).await;
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    for name in ["e1", "e2", "gone"] {
        let made = v2("experiments/create", json!({ "name": name })).await;
        ids.insert(name.to_owned(), text(&made, "/experiment_id"));
    }
    v2("experiments/delete", json!({ "experiment_id": ids["gone"] })).await;
    for number in ["1", "2"] {
        let experiment = ids[&format!("e{number}")].clone();
        for name in ["r", "dead"] {
            let run = text(&v2("runs/create", json!({ "experiment_id": experiment })).await, "/run/info/run_id");
            v2("runs/log-metric", json!({ "run_id": run, "key": "k", "value": 1, "timestamp": 1 })).await;
            ids.insert(format!("{name}{number}"), run);
        }
        let run = ids[&format!("r{number}")].clone();
        v2("runs/delete", json!({ "run_id": ids[&format!("dead{number}")] })).await;
        let logged = json!({ "experiment_id": experiment, "name": "l", "source_run_id": run });
        let logged = text(&v2("logged-models", logged).await, "/model/info/model_id");
        let trace = format!("tr-{number:0>16}{:0>16}", WORKSPACES.iter().position(|one| *one == workspace).unwrap());
        process.export(workspace, &experiment, &trace).await;
        let info = json!({
            "trace_id": trace,
            "trace_location": location(&experiment),
            "request_time": "2026-01-01T00:00:00Z",
            "state": "OK",
        });
        v3("traces", json!({ "trace": { "trace_info": info } })).await;
        let source = json!({ "source_type": "HUMAN", "source_id": "x" });
        let feedback = json!({ "assessment_name": "f", "feedback": { "value": true }, "source": source });
        let assessed = v3(&format!("traces/{trace}/assessments"), json!({ "assessment": feedback })).await;
        ids.insert(format!("a{number}"), text(&assessed, "/assessment/assessment_id"));
        for path in
            [format!("{run}/artifacts"), format!("models/{logged}/artifacts"), format!("traces/{trace}/artifacts")]
        {
            let path = format!("/api/2.0/mlflow-artifacts/artifacts/{experiment}/{path}/x");
            send("PUT", path, json!("content")).await;
        }
        ids.extend([(format!("l{number}"), logged), (format!("t{number}"), trace)]);
        for _ in 0..2 {
            let scorer = json!({ "instructions_judge_pydantic_data": {} }).to_string();
            let scorer = json!({ "experiment_id": experiment, "name": "s", "serialized_scorer": scorer });
            v3("scorers/register", scorer).await;
        }
        furnish_models(&v2, number, &run).await;
    }
    let (e1, e2) = (ids["e1"].clone(), ids["e2"].clone());
    for (name, experiments) in [
        ("d1", vec![e1.clone()]),
        ("d2", vec![e2.clone()]),
        ("both", vec![e1, e2]),
        ("none", vec![]),
        ("ghost", vec!["999999999".to_owned()]),
        ("odd", vec!["no id".to_owned()]),
    ] {
        let made = v3("datasets/create", json!({ "name": name, "experiment_ids": experiments })).await;
        ids.insert(name.to_owned(), text(&made, "/dataset/dataset_id"));
    }
    for slug in ["s1", "s2"] {
        furnish_mcp_server(&v3, &format!("com.example/{slug}")).await;
    }
    for skill in ["@acme/k1", "k2"] {
        for _ in 0..2 {
            let version =
                json!({ "source": "https://example.com/skills.git", "subpath": skill.trim_start_matches('@') });
            v3(&format!("skills/{skill}/versions"), version).await;
        }
    }
    let role = v3("roles/create", json!({ "name": "sample", "workspace": workspace })).await;
    let grant = json!({
        "role_id": role["role"]["id"], "resource_type": "run", "resource_pattern": "*", "permission": "READ",
    });
    v3("roles/permissions/add", grant).await;
    ids.insert("role".to_owned(), role["role"]["id"].to_string());
    ids
}

async fn furnish_models(v2: &impl AsyncFn(&str, Value) -> Value, number: &str, run: &str) {
    let prompt = json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]);
    for (kind, tags, source) in [("m", json!([]), "s3://bucket/x"), ("p", prompt, "prompt-template")] {
        let name = format!("{kind}{number}");
        v2("registered-models/create", json!({ "name": name, "tags": tags })).await;
        let version = json!({ "name": name, "source": source, "run_id": run, "tags": tags });
        v2("model-versions/create", version).await;
        v2("registered-models/alias", json!({ "name": name, "alias": "a", "version": "1" })).await;
    }
}

async fn furnish_mcp_server(v3: &impl AsyncFn(&str, Value) -> Value, name: &str) {
    for version in ["1.0.0", "2.0.0"] {
        let server_json = json!({ "name": name, "version": version });
        let version = json!({ "server_json": server_json, "status": "active" });
        v3(&format!("mcp-servers/{name}/versions"), version).await;
    }
    for target in [json!({ "server_version": "1.0.0" }), json!({ "server_alias": "latest" })] {
        let mut endpoint = target;
        endpoint["url"] = "https://example.com/mcp".into();
        v3(&format!("mcp-servers/{name}/endpoints"), endpoint).await;
    }
}

/// Returns the location of traces in an experiment.
pub(super) fn location(experiment: &str) -> Value {
    json!({ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } })
}
