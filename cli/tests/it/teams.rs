//! Workspaces with users: each workspace has its own roles, and grants only apply within their
//! workspace.

use std::sync::Arc;

use access::{AllowAll, AllowedActions, Restriction};
use auth::store::NewToken;
use axum::Router;
use domain::Environment;
use entities::workspaces::{WorkspaceChange, Workspaces};
use http::Request;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use serde_json::{Value, json};
use table::Table;
use test_site::{TestClient, TestEnvironment};

use crate::test_server::{ROOT, TABLE, of_table};

const PASSWORD: &str = "a password of teams";

/// Creates a server with workspaces and users, and `root` as administrator. The default permission
/// for users without a grant, which applies on servers without workspaces, is `READ`.
pub(crate) async fn server() -> (TestEnvironment, Router) {
    let site = TestEnvironment::new().await;
    site.table.beside(format!("{TABLE}-access")).create_access_if_missing().await.unwrap();
    let around = around(&site.table);
    let store = store(&around);
    for (name, is_admin) in [("root", true), ("ann", false), ("bob", false)] {
        store.user_create(&UserName::new(name).unwrap(), PASSWORD.to_owned(), is_admin).await.unwrap();
    }
    let router = over(&site.table).await;
    (site, router)
}

fn around(table: &Table) -> Environment {
    let around = Environment::new(Arc::new(AllowAll), table.clone());
    let around = Environment { artifact_root: ROOT.to_owned(), is_new_table: true, ..around };
    around.with_users(table.clone(), table.beside(format!("{TABLE}-access")), PermissionLevel::Read).with_workspaces()
}

fn store(around: &Environment) -> auth::store::Store {
    let table = around.table().unwrap().clone();
    auth::store::Store::new(table, around.access.clone().unwrap(), around.user_authorizer.clone().unwrap())
}

/// Mounts another process of this server, over a table that may have faults.
pub(crate) async fn over(table: &Table) -> Router {
    domain::mount(&of_table(), &[], &around(table)).await.unwrap()
}

/// Returns the status and body of the response to a user's request in a workspace.
pub(crate) async fn ask(router: &Router, user: &str, workspace: &str, call: &str, body: Value) -> (u16, Value) {
    use base64::Engine as _;
    let (method, path) = call.split_once(' ').unwrap();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/api/2.0/mlflow/{path}") };
    let word = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{PASSWORD}"));
    let request = Request::builder().method(method).uri(path).header("authorization", format!("Basic {word}"));
    let request = request.header("x-mlflow-workspace", workspace).header("content-type", "application/json");
    let answer = TestClient(router.clone()).send(request.body(body.to_string().into()).unwrap()).await;
    (answer.status, answer.body)
}

pub(crate) async fn status(router: &Router, user: &str, workspace: &str, call: &str, body: Value) -> u16 {
    ask(router, user, workspace, call, body).await.0
}

/// Returns the id of a role of a workspace.
pub(crate) async fn role(router: &Router, workspace: &str, name: &str) -> u64 {
    let (_, all) =
        ask(router, "root", "", &format!("GET /api/3.0/mlflow/roles/list?workspace={workspace}"), json!({})).await;
    let all = all["roles"].as_array().unwrap().clone();
    all.iter().find(|role| role["name"] == name).unwrap()["id"].as_u64().unwrap()
}

pub(crate) const ROOM: &str = "/api/3.0/mlflow/workspaces";

