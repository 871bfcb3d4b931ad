//! Checks that a workspace contains nothing of a deleted workspace with the same name: neither
//! entities from before the deletion, nor entities that were created during it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use key_schema::attributes::{BY_ID, IN_WORKSPACE, NAME, ROLE, ROLES, VERSION, WORKSPACE_ID};
use key_schema::{Name, Ordinal, access_rows, rows};
use mlflow_api::UserName;
use serde_json::{Value, json};
use table::{Condition, Item, Table, Update, number, text};
use test_site::TestEnvironment;

use crate::teams::{ROOM, ask, over, role, status, teams};
use crate::test_server::TABLE;

const TEAM: &str = "team-b";
const NO_EXPERIMENT: &str = "987654321";
const GRANT: &str = "POST /api/3.0/mlflow/users/permissions/grant";

/// The entities that `ann`, an administrator of the workspace, has created in it, and changes
/// during its deletion.
struct Before {
    experiment: String,
    role: u64,
    permission: u64,
}

impl Before {
    async fn of(router: &Router) -> Self {
        let made = async |call: &'static str, body: Value| {
            let (status, answer) = ask(router, "ann", TEAM, call, body).await;
            assert_eq!(status, 200, "{call}: {answer}");
            answer
        };
        let experiment = made("POST experiments/create", json!({ "name": "x" })).await;
        made("POST registered-models/create", json!({ "name": "m" })).await;
        let role = made("POST /api/3.0/mlflow/roles/create", json!({ "name": "heads", "workspace": TEAM })).await;
        let role = role["role"]["id"].as_u64().unwrap();
        let all = json!({
            "role_id": role, "resource_type": "run", "resource_pattern": "*", "permission": "READ",
        });
        let permission = made("POST /api/3.0/mlflow/roles/permissions/add", all).await;
        Self {
            experiment: experiment["experiment_id"].as_str().unwrap().to_owned(),
            role,
            permission: permission["role_permission"]["id"].as_u64().unwrap(),
        }
    }

    /// Returns calls that create an entity in the workspace, or that grant access to it.
    fn calls(&self) -> Vec<(&'static str, Value)> {
        let granted = |kind: &str, resource: &str| json!({ "username": "bob", "resource_type": kind, "resource_id": resource, "permission": "MANAGE" });
        let manage = json!({
            "role_id": self.role, "resource_type": "workspace", "resource_pattern": "*", "permission": "MANAGE",
        });
        vec![
            ("POST /api/3.0/mlflow/roles/create", json!({ "name": "new", "workspace": TEAM })),
            ("POST /api/3.0/mlflow/roles/permissions/add", manage),
            (
                "PATCH /api/3.0/mlflow/roles/permissions/update",
                json!({ "role_permission_id": self.permission, "permission": "MANAGE" }),
            ),
            ("PATCH /api/3.0/mlflow/roles/update", json!({ "role_id": self.role, "name": "admins" })),
            ("POST /api/3.0/mlflow/roles/assign", json!({ "role_id": self.role, "username": "bob" })),
            (GRANT, granted("experiment", "*")),
            (GRANT, granted("experiment", &self.experiment)),
            (GRANT, granted("experiment", NO_EXPERIMENT)),
            ("POST experiments/create", json!({ "name": "late" })),
            ("POST experiments/update", json!({ "experiment_id": self.experiment, "new_name": "late" })),
            ("POST registered-models/create", json!({ "name": "late" })),
            ("POST registered-models/rename", json!({ "name": "m", "new_name": "late" })),
            (
                "POST /api/3.0/mlflow/scorers/register",
                json!({ "experiment_id": self.experiment, "name": "s", "serialized_scorer": "{\"a\": 1}" }),
            ),
            ("POST /api/3.0/mlflow/datasets/create", json!({ "name": "late", "experiment_ids": [self.experiment] })),
        ]
    }
}

/// Returns the sender of a call: only administrators of the server may grant rights to something that
/// does not exist.
fn sender(body: &Value) -> &'static str {
    if body["resource_id"] == NO_EXPERIMENT { "root" } else { "ann" }
}

