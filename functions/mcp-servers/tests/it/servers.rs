//! Servers, their tags, and access endpoints.

use std::time::Duration;

use artifact_store::ArtifactStore;
use entities::workspaces::Workspaces;
use retention::{LogReport, Retention};
use serde_json::{Value, json};

use crate::server::{Server, site};

const NAME: &str = "com.example/search";

async fn endpoint(server: &Server, body: Value) -> Value {
    server.send("POST", &format!("/{NAME}/endpoints"), body).await.ok()
}

#[tokio::test]
async fn a_server_is_created_once_and_changed() {
    let (_, server) = site().await;
    let created = server.create(NAME).await;
    assert_eq!(created["allowed_actions"], json!(["USE", "UPDATE", "DELETE", "MANAGE"]));
    let again = server.send("POST", "", json!({ "name": NAME })).await;
    assert_eq!(
        again.refused(400, "RESOURCE_ALREADY_EXISTS"),
        "MCP server with name 'com.example/search' already exists"
    );
    let icons = json!([{ "src": "https://example.com/i" }]);
    let body = json!({ "display_name": "Search", "description": "", "icons": icons });
    let changed = server.send("PATCH", &format!("/{NAME}"), body).await.ok();
    assert_eq!(changed["icons"], json!([{ "src": "https://example.com/i", "source": "server" }]));
    assert_eq!(server.get_server(NAME).await, changed);
    // Clients may send back the icons that a response contains.
    server.send("PATCH", "/com.example%2Fsearch", json!({ "icons": changed["icons"] })).await.ok();
    assert_eq!(server.get_server(NAME).await["icons"], changed["icons"]);
    server.read("/com.example/none", &[]).await.missing();
    server.read("/none", &[]).await.missing();
    server.send("DELETE", &format!("/{NAME}"), json!({})).await.ok();
    server.read(&format!("/{NAME}"), &[]).await.missing();
    server.send("DELETE", &format!("/{NAME}"), json!({})).await.missing();
}

#[tokio::test]
async fn texts_come_from_the_latest_version_unless_the_server_has_its_own() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "active").await;
    assert_eq!(server.get_server(NAME).await["description"], "description of 1.0.0");
    server.send("PATCH", &format!("/{NAME}"), json!({ "description": "own" })).await.ok();
    assert_eq!(server.get_server(NAME).await["description"], "own");
    server.send("PATCH", &format!("/{NAME}"), json!({ "description": null })).await.ok();
    server.version(NAME, "1.1.0", "active").await;
    assert_eq!(server.get_server(NAME).await["description"], "description of 1.1.0");
}

#[tokio::test]
async fn tags_and_aliases_may_contain_slashes() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "active").await;
    for (key, value) in [("team/a", "1"), ("", "2"), ("ü #?", "3")] {
        server.send("POST", &format!("/{NAME}/tags"), json!({ "key": key, "value": value })).await.ok();
    }
    let found = server.get_server(NAME).await;
    assert_eq!(found["tags"], json!({ "": "2", "team/a": "1", "ü #?": "3" }));
    server.send("DELETE", &format!("/{NAME}/tags/team/a"), json!({})).await.ok();
    server.send("DELETE", &format!("/{NAME}/tags/team/a"), json!({})).await.missing();
    server.send("DELETE", &format!("/{NAME}/tags/%C3%BC%20%23%3F"), json!({})).await.ok();
    let alias = json!({ "alias": "team/a", "version": "1.0.0" });
    server.send("POST", &format!("/{NAME}/aliases"), alias).await.ok();
    for path in ["team/a", "team%2Fa"] {
        let found = server.read(&format!("/{NAME}/aliases/{path}"), &[]).await.ok();
        assert_eq!((&found["version"], &found["aliases"]), (&json!("1.0.0"), &json!(["team/a"])));
    }
    server.send("DELETE", &format!("/{NAME}/aliases/team/a"), json!({})).await.ok();
    server.read(&format!("/{NAME}/aliases/team/a"), &[]).await.missing();
}

