//! Users with names and passwords: authentication, grants, and how soon changes take effect.

use artifact_store::ArtifactStore;
use axum::body::Body;
use domain::Environment;
use embedded_engine::faults::InjectedFault;
use http::Request;
use mlflow_api::UserName;
use mlflow_api::auth::{GrantType, PermissionLevel};
use serde_json::{Value, json};
use test_site::{ROOT, TABLE, TestClient, all_troubles};

use crate::test_server::of_table;
use crate::users_server::{Client, PASSWORD, Server, process};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_let_in_without_a_password() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    for path in ["/api/2.0/mlflow/experiments/get?experiment_id=0", "/graphql", "/api/2.0/mlflow/users/current"] {
        let method = if path == "/graphql" { "POST" } else { "GET" };
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = ann.api.send(request).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.as_str().unwrap().starts_with("You are not authenticated."), "{}", answer.body);
    }
    for password in ["", "correct horse batterz", "correct horse battery "] {
        assert_eq!(Client { password, ..ann.clone() }.reads("0").await, 401, "{password}");
    }
    assert_eq!(Client { name: "nobody", ..ann.clone() }.reads("0").await, 401);
    assert_eq!(ann.reads("0").await, 200);
    let open = ann.api.get_at("/health", &[]).await;
    assert_eq!(open.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_counts_at_once_in_every_process_and_what_is_revoked_no_longer() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let there = server.elsewhere(&ann, PermissionLevel::NoPermissions).await;
    let experiment = server.admin.experiment("e").await;
    assert_eq!((ann.reads(&experiment).await, there.reads(&experiment).await), (403, 403));
    assert_eq!(there.found().await, Vec::<String>::new());
    server.grant(&ann, "experiment", &experiment, "READ").await;
    assert_eq!((ann.reads(&experiment).await, there.reads(&experiment).await), (200, 200));
    assert_eq!(there.found().await, std::slice::from_ref(&experiment));
    assert_eq!(there.v2("POST", "runs/create", json!({ "experiment_id": experiment })).await.status, 403);
    assert_eq!(ann.permissions().await, [("experiment".to_owned(), experiment.clone(), "READ".to_owned())]);
    server.revoke(&ann, "experiment", &experiment).await.ok();
    assert_eq!(there.reads(&experiment).await, 403);
    assert_eq!(server.revoke(&ann, "experiment", &experiment).await.status, 404);
    // A change of the password is effective in the other process, too.
    let changed = "another horse battery";
    let body = json!({ "username": "ann", "password": changed });
    server.admin.v2("PATCH", "users/update-password", body).await.ok();
    assert_eq!(there.reads("0").await, 401);
    assert_eq!(Client { password: changed, ..there.clone() }.reads("0").await, 403);
    // The removal of administrator rights is effective in the other process, too.
    let admin = |is_admin: bool| json!({ "username": "ann", "is_admin": is_admin });
    server.admin.v2("PATCH", "users/update-admin", admin(true)).await.ok();
    assert_eq!(Client { password: changed, ..there.clone() }.reads(&experiment).await, 200);
    server.admin.v2("PATCH", "users/update-admin", admin(false)).await.ok();
    assert_eq!(Client { password: changed, ..there.clone() }.reads(&experiment).await, 403);
    server.admin.v2("DELETE", "users/delete", json!({ "username": "ann" })).await.ok();
    assert_eq!(Client { password: changed, ..there }.reads(&experiment).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_grant_what_they_say_to_those_who_have_them() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let there = server.elsewhere(&ann, PermissionLevel::NoPermissions).await;
    let experiment = server.admin.experiment("e").await;
    let role = server.admin.v3("POST", "roles/create", json!({ "name": "r", "workspace": "default" })).await.ok();
    let role = role["role"]["id"].as_u64().unwrap();
    let grant = async |kind: &str, pattern: &str, level: &str| {
        let body = json!({ "role_id": role, "resource_type": kind, "resource_pattern": pattern, "permission": level });
        let granted = server.admin.v3("POST", "roles/permissions/add", body).await.ok();
        granted["role_permission"]["id"].as_u64().unwrap()
    };
    grant("experiment", &experiment, "EDIT").await;
    assert_eq!(there.reads(&experiment).await, 403);
    server.admin.v3("POST", "roles/assign", json!({ "username": "ann", "role_id": role })).await.ok();
    assert_eq!(there.reads(&experiment).await, 200);
    let run = there.v2("POST", "runs/create", json!({ "experiment_id": experiment })).await.ok();
    let run = run["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    // A grant for runs takes precedence over one for their experiment.
    let denied = grant("run", "*", "DENY").await;
    let tagged = json!({ "run_id": run, "key": "k", "value": "v" });
    assert_eq!(there.v2("POST", "runs/set-tag", tagged.clone()).await.status, 403);
    assert_eq!(there.v2("POST", "runs/create", json!({ "experiment_id": experiment })).await.status, 403);
    let removed = json!({ "role_permission_id": denied });
    server.admin.v3("DELETE", "roles/permissions/remove", removed).await.ok();
    there.v2("POST", "runs/set-tag", tagged).await.ok();
    assert_eq!(there.v2("POST", "runs/delete", json!({ "run_id": run })).await.status, 403);
    server.admin.v3("DELETE", "roles/delete", json!({ "role_id": role })).await.ok();
    assert_eq!(there.reads(&experiment).await, 403);
    // A new role with the same name has no users.
    let second = server.admin.v3("POST", "roles/create", json!({ "name": "r", "workspace": "default" })).await.ok();
    let second = second["role"]["id"].as_u64().unwrap();
    assert_ne!(second, role);
    let users = server.admin.v3("GET", &format!("roles/users/list?role_id={second}"), json!({})).await.ok();
    assert_eq!(users["assignments"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_made_anew_inherits_nothing() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let (ann, bob) = (server.user("ann").await, server.user("bob").await);
    let experiment = server.admin.experiment("e").await;
    server.grant(&ann, "experiment", &experiment, "MANAGE").await;
    server.grant(&ann, "run", "*", "MANAGE").await;
    assert_eq!(ann.reads(&experiment).await, 200);
    server.admin.v2("DELETE", "users/delete", json!({ "username": "ann" })).await.ok();
    // A process that has cached a successful check of the old user's password must not accept it
    // for the new user.
    let of_another = json!({ "username": "ann", "password": "another horse battery" });
    server.admin.v2("POST", "users/create", of_another).await.ok();
    assert_eq!(ann.reads(&experiment).await, 401);
    let ann = Client { password: "another horse battery", ..ann };
    assert_eq!((ann.reads(&experiment).await, ann.permissions().await), (403, Vec::new()));

    // After a model has been deleted, grants for it do not apply to a new model of the same name.
    // This concerns grants to users, to roles, and to the creator.
    let model = |client: &Client| {
        let client = client.clone();
        async move { client.v2("GET", "registered-models/get?name=m", json!({})).await.status }
    };
    bob.v2("POST", "registered-models/create", json!({ "name": "m" })).await.ok();
    server.grant(&ann, "registered_model", "m", "READ").await;
    let role = server.admin.v3("POST", "roles/create", json!({ "name": "r", "workspace": "default" })).await.ok();
    let role = &role["role"]["id"];
    let of_role = json!({
        "role_id": role, "resource_type": "registered_model", "resource_pattern": "m", "permission": "READ",
    });
    server.admin.v3("POST", "roles/permissions/add", of_role).await.ok();
    let carl = server.user("carl").await;
    server.admin.v3("POST", "roles/assign", json!({ "username": "carl", "role_id": role })).await.ok();
    assert_eq!((model(&ann).await, model(&bob).await, model(&carl).await), (200, 200, 200));
    bob.v2("DELETE", "registered-models/delete", json!({ "name": "m" })).await.ok();
    server.admin.v2("POST", "registered-models/create", json!({ "name": "m" })).await.ok();
    assert_eq!((model(&ann).await, model(&bob).await, model(&carl).await), (403, 403, 403));
    assert_eq!(ann.permissions().await, Vec::new());
    for user in [&ann, &bob, &carl] {
        let found = user.v2("GET", "registered-models/search", json!({})).await.ok();
        assert_eq!(found["registered_models"].as_array().map_or(0, Vec::len), 0, "{}", user.name);
    }

    // A grant for an entity that does not exist yet is listed, but has no effect.
    server.grant(&ann, "registered_model", "later", "MANAGE").await;
    server.grant(&ann, "experiment", "999", "MANAGE").await;
    assert_eq!(ann.permissions().await.len(), 2);
    bob.v2("POST", "registered-models/create", json!({ "name": "later" })).await.ok();
    assert_eq!(ann.v2("GET", "registered-models/get?name=later", json!({})).await.status, 403);
    server.revoke(&ann, "registered_model", "later").await.ok();
    server.revoke(&ann, "experiment", "999").await.ok();
    assert_eq!(ann.permissions().await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_creates_something_may_share_it_and_keeps_it_when_it_is_renamed() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let (ann, bob) = (server.user("ann").await, server.user("bob").await);
    let experiment = ann.experiment("anns").await;
    let share = json!({
        "username": "bob", "resource_type": "experiment", "resource_id": experiment, "permission": "EDIT",
    });
    assert_eq!(bob.v3("POST", "users/permissions/grant", share.clone()).await.status, 403);
    ann.v3("POST", "users/permissions/grant", share).await.ok();
    assert_eq!(bob.reads(&experiment).await, 200);
    // Only administrators can grant access to all resources of a type.
    let all = json!({ "username": "bob", "resource_type": "experiment", "resource_id": "*", "permission": "READ" });
    assert_eq!(ann.v3("POST", "users/permissions/grant", all).await.status, 403);

    for (kind, tags) in
        [("registered_model", json!([])), ("prompt", json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]))]
    {
        let (old, new) = (format!("old {kind}"), format!("new {kind}"));
        ann.v2("POST", "registered-models/create", json!({ "name": old, "tags": tags })).await.ok();
        ann.v2("POST", "registered-models/rename", json!({ "name": old, "new_name": new })).await.ok();
        let get = format!("registered-models/get?name=new%20{kind}");
        assert_eq!(
            (ann.v2("GET", &get, json!({})).await.status, bob.v2("GET", &get, json!({})).await.status),
            (200, 403)
        );
        assert!(ann.permissions().await.contains(&(kind.to_owned(), new.clone(), "MANAGE".to_owned())));
        // A user who creates a model with the old name gets access to that model, and not to the
        // renamed one.
        bob.v2("POST", "registered-models/create", json!({ "name": old, "tags": tags })).await.ok();
        assert_eq!(bob.v2("GET", &get, json!({})).await.status, 403);
        let get = format!("registered-models/get?name=old%20{kind}");
        assert_eq!(
            (ann.v2("GET", &get, json!({})).await.status, bob.v2("GET", &get, json!({})).await.status),
            (403, 200)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_administrator_stays_and_users_do_not_delete_themselves() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let not_admin = json!({ "username": "admin", "is_admin": false });
    assert_eq!(server.admin.v2("PATCH", "users/update-admin", not_admin.clone()).await.status, 400);
    assert_eq!(server.admin.v2("DELETE", "users/delete", json!({ "username": "admin" })).await.status, 400);
    assert_eq!(ann.v2("PATCH", "users/update-admin", json!({ "username": "ann", "is_admin": true })).await.status, 403);
    assert_eq!(ann.v2("DELETE", "users/delete", json!({ "username": "admin" })).await.status, 403);
    server.admin.v2("PATCH", "users/update-admin", json!({ "username": "ann", "is_admin": true })).await.ok();
    ann.v2("PATCH", "users/update-admin", not_admin).await.ok();
    assert_eq!(server.admin.v2("GET", "users/get?username=ann", json!({})).await.status, 403);
    // Changing one's own password requires the current password.
    let new = "another horse battery";
    let body = |current: Option<&str>| json!({ "username": "ann", "password": new, "current_password": current });
    for (current, text) in [(None, "Current password is required"), (Some("wrong"), "Current password does not match.")]
    {
        let refused =
            ann.v2("PATCH", "users/update-password", body(current)).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(refused.starts_with(text), "{refused}");
    }
    ann.v2("PATCH", "users/update-password", body(Some(PASSWORD))).await.ok();
    assert_eq!((ann.reads("0").await, Client { password: new, ..ann }.reads("0").await), (401, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_there_are_no_such_rows() {
    let server = Server::new(PermissionLevel::Read).await;
    let around = Environment::new(access::AllowAll::shared(), server.site.table.clone());
    let around = around.with_artifacts(ROOT, ArtifactStore::below(ROOT));
    let open = TestClient(domain::mount(&of_table(), &[], &around).await.unwrap());
    for path in
        ["/api/2.0/mlflow/users/current", "/ajax-api/2.0/mlflow/users/list", "/api/3.0/mlflow/roles/list", "/signup"]
    {
        assert_eq!(open.get_at(path, &[]).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_administers_the_workspace_does_not_administer_the_server() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let (ann, bob) = (server.user("ann").await, server.user("bob").await);
    let role = server.admin.v3("POST", "roles/create", json!({ "name": "r", "workspace": "default" })).await.ok();
    let role = &role["role"]["id"];
    let all = json!({ "role_id": role, "resource_type": "workspace", "resource_pattern": "*", "permission": "MANAGE" });
    server.admin.v3("POST", "roles/permissions/add", all).await.ok();
    server.admin.v3("POST", "roles/assign", json!({ "username": "ann", "role_id": role })).await.ok();
    let experiment = server.admin.experiment("e").await;
    assert_eq!((ann.reads(&experiment).await, bob.reads(&experiment).await), (200, 403));
    let of_carl = json!({ "username": "carl", "password": PASSWORD });
    assert_eq!(bob.v2("POST", "users/create", of_carl.clone()).await.status, 403);
    ann.v2("POST", "users/create", of_carl).await.ok();
    for (method, path, body) in [
        ("PATCH", "users/update-admin", json!({ "username": "ann", "is_admin": true })),
        ("PATCH", "users/update-password", json!({ "username": "admin", "password": PASSWORD })),
        ("DELETE", "users/delete", json!({ "username": "bob" })),
    ] {
        assert_eq!(ann.v2(method, path, body).await.status, 403, "{path}");
    }
}

/// Checks that all writes succeed even if a single response of the tables is lost, regardless of
/// which one.
#[tokio::test(flavor = "multi_thread")]
async fn one_lost_answer_is_outlived_by_every_write_of_users() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let experiment = server.admin.experiment("e").await;
    let faulty = server.site.faulty();
    let api = process(&faulty, &faulty.beside(format!("{TABLE}-access")), PermissionLevel::NoPermissions).await;
    let admin = Client { api, ..server.admin.clone() };
    let mut lost = 0;
    // Most calls get at most four responses from the tables.
    let (places, least) = if all_troubles() { ((0..12).collect(), 60) } else { (vec![0, 1, 2, 3, 5], 40) };
    for before in places {
        let name = format!("user{before}");
        let role = server.admin.v3("POST", "roles/create", json!({ "name": name, "workspace": "default" })).await.ok();
        let role = role["role"]["id"].clone();
        let user = json!({ "username": name });
        let with = |more: Value| {
            let mut body = user.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let on = |kind: &str, id: &str| with(json!({ "resource_type": kind, "resource_id": id, "permission": "READ" }));
        let of_role = json!({ "role_id": role, "resource_type": "run", "resource_pattern": "*", "permission": "READ" });
        let of_user = with(json!({ "role_id": role }));
        let calls = [
            ("POST", "/api/2.0/mlflow/users/create", with(json!({ "password": PASSWORD }))),
            ("PATCH", "/api/2.0/mlflow/users/update-password", with(json!({ "password": "another horse battery" }))),
            ("PATCH", "/api/2.0/mlflow/users/update-admin", with(json!({ "is_admin": true }))),
            ("POST", "/api/3.0/mlflow/users/permissions/grant", on("experiment", &experiment)),
            ("POST", "/api/3.0/mlflow/users/permissions/grant", on("run", "*")),
            ("POST", "/api/3.0/mlflow/users/permissions/grant", on("experiment", "999")),
            ("POST", "/api/3.0/mlflow/users/permissions/revoke", on("experiment", &experiment)),
            ("POST", "/api/3.0/mlflow/users/permissions/revoke", on("run", "*")),
            ("POST", "/api/3.0/mlflow/users/permissions/revoke", on("experiment", "999")),
            ("POST", "/api/3.0/mlflow/roles/permissions/add", of_role),
            ("POST", "/api/3.0/mlflow/roles/assign", of_user.clone()),
            ("DELETE", "/api/3.0/mlflow/roles/unassign", of_user.clone()),
            ("POST", "/api/3.0/mlflow/roles/assign", of_user),
            ("PATCH", "/api/3.0/mlflow/roles/update", json!({ "role_id": role, "name": format!("{name} changed") })),
            ("DELETE", "/api/3.0/mlflow/roles/delete", json!({ "role_id": role })),
            ("DELETE", "/api/2.0/mlflow/users/delete", user.clone()),
        ];
        for (method, path, body) in calls {
            server.site.faults.reset_calls();
            server.site.faults.trouble_at(InjectedFault::AnswerLost, before + 1, 1);
            let answer = admin.at(method, path, &body).await;
            server.site.faults.work_again();
            assert_eq!(answer.status, 200, "{method} {path}, answer {}: {}", before + 1, answer.body);
            let calls: u64 = server.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
            lost += u64::from(calls > before);
        }
        let users = server.admin.v2("GET", "users/list", json!({})).await.ok();
        assert_eq!(users["users"].as_array().unwrap().len(), 1, "{users}");
        let roles = server.admin.v3("GET", "roles/list", json!({})).await.ok();
        assert_eq!(roles["roles"], json!([]));
        let granted = server.admin.v3("GET", "users/current/permissions", json!({})).await.ok();
        assert_eq!(granted["permissions"].as_array().unwrap().len(), 1, "{granted}");
    }
    assert!(lost > least, "{lost} answers were lost");
}

/// Checks a search among many experiments by a user who can see only a few of them. The page is
/// full, and its cost depends only on the number of experiments that the user can see.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_among_many_experiments_reads_those_that_may_be_seen() {
    fifty_may_be_seen_of(400).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes 10,000 experiments; part of `make test-slow`"]
async fn a_search_among_ten_thousand_experiments_reads_those_that_may_be_seen() {
    fifty_may_be_seen_of(10_000).await;
}

/// Maximum number of requests for a page of 50 experiments that were granted individually.
const MOST_REQUESTS: u64 = 8;

/// Creates experiments, and lets a user see 50 of them, evenly distributed. Checks that a page of
/// these 50 takes few requests.
async fn fifty_may_be_seen_of(experiments: usize) {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let name = UserName::new("ann").unwrap();
    for number in 0..experiments {
        let experiment = server.admin.experiment(&format!("experiment {number}")).await;
        if number % (experiments / 50) == 0 {
            let granted = server
                .users
                .grant(
                    &access::AuthorizerWrites::nothing(),
                    &name,
                    GrantType::Experiment,
                    &experiment,
                    PermissionLevel::Read,
                )
                .await;
            granted.unwrap();
        }
    }
    let faulty = server.site.faulty();
    let access = faulty.beside(server.access.name().to_owned());
    let api = process(&faulty, &access, PermissionLevel::NoPermissions).await;
    let requests = async |by: &Client| {
        let client = Client { api: api.clone(), ..by.clone() };
        server.site.faults.reset_calls();
        let found = client.v2("POST", "experiments/search", json!({ "max_results": 50 })).await.ok();
        let calls: u64 = server.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        (found["experiments"].as_array().unwrap().len(), calls)
    };
    let (of_admin, of_ann) = (requests(&server.admin).await, requests(&ann).await);
    assert_eq!((of_admin.0, of_ann.0), (50, 50));
    assert!(of_ann.1 <= 10 * of_admin.1, "{of_admin:?} {of_ann:?}");
    // The number of requests does not depend on the number of experiments. It includes those by
    // which a cold process authenticates and authorizes the caller.
    assert!(of_ann.1 <= MOST_REQUESTS, "{of_ann:?}");
}