/// Deletes the workspace, and creates another one with the same name.
async fn made_anew(router: &Router) {
    assert_eq!(status(router, "root", "", &format!("DELETE {ROOM}/{TEAM}?mode=CASCADE"), json!({})).await, 204);
    assert_eq!(status(router, "root", "", &format!("POST {ROOM}"), json!({ "name": TEAM })).await, 201);
}

/// Checks that the workspace only contains its own two roles, and that no user has access to it.
async fn has_nothing(router: &Router, about: &str) {
    let root = async |call: &str, body: Value| ask(router, "root", TEAM, call, body).await.1;
    let roles = root(&format!("GET /api/3.0/mlflow/roles/list?workspace={TEAM}"), json!({})).await;
    let roles = roles["roles"].as_array().unwrap().clone();
    let names: Vec<_> = roles.iter().map(|role| role["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["admin", "user"], "{about}");
    for role in &roles {
        let path = format!("GET /api/3.0/mlflow/roles/users/list?role_id={}", role["id"]);
        assert_eq!(root(&path, json!({})).await, json!({ "assignments": [] }), "{about}");
        assert_eq!(role["permissions"].as_array().unwrap().len(), 1, "{about}: {role}");
    }
    let all = root("GET /api/3.0/mlflow/roles/list", json!({})).await;
    assert!(all["roles"].as_array().unwrap().iter().all(|role| role["name"] != "new" && role["name"] != "heads"));
    for call in ["POST experiments/search", "GET registered-models/search", "POST /api/3.0/mlflow/datasets/search"] {
        let body = if call.contains("experiments") { json!({ "max_results": 9 }) } else { json!({}) };
        assert_eq!(root(call, body).await, json!({}), "{about}: {call}");
    }
    assert_eq!(root("GET /api/3.0/mlflow/scorers/list", json!({})).await, json!({}), "{about}");
    for user in ["ann", "bob"] {
        let permissions = root(&format!("GET /api/3.0/mlflow/users/permissions/list?username={user}"), json!({})).await;
        let permissions = permissions["permissions"].as_array().unwrap();
        assert!(permissions.iter().all(|one| one["workspace"] != TEAM), "{about}: {user}: {permissions:?}");
        let seen = ask(router, user, TEAM, &format!("GET {ROOM}"), json!({})).await.1;
        let seen = seen["workspaces"].as_array().cloned().unwrap_or_default();
        assert!(seen.iter().all(|one| one["name"] != TEAM), "{about}: {user}: {seen:?}");
        for (call, body) in [
            ("POST experiments/create", json!({ "name": "y" })),
            ("POST users/create", json!({ "username": "new", "password": "a password of teams" })),
            ("POST /api/3.0/mlflow/roles/create", json!({ "name": "r", "workspace": TEAM })),
        ] {
            assert_eq!(status(router, user, TEAM, call, body).await, 403, "{about}: {user}: {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_after_the_name_was_used_again_belongs_to_nobody() {
    let count = Before { experiment: String::new(), role: 0, permission: 0 }.calls().len();
    // Each case has its own table, and mostly waits for leases, so the cases run concurrently.
    let all = (0..count).map(|index| tokio::spawn(written_late(index)));
    for one in futures::future::join_all(all).await {
        one.unwrap();
    }
}

/// Checks a call that is authorized before the workspace is deleted, but writes only after another
/// workspace has been created with the same name.
async fn written_late(index: usize) {
    let (site, router) = teams().await;
    let before = Before::of(&router).await;
    let (call, body) = before.calls().swap_remove(index);
    let slow = over(&site.faulty()).await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let under_way = tokio::spawn({
        let body = body.clone();
        async move { ask(&slow, sender(&body), TEAM, call, body).await }
    });
    gate.reached().await;
    made_anew(&router).await;
    gate.open();
    let (status, answer) = under_way.await.unwrap();
    assert!((400..500).contains(&status), "{call} {body}: {status} {answer}");
    has_nothing(&router, call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_at_any_moment_of_a_deletion_goes_with_the_workspace() {
    for nth in 1.. {
        let (site, router) = teams().await;
        let before = Before::of(&router).await;
        let deleting = over(&site.faulty()).await;
        let mut gate = site.faults.pause_before("TransactWriteItems", nth);
        let deletion = tokio::spawn(async move {
            status(&deleting, "root", "", &format!("DELETE {ROOM}/{TEAM}?mode=CASCADE"), json!({})).await
        });
        let mut deletion = deletion;
        let is_over = tokio::select! {
            status = &mut deletion => { assert_eq!(status.unwrap(), 204); true }
            () = gate.reached() => false,
        };
        if !is_over {
            let calls = before.calls();
            let sent = calls.iter().map(|(call, body)| ask(&router, sender(body), TEAM, call, body.clone()));
            for ((call, _), (status, answer)) in calls.iter().zip(futures::future::join_all(sent).await) {
                assert!(nth == 1 || (400..500).contains(&status), "{nth}: {call}: {status} {answer}");
            }
            gate.open();
            assert_eq!(deletion.await.unwrap(), 204, "{nth}");
        }
        assert_eq!(status(&router, "root", "", &format!("POST {ROOM}"), json!({ "name": TEAM })).await, 201);
        has_nothing(&router, &format!("{nth}")).await;
        if is_over {
            assert!(nth > 5, "{nth}");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_who_goes_on_with_guessed_ids_administers_nothing_afterwards() {
    let (_site, router) = teams().await;
    let next = role(&router, TEAM, "user").await + 1;
    let is_over = Arc::new(AtomicBool::new(false));
    let going_on = (0..8).map(|worker: u64| {
        let (router, is_over) = (router.clone(), Arc::clone(&is_over));
        tokio::spawn(async move {
            let mut guessed = next;
            while !is_over.load(Ordering::Relaxed) {
                let name = format!("of {worker}: {guessed}");
                let manage = json!({
                    "role_id": guessed, "resource_type": "workspace", "resource_pattern": "*", "permission": "MANAGE",
                });
                let member =
                    json!({ "role_id": guessed, "username": if worker.is_multiple_of(2) { "ann" } else { "bob" } });
                // The requests do not specify a workspace, which the routes of roles allow.
                let calls = [
                    ("POST /api/3.0/mlflow/roles/create", json!({ "name": name, "workspace": TEAM })),
                    ("POST /api/3.0/mlflow/roles/permissions/add", manage),
                    ("POST /api/3.0/mlflow/roles/assign", member),
                ];
                futures::future::join_all(calls.iter().map(|(call, body)| ask(&router, "ann", "", call, body.clone())))
                    .await;
                guessed += 1;
            }
        })
    });
    let going_on: Vec<_> = going_on.collect();
    while role_count(&router).await < 6 {
        tokio::task::yield_now().await;
    }
    made_anew(&router).await;
    is_over.store(true, Ordering::Relaxed);
    for worker in going_on {
        worker.await.unwrap();
    }
    has_nothing(&router, "guessed ids").await;
}

async fn role_count(router: &Router) -> usize {
    let path = format!("GET /api/3.0/mlflow/roles/list?workspace={TEAM}");
    ask(router, "root", "", &path, json!({})).await.1["roles"].as_array().unwrap().len()
}

/// Converts a workspace and its roles to the format of release 0.1.0, in which roles belong to a
/// workspace by its name.
async fn aged(site: &TestEnvironment, roles: &[(u64, &str)]) {
    let access = site.table.beside(format!("{TABLE}-access"));
    site.table.apply(&Update::new(rows::Workspace::key(&Name::from(TEAM))).remove(BY_ID)).await.unwrap();
    for (role, name) in roles {
        let role = Ordinal(u32::try_from(*role).unwrap());
        access.apply(&Update::new(access_rows::Role::key(&role)).remove(WORKSPACE_ID)).await.unwrap();
        let claimed = Item::new(access_rows::RoleName::key(&Name::from(TEAM), &Name::from(*name)));
        access.put(claimed.with(NAME, text(*name)).with(ROLE, number(role.0)), &Condition::Always).await.unwrap();
    }
}

/// Creates a role as stored by release 0.1.0, which was not deleted with its workspace, and assigns
/// it to `ann`.
async fn left_over(access: &Table, id: u32) {
    let grants = [(id.to_string(), text("MANAGE workspace  *"))].into();
    let role = Item::new(access_rows::Role::key(&Ordinal(id)))
        .with(NAME, text("left over"))
        .with(IN_WORKSPACE, text(TEAM))
        .with(VERSION, number(1))
        .with(key_schema::attributes::GRANTS, table::map(grants));
    access.put(role, &Condition::item_missing()).await.unwrap();
    access.put(Item::new(access_rows::ListedRole::key(&Ordinal(id))), &Condition::Always).await.unwrap();
    let ann = Update::new(access_rows::User::key(&UserName::named("ann").unwrap()));
    let ann = ann.set((ROLES, id.to_string().as_str()), number(77)).add(VERSION, number(1));
    access.apply(&ann).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_first_release_has_stored_counts_for_its_workspace_and_for_no_later_one() {
    let (site, router) = teams().await;
    let (admin, user) = (role(&router, TEAM, "admin").await, role(&router, TEAM, "user").await);
    aged(&site, &[(admin, "admin"), (user, "user")]).await;
    // Uses another process, whose caches are empty.
    let router = over(&site.table).await;
    let experiment = ask(&router, "ann", TEAM, "POST experiments/create", json!({ "name": "x" })).await;
    assert_eq!(experiment.0, 200, "{}", experiment.1);
    let assign = json!({ "role_id": user, "username": "bob" });
    assert_eq!(status(&router, "ann", TEAM, "POST /api/3.0/mlflow/roles/assign", assign).await, 200);
    let all = json!({ "username": "bob", "resource_type": "experiment", "resource_id": "*", "permission": "READ" });
    assert_eq!(status(&router, "ann", TEAM, GRANT, all).await, 200);
    let id = experiment.1["experiment_id"].as_str().unwrap();
    assert_eq!(status(&router, "bob", TEAM, &format!("GET experiments/get?experiment_id={id}"), json!({})).await, 200);
    let again = json!({ "name": "user", "workspace": TEAM });
    assert_eq!(status(&router, "ann", TEAM, "POST /api/3.0/mlflow/roles/create", again).await, 400);
    made_anew(&router).await;
    has_nothing(&router, "made anew").await;
    left_over(&site.table.beside(format!("{TABLE}-access")), 900).await;
    let router = over(&site.table).await;
    has_nothing(&router, "left over").await;
    // The role does not exist for clients, and is removed with the next workspace of that name.
    let get = "GET /api/3.0/mlflow/roles/get?role_id=900";
    assert_eq!(status(&router, "root", "", get, json!({})).await, 404);
    made_anew(&router).await;
    let left = site.table.beside(format!("{TABLE}-access")).get(&access_rows::Role::key(&Ordinal(900))).await.unwrap();
    assert!(left.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_earlier_workspace_are_in_no_later_one() {
    let (_site, router) = teams().await;
    let location = async || {
        let experiment = ask(&router, "root", TEAM, "POST experiments/create", json!({ "name": "x" })).await.1;
        let id = experiment["experiment_id"].as_str().unwrap().to_owned();
        let get = format!("GET experiments/get?experiment_id={id}");
        let found = ask(&router, "root", TEAM, &get, json!({})).await.1;
        let location = found["experiment"]["artifact_location"].as_str().unwrap().to_owned();
        location.strip_suffix(&format!("/{id}")).unwrap().to_owned()
    };
    let first = location().await;
    assert!(first.ends_with("/workspaces/team-b"), "{first}");
    let mut seen = vec![first.clone()];
    for _ in 0..2 {
        made_anew(&router).await;
        let later = location().await;
        assert!(later.starts_with(&format!("{first}.")) && !seen.contains(&later), "{later}");
        seen.push(later);
    }
}
