//! Samples of the auth function.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, V2, V3};

/// Name of the user who sends the samples. A router that serves samples must authenticate every
/// caller as this user.
pub const SAMPLE_USER: &str = "walker";

const PASSWORD: &str = "a password of the walk";

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap()
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let create = format!("POST {V2}/users/create");
    walk.send(&create, &[], json!({ "username": "leaver", "password": PASSWORD })).await;
    // The page with the sign-up form, which is HTML, and the route that the form posts to.
    walk.answered("GET /signup", &[], json!({})).await;
    walk.answered("POST /api/2.0/mlflow/users/create-ui", &[], json!({})).await;
    let other = "other password of the walk";
    walk.send(&format!("PATCH {V2}/users/update-password"), &[], json!({ "username": "leaver", "password": other }))
        .await;
    for is_admin in [true, true, false] {
        let body = json!({ "username": if is_admin { SAMPLE_USER } else { "leaver" }, "is_admin": is_admin });
        walk.send(&format!("PATCH {V2}/users/update-admin"), &[], body).await;
    }
    let role =
        walk.send(&format!("POST {V3}/roles/create"), &[], json!({ "name": "leaving", "workspace": "default" })).await;
    let role = number(&role, "/role/id");
    walk.send(&format!("PATCH {V3}/roles/update"), &[], json!({ "role_id": role, "name": "left" })).await;
    let granted = json!({ "role_id": role, "resource_type": "run", "resource_pattern": "*", "permission": "READ" });
    let granted = walk.send(&format!("POST {V3}/roles/permissions/add"), &[], granted).await;
    let granted = number(&granted, "/role_permission/id");
    let changed = json!({ "role_permission_id": granted, "permission": "EDIT" });
    walk.send(&format!("PATCH {V3}/roles/permissions/update"), &[], changed).await;
    let member = json!({ "role_id": role, "username": "leaver" });
    for _ in 0..2 {
        walk.send(&format!("POST {V3}/roles/assign"), &[], member.clone()).await;
        walk.send(&format!("DELETE {V3}/roles/unassign"), &[], member.clone()).await;
    }
    walk.send(&format!("DELETE {V3}/roles/permissions/remove"), &[], json!({ "role_permission_id": granted })).await;
    walk.send(&format!("POST {V3}/roles/assign"), &[], member).await;
    walk.send(&format!("DELETE {V3}/roles/delete"), &[], json!({ "role_id": role })).await;
    for (kind, resource) in [("experiment", "0"), ("run", "*"), ("gateway_secret", "s")] {
        let mut body =
            json!({ "username": "leaver", "resource_type": kind, "resource_id": resource, "permission": "READ" });
        walk.send(&format!("POST {V3}/users/permissions/grant"), &[], body.clone()).await;
        if kind != "run" {
            body.as_object_mut().unwrap().remove("permission");
            walk.send(&format!("POST {V3}/users/permissions/revoke"), &[], body).await;
        }
    }
    walk.send(&format!("DELETE {V2}/users/delete"), &[], json!({ "username": "leaver" })).await;
    let (all, one) = (format!("{V3}/workspaces"), format!("{V3}/workspaces/{{workspace_name}}"));
    walk.send_with(&format!("POST {all}"), &[], "", json!({ "name": "sample" }), 201).await;
    walk.send(&format!("PATCH {one}"), &["sample"], json!({ "description": "of the walk" })).await;
    walk.send_with(&format!("DELETE {one}"), &["sample"], "", json!({}), 204).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let role =
        walk.send(&format!("POST {V3}/roles/create"), &[], json!({ "name": "kept", "workspace": "default" })).await;
    let role = number(&role, "/role/id");
    let granted = json!({ "role_id": role, "resource_type": "run", "resource_pattern": "*", "permission": "READ" });
    walk.send(&format!("POST {V3}/roles/permissions/add"), &[], granted).await;
    walk.send(&format!("POST {V3}/roles/assign"), &[], json!({ "role_id": role, "username": SAMPLE_USER })).await;
    let granted = json!({
        "username": SAMPLE_USER, "resource_type": "experiment", "resource_id": "0", "permission": "MANAGE",
    });
    walk.send(&format!("POST {V3}/users/permissions/grant"), &[], granted).await;
    let of_user = format!("?username={SAMPLE_USER}");
    let of_role = format!("?role_id={role}");
    let get = |version: &str, path: &str, query: &str| (format!("GET {version}/{path}{query}"), json!({}));
    walk.read(vec![
        get(V2, "users/current", ""),
        get(V2, "users/get", &of_user),
        get(V2, "users/list", ""),
        get(V3, "users/current/permissions", ""),
        get(V3, "users/permissions/list", &of_user),
        get(V3, "users/permissions/get", &format!("{of_user}&resource_type=experiment&resource_id=0")),
        get(V3, "users/roles/list", &of_user),
        get(V3, "roles/get", &of_role),
        get(V3, "roles/list", ""),
        get(V3, "roles/permissions/list", &of_role),
        get(V3, "roles/users/list", &of_role),
        ("GET /signup".to_owned(), json!({})),
        get(V3, "workspaces", ""),
        get(V3, "workspaces/{workspace_name=default}", ""),
    ])
    .await;
}
