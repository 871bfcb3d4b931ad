//! Versions: their content, their statuses, and the latest one.

use serde_json::{Value, json};

use crate::server::{Server, noise, server_json, site};

const NAME: &str = "com.example/search";

/// Returns the latest version and its status, separated by a space.
async fn latest(server: &Server) -> String {
    let (version, status) = server.latest(NAME).await;
    format!("{} {}", version.as_str().unwrap_or("none"), status.as_str().unwrap_or("none"))
}

#[tokio::test]
async fn the_latest_version_is_the_greatest_active_one_or_else_the_greatest_one() {
    let (_, server) = site().await;
    for (version, status, expected) in [
        ("1.0.0", "draft", "1.0.0 draft"),
        ("1.1.0-rc.2", "draft", "1.1.0-rc.2 draft"),
        ("1.1.0-rc.10", "draft", "1.1.0-rc.10 draft"),
        ("0.9.0", "active", "0.9.0 active"),
        ("2.0.0", "draft", "0.9.0 active"),
        ("0.10.0", "active", "0.10.0 active"),
    ] {
        server.version(NAME, version, status).await;
        assert_eq!(latest(&server).await, expected, "{version}");
    }
    for (version, status, expected) in [
        ("0.10.0", "deprecated", "0.9.0 active"),
        ("0.9.0", "draft", "2.0.0 draft"),
        ("2.0.0", "active", "2.0.0 active"),
        ("2.0.0", "deprecated", "2.0.0 deprecated"),
        ("1.1.0-rc.2", "active", "1.1.0-rc.2 active"),
        ("1.1.0-rc.10", "active", "1.1.0-rc.10 active"),
        ("1.1.0-rc.10", "draft", "1.1.0-rc.2 active"),
        ("1.1.0-rc.2", "draft", "2.0.0 deprecated"),
    ] {
        server.set_status(NAME, version, status).await.ok();
        assert_eq!(latest(&server).await, expected, "{version} {status}");
    }
    for (version, expected) in [
        ("2.0.0", "1.1.0-rc.10 draft"),
        ("1.0.0", "1.1.0-rc.10 draft"),
        ("1.1.0-rc.10", "1.1.0-rc.2 draft"),
        ("1.1.0-rc.2", "0.10.0 deprecated"),
        ("0.10.0", "0.9.0 draft"),
        ("0.9.0", "none none"),
    ] {
        server.send("DELETE", &format!("/{NAME}/versions/{version}"), json!({})).await.ok();
        assert_eq!(latest(&server).await, expected, "without {version}");
    }
    server.read(&format!("/{NAME}/aliases/latest"), &[]).await.missing();
}

#[tokio::test]
async fn a_deleted_version_keeps_its_name() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "draft").await;
    let one = format!("/{NAME}/versions/1.0.0");
    server.send("DELETE", &one, json!({})).await.ok();
    server.read(&one, &[]).await.missing();
    let again = json!({ "server_json": server_json(NAME, "1.0.0") });
    let refused = server.send("POST", &format!("/{NAME}/versions"), again).await;
    refused.refused(400, "RESOURCE_ALREADY_EXISTS");
    for (path, body) in [
        ("aliases", json!({ "alias": "a", "version": "1.0.0" })),
        ("endpoints", json!({ "url": "u", "server_version": "1.0.0" })),
    ] {
        let refused = server.send("POST", &format!("/{NAME}/{path}"), body).await;
        assert!(refused.refused(400, "INVALID_PARAMETER_VALUE").contains("deleted MCP server version"));
    }
    let refused = server.send("DELETE", &one, json!({})).await;
    refused.refused(400, "INVALID_PARAMETER_VALUE");
}

#[tokio::test]
async fn a_version_that_is_active_is_not_deleted_nor_is_its_server() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "active").await;
    for path in [format!("/{NAME}"), format!("/{NAME}/versions/1.0.0")] {
        server.send("DELETE", &path, json!({})).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    server.set_status(NAME, "1.0.0", "draft").await.ok();
    server.send("DELETE", &format!("/{NAME}"), json!({})).await.ok();
}