/// Creates two workspaces. `ann` has the user role in `team-a` and the admin role in `team-b`.
pub(crate) async fn teams() -> (TestEnvironment, Router) {
    let (site, router) = server().await;
    for name in ["team-a", "team-b"] {
        assert_eq!(status(&router, "root", "", &format!("POST {ROOM}"), json!({ "name": name })).await, 201);
    }
    for (workspace, name) in [("team-a", "user"), ("team-b", "admin")] {
        let role = role(&router, workspace, name).await;
        let member = json!({ "username": "ann", "role_id": role });
        assert_eq!(status(&router, "root", "", "POST /api/3.0/mlflow/roles/assign", member).await, 200);
    }
    (site, router)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_for_those_who_have_roles_there() {
    let (_site, router) = teams().await;
    let create = |name: &str| json!({ "name": name });
    // A user with the right to use a workspace can create entities there, and owns them.
    let (made, experiment) = ask(&router, "ann", "team-a", "POST experiments/create", create("x")).await;
    assert_eq!(made, 200, "{experiment}");
    let id = experiment["experiment_id"].as_str().unwrap();
    let get = format!("GET experiments/get?experiment_id={id}");
    assert_eq!(status(&router, "ann", "team-a", &get, json!({})).await, 200);
    // In another workspace the experiment does not exist, not even for that workspace's
    // administrators. Only administrators of the server get a 404.
    assert_eq!(status(&router, "ann", "team-b", &get, json!({})).await, 403);
    assert_eq!(status(&router, "root", "team-b", &get, json!({})).await, 404);
    assert_eq!(status(&router, "root", "team-a", &get, json!({})).await, 200);
    // Without a grant, nothing is accessible, regardless of the default permission. Without a role,
    // a user cannot create entities.
    assert_eq!(status(&router, "bob", "team-a", &get, json!({})).await, 403);
    for workspace in ["team-a", "team-b", "", "no-such-team"] {
        let refused = status(&router, "bob", workspace, "POST experiments/create", create("y")).await;
        assert!(matches!(refused, 403 | 404), "{workspace}: {refused}");
    }
    let (_, seen) = ask(&router, "bob", "team-a", "POST experiments/search", json!({ "max_results": 9 })).await;
    assert_eq!(seen, json!({}));
    // Callers who are not authenticated cannot find out names of workspaces.
    for workspace in ["team-a", "no-such-team"] {
        assert_eq!(status(&router, "eve", workspace, &get, json!({})).await, 401, "{workspace}");
    }
    // A grant in one workspace does not apply in another, even for the same id.
    let grant = json!({ "username": "bob", "resource_type": "experiment", "resource_id": id, "permission": "READ" });
    let grant_call = "POST /api/3.0/mlflow/users/permissions/grant";
    assert_eq!(status(&router, "root", "team-b", grant_call, grant.clone()).await, 200);
    assert_eq!(status(&router, "bob", "team-a", &get, json!({})).await, 403);
    assert_eq!(status(&router, "root", "team-a", grant_call, grant).await, 200);
    assert_eq!(status(&router, "bob", "team-a", &get, json!({})).await, 200);
}

/// Datasets may refer to experiments that do not exist, and to texts that are not ids. These are
/// shared by all workspaces.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_no_experiment_belongs_to_its_workspace() {
    let (_site, router) = teams().await;
    let all = "/api/3.0/mlflow/datasets";
    for named in ["999999999", "no id"] {
        let new = json!({ "name": "d", "experiment_ids": [named] });
        let (made, dataset) = ask(&router, "root", "team-a", &format!("POST {all}/create"), new).await;
        assert_eq!(made, 200, "{dataset}");
        let get = format!("GET {all}/{}", dataset["dataset"]["dataset_id"].as_str().unwrap());
        assert_eq!(status(&router, "root", "team-a", &get, json!({})).await, 200, "{named}");
        assert_eq!(status(&router, "root", "team-b", &get, json!({})).await, 404, "{named}");
        assert_eq!(status(&router, "ann", "team-b", &get, json!({})).await, 403, "{named}");
        let search = json!({ "experiment_ids": ["999999999", named] });
        for user in ["ann", "root"] {
            let (_, found) = ask(&router, user, "team-b", &format!("POST {all}/search"), search.clone()).await;
            assert_eq!(found, json!({}), "{user}: {named}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_are_made_by_administrators_and_seen_by_members() {
    let (_site, router) = teams().await;
    let names = async |user: &'static str| {
        let (_, all) = ask(&router, user, "", &format!("GET {ROOM}"), json!({})).await;
        let all = all["workspaces"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("root").await, ["default", "team-a", "team-b"]);
    assert_eq!(names("ann").await, ["team-a", "team-b"]);
    assert_eq!(names("bob").await, Vec::<String>::new());
    let one = |name: &str| format!("GET {ROOM}/{name}");
    assert_eq!(status(&router, "ann", "", &one("team-a"), json!({})).await, 200);
    assert_eq!(status(&router, "bob", "", &one("team-a"), json!({})).await, 403);
    assert_eq!(status(&router, "bob", "", &one("no-such-team"), json!({})).await, 403);
    for (call, body) in [
        (format!("POST {ROOM}"), json!({ "name": "team-c" })),
        (format!("PATCH {ROOM}/team-b"), json!({ "description": "x" })),
        (format!("DELETE {ROOM}/team-b?mode=CASCADE"), json!({})),
    ] {
        for user in ["ann", "bob"] {
            assert_eq!(status(&router, user, "team-b", &call, body.clone()).await, 403, "{user}: {call}");
        }
    }
    // Roles are managed by the administrators of their own workspace, regardless of the workspace
    // of the request.
    let new = |workspace: &str| json!({ "name": "readers", "workspace": workspace });
    let create = "POST /api/3.0/mlflow/roles/create";
    assert_eq!(status(&router, "ann", "team-b", create, new("team-b")).await, 200);
    assert_eq!(status(&router, "ann", "team-b", create, new("team-a")).await, 403);
    assert_eq!(status(&router, "bob", "team-b", create, new("team-b")).await, 403);
    let of_a = role(&router, "team-a", "admin").await;
    let assign = json!({ "username": "ann", "role_id": of_a });
    assert_eq!(status(&router, "ann", "team-b", "POST /api/3.0/mlflow/roles/assign", assign).await, 403);
    assert_eq!(
        status(&router, "ann", "team-b", &format!("GET /api/3.0/mlflow/roles/get?role_id={of_a}"), json!({})).await,
        200
    );
    assert_eq!(
        status(&router, "bob", "team-b", &format!("GET /api/3.0/mlflow/roles/get?role_id={of_a}"), json!({})).await,
        403
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_made_anew_has_nothing_of_the_one_before() {
    let (_site, router) = teams().await;
    let experiment = ask(&router, "ann", "team-a", "POST experiments/create", json!({ "name": "x" })).await.1;
    let id = experiment["experiment_id"].as_str().unwrap().to_owned();
    ask(&router, "ann", "team-a", "POST registered-models/create", json!({ "name": "m" })).await;
    let all = json!({ "username": "bob", "resource_type": "experiment", "resource_id": "*", "permission": "MANAGE" });
    let granted = status(&router, "root", "team-a", "POST /api/3.0/mlflow/users/permissions/grant", all).await;
    assert_eq!(granted, 200);
    let get = format!("GET experiments/get?experiment_id={id}");
    assert_eq!(status(&router, "bob", "team-a", &get, json!({})).await, 200);
    let restricted = ask(&router, "root", "", &format!("DELETE {ROOM}/team-a"), json!({})).await;
    assert_eq!((restricted.0, &restricted.1["error_code"]), (500, &json!("INVALID_STATE")));
    assert_eq!(status(&router, "root", "", &format!("DELETE {ROOM}/team-a?mode=CASCADE"), json!({})).await, 204);
    for user in ["ann", "bob", "root"] {
        let refused = status(&router, user, "team-a", &get, json!({})).await;
        assert!(matches!(refused, 403 | 404), "{user}: {refused}");
    }
    assert_eq!(status(&router, "root", "", &format!("POST {ROOM}"), json!({ "name": "team-a" })).await, 201);
    // The roles are new and have no users, and the grant for all experiments is void.
    for user in ["ann", "bob"] {
        assert_eq!(status(&router, user, "team-a", &get, json!({})).await, 403, "{user}");
        let made = status(&router, user, "team-a", "POST experiments/create", json!({ "name": "x" })).await;
        assert_eq!(made, 403, "{user}");
    }
    assert_eq!(status(&router, "root", "team-a", &get, json!({})).await, 404);
    assert_eq!(status(&router, "root", "team-a", "POST registered-models/create", json!({ "name": "m" })).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_day_may_bring_is_bounded() {
    let (site, router) = teams().await;
    let experiment = ask(&router, "ann", "team-a", "POST experiments/create", json!({ "name": "x" })).await.1;
    let run = json!({ "experiment_id": experiment["experiment_id"] });
    let create = async || ask(&router, "ann", "team-a", "POST runs/create", run.clone()).await;
    assert_eq!(create().await.0, 200);
    let (workspaces, team) = (Workspaces::new(site.table.clone()), mlflow_api::Workspace::parse("team-a").unwrap());
    let today = entities::quota::day_of(entities::now_ms());
    workspaces.set_quota(&team, &[(entities::quota::QuotaKind::Runs, 2)].into()).await.unwrap();
    workspaces
        .add(&team, today, &[(entities::quota::QuotaKind::Runs, 1), (entities::quota::QuotaKind::Bytes, 7)].into())
        .await
        .unwrap();
    workspaces.hold_to_quotas().await.unwrap();
    assert_eq!(create().await.0, 200);
    workspaces.add(&team, today, &[(entities::quota::QuotaKind::Runs, 1)].into()).await.unwrap();
    workspaces.hold_to_quotas().await.unwrap();
    // The server caches the state of a workspace for the length of a lease.
    runtime::clock::sleep(permissions::LEASE).await;
    let (status, refusal) = create().await;
    assert_eq!((status, &refusal["error_code"]), (400, &json!("BAD_REQUEST")));
    assert!(refusal["message"].as_str().unwrap().contains("quota"), "{refusal}");
    // Only runs are limited, and usage is counted by UTC day.
    assert_eq!(ask(&router, "ann", "team-a", "POST experiments/create", json!({ "name": "y" })).await.0, 200);
    let days = workspaces.days(&team, today).await.unwrap();
    assert_eq!(days[0].counted, [(entities::quota::QuotaKind::Runs, 2), (entities::quota::QuotaKind::Bytes, 7)].into());
    workspaces.set_quota(&team, &std::collections::BTreeMap::new()).await.unwrap();
    runtime::clock::sleep(permissions::LEASE).await;
    assert_eq!(create().await.0, 200);
    assert!(workspaces.create(&team, &WorkspaceChange::default()).await.is_err());
}

/// Roles belong to a workspace even on a server without workspaces.
#[tokio::test(flavor = "multi_thread")]
async fn who_administers_another_workspace_administers_no_data_here() {
    let (site, _) = server().await;
    let access = site.table.beside(format!("{TABLE}-access"));
    let around = Environment::new(Arc::new(AllowAll), site.table.clone());
    let around = around.with_users(site.table.clone(), access, PermissionLevel::NoPermissions);
    let router = domain::mount(&of_table(), &[], &around).await.unwrap();
    Workspaces::new(site.table.clone())
        .create(&mlflow_api::Workspace::parse("ws1").unwrap(), &WorkspaceChange::default())
        .await
        .unwrap();
    let create = "POST /api/3.0/mlflow/roles/create";
    let call = async |user: &'static str, call: &str, body: Value| {
        use base64::Engine as _;
        let (method, path) = call.split_once(' ').unwrap();
        let word = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{PASSWORD}"));
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Basic {word}"));
        let request = request.header("content-type", "application/json").body(body.to_string().into()).unwrap();
        let answer = TestClient(router.clone()).send(request).await;
        (answer.status, answer.body)
    };
    let made = call("root", create, json!({ "name": "heads", "workspace": "ws1" })).await.1;
    let role = made["role"]["id"].clone();
    let grant =
        json!({ "role_id": role, "resource_type": "workspace", "resource_pattern": "*", "permission": "MANAGE" });
    assert_eq!(call("root", "POST /api/3.0/mlflow/roles/permissions/add", grant).await.0, 200);
    let assign = json!({ "role_id": role, "username": "ann" });
    assert_eq!(call("root", "POST /api/3.0/mlflow/roles/assign", assign).await.0, 200);
    let roles = "GET /api/3.0/mlflow/roles";
    for (request, body, expected) in [
        ("GET /api/2.0/mlflow/experiments/get?experiment_id=0".to_owned(), json!({}), 403),
        (create.to_owned(), json!({ "name": "r", "workspace": "default" }), 403),
        (create.to_owned(), json!({ "name": "r", "workspace": "ws1" }), 200),
        (format!("{roles}/list"), json!({}), 403),
        (format!("{roles}/list?workspace=ws1"), json!({}), 200),
        (format!("{roles}/list?workspace=ws1&workspace=default"), json!({}), 403),
        (format!("{roles}/get?role_id={role}"), json!({}), 200),
        (format!("{roles}/get?role_id=999999"), json!({}), 403),
        ("POST /api/2.0/mlflow/users/create".to_owned(), json!({ "username": "new", "password": PASSWORD }), 200),
        ("GET /api/2.0/mlflow/users/get?username=bob".to_owned(), json!({}), 403),
        ("GET /api/3.0/mlflow/users/roles/list?username=bob".to_owned(), json!({}), 403),
    ] {
        let (status, answer) = call("ann", &request, body).await;
        assert_eq!(status, expected, "{request}: {answer}");
        let is_of_himself = request.contains("username=bob");
        assert!(is_of_himself || call("bob", &request, json!({})).await.0 >= 400, "{request}");
    }
    // An administrator of the workspace can see roles of the workspace that are assigned to a user.
    let assign = json!({ "role_id": role, "username": "bob" });
    assert_eq!(call("ann", "POST /api/3.0/mlflow/roles/assign", assign).await.0, 200);
    let (status, of_bob) = call("ann", "GET /api/3.0/mlflow/users/roles/list?username=bob", json!({})).await;
    assert_eq!((status, of_bob["roles"][0]["id"].clone()), (200, role));
}

/// Returns the workspaces that are listed for a token, and the status of the responses to requests
/// for `team-a` and `team-b`.
async fn seen_with(router: &Router, token: &str) -> (Vec<String>, [u16; 2]) {
    let get = async |path: String| {
        let request = Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
        TestClient(router.clone()).send(request.body(axum::body::Body::empty()).unwrap()).await
    };
    let all = get(ROOM.to_owned()).await;
    assert_eq!(all.status, 200);
    let names = all.body["workspaces"].as_array().cloned().unwrap_or_default();
    let names = names.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    (names, [get(format!("{ROOM}/team-a")).await.status, get(format!("{ROOM}/team-b")).await.status])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrowed_token_sees_the_workspaces_that_it_is_for() {
    let (site, router) = teams().await;
    let experiment = ask(&router, "ann", "team-b", "POST experiments/create", json!({ "name": "x" })).await.1;
    let experiment = experiment["experiment_id"].as_str().unwrap();
    let experiment = Some(mlflow_api::ExperimentId::parse(experiment).unwrap());
    let store = store(&around(&site.table));
    for (user, all) in [("ann", vec!["team-a", "team-b"]), ("root", vec!["default", "team-a", "team-b"])] {
        for (restriction, expected, got) in [
            (Restriction::default(), all.clone(), [200, 200]),
            (Restriction { experiment: None, actions: AllowedActions::Read }, all.clone(), [200, 200]),
            (Restriction { experiment: None, actions: AllowedActions::Ingest }, vec![], [403, 403]),
            (Restriction { experiment, actions: AllowedActions::All }, vec!["team-b"], [403, 403]),
            (Restriction { experiment, actions: AllowedActions::Ingest }, vec![], [403, 403]),
        ] {
            let new = NewToken { name: "t".to_owned(), restriction, days: None };
            let token = store.token_create(&UserName::new(user).unwrap(), new).await.unwrap().0.token();
            let seen = seen_with(&router, &token).await;
            assert_eq!(seen, (expected.iter().map(ToString::to_string).collect(), got), "{user}: {restriction:?}");
        }
    }
}
