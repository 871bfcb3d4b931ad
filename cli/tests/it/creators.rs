//! Servers that restrict the creation of entities to users with a certain role.

use mlflow_api::auth::PermissionLevel;
use serde_json::json;

use crate::users_server::{Client, Server, process_for};

/// Routes that create entities in a workspace, each with a request body.
const CREATIONS: [(&str, &str); 3] = [
    ("experiments/create", r#"{ "name": "by NAME" }"#),
    ("registered-models/create", r#"{ "name": "by NAME" }"#),
    (
        "registered-models/create",
        r#"{ "name": "prompt by NAME", "tags": [{ "key": "mlflow.prompt.is_prompt", "value": "true" }] }"#,
    ),
];

async fn statuses(client: &Client) -> Vec<u16> {
    let mut all = Vec::new();
    for (route, body) in CREATIONS {
        let body = serde_json::from_str(&body.replace("NAME", client.name)).unwrap();
        all.push(client.v2("POST", route, body).await.status);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn only_users_with_the_role_create_experiments_models_and_prompts() {
    // The default permission applies to existing resources, not to creation.
    let mut server = Server::new(PermissionLevel::Manage).await;
    let api = process_for(&server.site.table, &server.access, PermissionLevel::Manage, Some("makers")).await;
    server.admin = Client { api, ..server.admin };
    let (ann, bob) = (server.user("ann").await, server.user("bob").await);
    assert_eq!(statuses(&server.admin).await, [200; 3]);
    assert_eq!(statuses(&ann).await, [403; 3]);

    let mut ids = Vec::new();
    for name in ["makers", "makers of others"] {
        let role = server.admin.v3("POST", "roles/create", json!({ "name": name, "workspace": "default" })).await.ok();
        ids.push(role["role"]["id"].clone());
    }
    for (user, role) in [("ann", &ids[0]), ("bob", &ids[1])] {
        server.admin.v3("POST", "roles/assign", json!({ "username": user, "role_id": role })).await.ok();
    }
    assert_eq!(statuses(&ann).await, [200; 3]);
    assert_eq!(statuses(&bob).await, [403; 3], "another role");
    // A run belongs to an experiment, so the right to change the experiment suffices.
    let experiment = server.admin.experiment("open").await;
    bob.v2("POST", "runs/create", json!({ "experiment_id": experiment })).await.ok();

    server.admin.v3("DELETE", "roles/delete", json!({ "role_id": ids[0] })).await.ok();
    let again = Client { name: "ann", ..ann.clone() };
    assert_eq!(statuses(&again).await, [403; 3], "without the role");
    let role = server.admin.v3("POST", "roles/create", json!({ "name": "makers", "workspace": "default" })).await.ok();
    assert_eq!(statuses(&again).await, [403; 3], "a new role of the same name has no users");
    let member = json!({ "username": "bob", "role_id": role["role"]["id"] });
    server.admin.v3("POST", "roles/assign", member).await.ok();
    assert_eq!(statuses(&bob).await, [200; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_such_a_role_everybody_who_signs_in_creates() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    assert_eq!(statuses(&server.user("ann").await).await, [200; 3]);
}