#[tokio::test]
async fn deleting_a_version_removes_what_refers_to_it() {
    let (_, server) = site().await;
    server.version(NAME, "1.0.0", "draft").await;
    server.version(NAME, "2.0.0", "active").await;
    for (alias, version) in [("a", "1.0.0"), ("b", "2.0.0")] {
        server.send("POST", &format!("/{NAME}/aliases"), json!({ "alias": alias, "version": version })).await.ok();
    }
    for target in [
        json!({ "server_alias": "a" }),
        json!({ "server_version": "1.0.0" }),
        json!({ "server_alias": "b" }),
        json!({ "server_alias": "latest" }),
    ] {
        let mut body = target;
        body["url"] = "u".into();
        server.send("POST", &format!("/{NAME}/endpoints"), body).await.ok();
    }
    server.send("DELETE", &format!("/{NAME}/versions/1.0.0"), json!({})).await.ok();
    let found = server.get_server(NAME).await;
    assert_eq!(found["aliases"], json!([{ "alias": "b", "version": "2.0.0" }]));
    let left = found["access_endpoints"].as_array().unwrap().iter().map(|endpoint| endpoint["server_alias"].clone());
    let mut left: Vec<_> = left.map(|alias| alias.as_str().unwrap().to_owned()).collect();
    left.sort_unstable();
    assert_eq!(left, ["b", "latest"]);
}

#[tokio::test]
async fn a_content_may_have_two_megabytes() {
    let (site, server) = site().await;
    let mut large = server_json(NAME, "1.0.0");
    large["filler"] = noise(2_000_000).into();
    server.send("POST", &format!("/{NAME}/versions"), json!({ "server_json": large })).await.ok();
    let one = format!("/{NAME}/versions/1.0.0");
    assert_eq!(server.read(&one, &[]).await.ok()["server_json"], large);
    let parts = async || site.dump().await.keys().filter(|key| key.contains(" P#")).count();
    let before = parts().await;
    assert!(before > 1);
    let tools = json!([{ "name": "t" }]);
    let changed = server.send("PATCH", &one, json!({ "tools": tools })).await.ok();
    assert_eq!((&changed["server_json"], &changed["tools"][0]["name"]), (&large, &json!("t")));
    assert_eq!(server.read(&one, &[]).await.ok(), changed);
    assert_eq!(parts().await, before, "the replaced parts are deleted");
    server.set_status(NAME, "1.0.0", "active").await.ok();
    assert_eq!(server.read(&one, &[]).await.ok()["server_json"], large);
    large["filler"] = noise(2_200_000).into();
    large["version"] = "2.0.0".into();
    let refused = server.send("POST", &format!("/{NAME}/versions"), json!({ "server_json": large })).await;
    assert!(refused.refused(400, "INVALID_PARAMETER_VALUE").contains("2097152 bytes"));
}

#[tokio::test]
async fn changing_one_part_of_a_version_keeps_the_others() {
    let (_, server) = site().await;
    let options = json!({ "a": { "hidden": true } });
    let new = json!({
        "server_json": server_json(NAME, "1.0.0"), "tools": [{ "name": "t" }], "connect_options": options, "source": "s",
    });
    let created = server.send("POST", &format!("/{NAME}/versions"), new).await.ok();
    let one = format!("/{NAME}/versions/1.0.0");
    server.send("POST", &format!("{one}/tags"), json!({ "key": "k/1", "value": "v" })).await.ok();
    let changed = server.send("PATCH", &one, json!({ "tools": null })).await.ok();
    assert_eq!(changed["tools"], json!([]));
    for field in ["server_json", "connect_options", "source", "status", "creation_timestamp"] {
        assert_eq!(changed[field], created[field], "{field}");
    }
    assert_eq!(changed["tags"], json!({ "k/1": "v" }));
    let changed = server.send("PATCH", &one, json!({ "connect_options": null, "status": "active" })).await.ok();
    assert_eq!((&changed["connect_options"], &changed["status"]), (&json!({}), &json!("active")));
    server.send("DELETE", &format!("{one}/tags/k/1"), json!({})).await.ok();
    assert_eq!(server.read(&one, &[]).await.ok()["tags"], json!({}));
    for body in [json!({ "status": "none" }), json!({ "status": null }), json!({ "status": "deleted" })] {
        server.send("PATCH", &one, body).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    assert_eq!(server.read(&one, &[]).await.ok()["status"], "active");
}

#[tokio::test]
async fn bad_versions_are_refused() {
    let (_, server) = site().await;
    for (version, body) in [
        ("1.0", json!({})),
        ("v1.0.0", json!({})),
        ("1.0.0", json!({ "status": "deprecated" })),
        ("1.0.0", json!({ "name": "com.example/other" })),
    ] {
        let mut new = json!({ "server_json": server_json(NAME, version) });
        if let Some(name) = body.get("name") {
            new["server_json"]["name"] = name.clone();
        } else if let Some(status) = body.get("status") {
            new["status"] = status.clone();
        }
        let refused = server.send("POST", &format!("/{NAME}/versions"), new).await;
        refused.refused(400, "INVALID_PARAMETER_VALUE");
    }
    server.read(&format!("/{NAME}"), &[]).await.missing();
    assert_eq!(server.read(&format!("/{NAME}/versions"), &[]).await.ok()["mcp_server_versions"], Value::Array(vec![]));
}