#[tokio::test]
async fn access_endpoints_follow_the_alias_that_they_name() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "active").await;
    let latest = endpoint(&server, json!({ "url": "https://a", "server_alias": "latest" })).await;
    let fixed = endpoint(&server, json!({ "url": "https://b", "server_version": "1.0.0" })).await;
    assert_eq!(latest["resolved_version"]["version"], "1.0.0");
    server.version(NAME, "2.0.0", "active").await;
    let one = |answer: &Value| format!("/{NAME}/endpoints/{}", answer["id"].as_str().unwrap());
    assert_eq!(server.read(&one(&latest), &[]).await.ok()["resolved_version"]["version"], "2.0.0");
    assert_eq!(server.read(&one(&fixed), &[]).await.ok()["resolved_version"]["version"], "1.0.0");
    let moved = server.send("PATCH", &one(&fixed), json!({ "server_alias": "latest" })).await.ok();
    assert_eq!((&moved["server_version"], &moved["server_alias"]), (&Value::Null, &json!("latest")));
    for (body, code) in [
        (json!({ "url": null }), "INVALID_PARAMETER_VALUE"),
        (json!({ "server_alias": "none" }), "RESOURCE_DOES_NOT_EXIST"),
        (json!({ "server_version": "9.0.0" }), "RESOURCE_DOES_NOT_EXIST"),
    ] {
        let refused = server.send("PATCH", &one(&fixed), body).await;
        assert_eq!(refused.body["error_code"], code);
    }
    server.send("DELETE", &one(&fixed), json!({})).await.ok();
    server.read(&one(&fixed), &[]).await.missing();
    // Deleting the last version also deletes the access endpoints that refer to the alias `latest`.
    for version in ["1.0.0", "2.0.0"] {
        server.set_status(NAME, version, "deprecated").await.ok();
        server.send("DELETE", &format!("/{NAME}/versions/{version}"), json!({})).await.ok();
    }
    assert_eq!(server.get_server(NAME).await["access_endpoints"], json!([]));
}

#[tokio::test]
async fn the_number_of_access_endpoints_is_bounded() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "active").await;
    for number in 0..100 {
        endpoint(&server, json!({ "url": format!("https://{number}"), "server_version": "1.0.0" })).await;
    }
    let body = json!({ "url": "https://more", "server_version": "1.0.0" });
    let refused = server.send("POST", &format!("/{NAME}/endpoints"), body).await;
    refused.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(server.get_server(NAME).await["access_endpoints"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn a_deleted_server_leaves_no_items_and_its_name_can_be_used_again() {
    let (site, server) = site().await;
    let before = site.dump().await;
    for version in ["1.0.0", "1.1.0"] {
        server.version(NAME, version, "draft").await;
    }
    let filler = crate::server::noise(400_000);
    let large = json!({ "server_json": { "name": NAME, "version": "2.0.0", "filler": filler } });
    server.send("POST", &format!("/{NAME}/versions"), large).await.ok();
    server.send("DELETE", &format!("/{NAME}"), json!({})).await.ok();
    assert_eq!(site.dump().await, before);
    server.create(NAME).await;
    assert_eq!(server.latest(NAME).await, (Value::Null, Value::Null));
    server.read(&format!("/{NAME}/versions/1.0.0"), &[]).await.missing();
}

#[tokio::test]
async fn an_interrupted_deletion_is_completed_by_the_housekeeper() {
    let (site, server) = site().await;
    let before = site.dump().await;
    server.version(NAME, "1.0.0", "draft").await;
    let faulty = Server::on(&site.impatient());
    // The first request reads the document, the second one deletes it, and all later ones fail.
    site.faults.reset_calls();
    site.faults.cut_off_at(3);
    faulty.send("DELETE", &format!("/{NAME}"), json!({})).await;
    site.faults.work_again();
    server.read(&format!("/{NAME}"), &[]).await.missing();
    assert_ne!(site.dump().await, before);
    let retention = Retention::new(site.table.clone(), ArtifactStore::default());
    let workspaces = Workspaces::new(site.table.clone());
    assert!(Box::pin(retention.remove_for(Duration::from_mins(1), &workspaces, &LogReport)).await.unwrap());
    assert_eq!(site.dump().await, before);
}
