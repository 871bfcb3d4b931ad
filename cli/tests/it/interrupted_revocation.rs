//! Requests that revoke a user's rights, interrupted at each of their calls to the table. The user
//! never has more rights than before, and once the request is repeated, the right is gone.

use mlflow_api::auth::PermissionLevel;
use runtime::clock::SimulatedClock;
use serde_json::{Value, json};
use test_site::all_troubles;

use crate::test_server::TABLE;
use crate::users_server::{Client, PASSWORD, Server, process};

/// What a request revokes or changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Taken {
    Grant,
    RolesGrant,
    Role,
    AllOfRole,
    Password,
    User,
}

const ALL: [Taken; 6] = [Taken::Grant, Taken::RolesGrant, Taken::Role, Taken::AllOfRole, Taken::Password, Taken::User];

struct Said {
    method: &'static str,
    path: &'static str,
    body: Value,
}

impl Said {
    async fn by(&self, client: &Client) -> u16 {
        client.at(self.method, self.path, &self.body).await.status
    }
}

/// Creates a user who may read an experiment, and returns the request that revokes this right.
async fn granted(server: &Server, user: &'static str, experiment: &str, taken: Taken) -> (Client, Said) {
    let client = server.user(user).await;
    let named = json!({ "username": user });
    if matches!(taken, Taken::Grant | Taken::Password | Taken::User) {
        server.grant(&client, "experiment", experiment, "READ").await;
        // This second grant has to be removed together with the user.
        server.grant(&client, "run", "*", "EDIT").await;
        let of_experiment = json!({ "username": user, "resource_type": "experiment", "resource_id": experiment });
        let other = json!({ "username": user, "password": "another horse battery" });
        let said = match taken {
            Taken::Grant => {
                Said { method: "POST", path: "/api/3.0/mlflow/users/permissions/revoke", body: of_experiment }
            }
            Taken::Password => Said { method: "PATCH", path: "/api/2.0/mlflow/users/update-password", body: other },
            _ => Said { method: "DELETE", path: "/api/2.0/mlflow/users/delete", body: named },
        };
        return (client, said);
    }
    let role = server.admin.v3("POST", "roles/create", json!({ "name": user, "workspace": "default" })).await.ok();
    let role = &role["role"]["id"];
    let of_role = json!({
        "role_id": role, "resource_type": "experiment", "resource_pattern": experiment, "permission": "READ",
    });
    let grant = server.admin.v3("POST", "roles/permissions/add", of_role).await.ok();
    let grant = json!({ "role_permission_id": grant["role_permission"]["id"] });
    let assigned = json!({ "username": user, "role_id": role });
    server.admin.v3("POST", "roles/assign", assigned.clone()).await.ok();
    let said = match taken {
        Taken::RolesGrant => Said { method: "DELETE", path: "/api/3.0/mlflow/roles/permissions/remove", body: grant },
        Taken::Role => Said { method: "DELETE", path: "/api/3.0/mlflow/roles/unassign", body: assigned },
        _ => Said { method: "DELETE", path: "/api/3.0/mlflow/roles/delete", body: json!({ "role_id": role }) },
    };
    (client, said)
}

#[tokio::test]
async fn what_is_cut_off_takes_away_no_less_when_it_is_said_again() {
    let clock = SimulatedClock::begin();
    tokio::select! { () = Box::pin(each_is_cut_off()) => {}, () = clock.drive() => {} }
}

async fn each_is_cut_off() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let (own, other) = (server.admin.experiment("own").await, server.admin.experiment("other").await);
    let faulty = server.site.faulty();
    let api = process(&faulty, &faulty.beside(format!("{TABLE}-access")), PermissionLevel::NoPermissions).await;
    let cut_off = Client { api, ..server.admin.clone() };
    let mut cuts = 0;
    for (place, taken) in (0_u64..).zip(ALL) {
        // The sample interrupts every other call.
        let (first, step) = if all_troubles() { (1, 1) } else { (1 + place % 2, 2) };
        let before = cuts;
        for at in (first..).step_by(step) {
            let user: &'static str = format!("{taken:?}{at}").to_lowercase().leak();
            let (client, said) = granted(&server, user, &own, taken).await;
            let there = server.elsewhere(&client, PermissionLevel::NoPermissions).await;
            assert_eq!((there.reads(&own).await, there.reads(&other).await), (200, 403), "{user}");
            server.site.faults.reset_calls();
            server.site.faults.cut_off_at(at);
            let answer = said.by(&cut_off).await;
            server.site.faults.work_again();
            let calls: u64 = server.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
            runtime::clock::sleep(permissions::LEASE).await;
            // Access is either unchanged or already revoked. Changed credentials never allow more.
            let meanwhile = (there.reads(&own).await, there.reads(&other).await);
            assert!(matches!(meanwhile, (200 | 403, 403) | (401, 401)), "{user}: {meanwhile:?}");
            let changed = Client { password: "another horse battery", ..there.clone() };
            assert_ne!(changed.reads(&other).await, 200, "{user}");
            let is_over = calls < at;
            assert_eq!(is_over, answer == 200, "{user}: {answer}, {calls} calls");
            if !is_over {
                cuts += 1;
                // Rights that are already gone were revoked by the interrupted request.
                let again = said.by(&server.admin).await;
                assert!([200, 404].contains(&again), "{user}: {again}");
            }
            let status = if matches!(taken, Taken::Password | Taken::User) { 401 } else { 403 };
            assert_eq!((there.reads(&own).await, client.reads(&own).await), (status, status), "{user}");
            if taken == Taken::User {
                // A new user of the same name inherits nothing.
                assert_eq!(server.user(user).await.reads(&own).await, 403, "{user}");
                let found = Client { password: PASSWORD, ..client.clone() }.permissions().await;
                assert_eq!(found, Vec::new(), "{user}");
            }
            if is_over {
                break;
            }
        }
        assert!(cuts > before, "{taken:?} was never interrupted");
    }
    assert!(cuts > if all_troubles() { 12 } else { 5 }, "{cuts}");
}
