//! Searches of servers, versions and access endpoints.

use serde_json::{Value, json};

use crate::server::{Server, site};

fn names(answer: &Value, list: &str, field: &str) -> Vec<String> {
    let entities = answer[list].as_array().unwrap().iter();
    entities.map(|entity| entity[field].as_str().unwrap().to_owned()).collect()
}

/// Returns the names of all servers that a search finds, read in pages of two.
async fn servers(server: &Server, filter: &str, order_by: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let mut arguments = vec![("filter_string", filter), ("max_results", "2"), ("page_token", token.as_str())];
        if !order_by.is_empty() {
            arguments.push(("order_by", order_by));
        }
        let page = server.read("", &arguments).await.ok();
        found.extend(names(&page, "mcp_servers", "name"));
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return found,
        }
    }
}

#[tokio::test]
async fn servers_are_found_by_their_fields_in_any_order() {
    let (_, server) = site().await;
    for (name, status) in [("com.b/one", Some("active")), ("com.a/two", None), ("com.c/three", Some("draft"))] {
        server.create(name).await;
        if let Some(status) = status {
            server.version(name, "1.0.0", status).await;
        }
    }
    server.send("POST", "/com.b/one/tags", json!({ "key": "team", "value": "x" })).await.ok();
    server.send("POST", "/com.c/three/endpoints", json!({ "url": "u", "server_alias": "latest" })).await.ok();
    server.send("PATCH", "/com.a/two", json!({ "display_name": "Two" })).await.ok();
    let all = ["com.a/two", "com.b/one", "com.c/three"];
    for (filter, order, expected) in [
        ("", "", &all[..]),
        ("", "name DESC", &["com.c/three", "com.b/one", "com.a/two"]),
        ("", "created_at ASC", &["com.b/one", "com.a/two", "com.c/three"]),
        ("name LIKE 'com.%' AND name > 'com.b'", "", &["com.b/one", "com.c/three"]),
        ("status = 'active'", "", &["com.b/one"]),
        ("status != 'active'", "", &["com.c/three"]),
        ("status IN ('active', 'draft')", "created_at DESC", &["com.c/three", "com.b/one"]),
        ("has_access_endpoints = 'true'", "", &["com.c/three"]),
        ("has_access_endpoints = 'false'", "", &["com.a/two", "com.b/one"]),
        ("tags.team = 'x'", "", &["com.b/one"]),
        ("display_name ILIKE 't%'", "", &["com.a/two"]),
        ("name = 'none'", "", &[]),
    ] {
        assert_eq!(servers(&server, filter, order).await, expected, "{filter} {order}");
    }
    for (name, value) in [
        ("max_results", "0"),
        ("max_results", "1001"),
        ("max_results", "x"),
        ("page_token", "x"),
        ("order_by", "status"),
        ("filter_string", "name = 5"),
    ] {
        server.read("", &[(name, value)]).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
}

#[tokio::test]
async fn a_last_page_has_no_token() {
    let (_, server) = site().await;
    for number in 0..4 {
        server.create(&format!("com.example/s{number}")).await;
    }
    for (size, has_token) in [("3", true), ("4", false), ("5", false)] {
        for order in ["name", "created_at"] {
            let page = server.read("", &[("max_results", size), ("order_by", order)]).await.ok();
            assert_eq!(page["next_page_token"].is_string(), has_token, "{size} {order}");
        }
    }
}

#[tokio::test]
async fn versions_are_found_by_precedence() {
    let (_, server) = site().await;
    let name = "com.example/search";
    for version in ["10.0.0", "9.0.0", "9.0.0-rc.10", "9.0.0-rc.9"] {
        server.version(name, version, "draft").await;
    }
    server.set_status(name, "9.0.0", "active").await.ok();
    server.send("DELETE", &format!("/{name}/versions/10.0.0"), json!({})).await.ok();
    for (filter, order, expected) in [
        ("", "`version` DESC", &["9.0.0", "9.0.0-rc.10", "9.0.0-rc.9"][..]),
        ("", "created_at DESC", &["9.0.0-rc.9", "9.0.0-rc.10", "9.0.0"]),
        ("version < '9.0.0-rc.10'", "created_at", &["9.0.0-rc.9"]),
        ("version >= '9.0.0-rc.10+x'", "`version` ASC", &["9.0.0-rc.10", "9.0.0"]),
        ("version = '9.0.0'", "created_at", &["9.0.0"]),
        ("status = 'draft'", "`version` ASC", &["9.0.0-rc.9", "9.0.0-rc.10"]),
    ] {
        let arguments = [("filter_string", filter), ("order_by", order), ("max_results", "100")];
        let found = server.read(&format!("/{name}/versions"), &arguments).await.ok();
        assert_eq!(names(&found, "mcp_server_versions", "version"), expected, "{filter} {order}");
    }
    let page = server.read(&format!("/{name}/versions"), &[("max_results", "2")]).await.ok();
    let token = page["next_page_token"].as_str().unwrap();
    let rest = server.read(&format!("/{name}/versions"), &[("max_results", "2"), ("page_token", token)]).await.ok();
    let mut all = names(&page, "mcp_server_versions", "version");
    all.extend(names(&rest, "mcp_server_versions", "version"));
    assert_eq!(all, ["9.0.0", "9.0.0-rc.10", "9.0.0-rc.9"]);
    assert_eq!(rest["next_page_token"], Value::Null);
}

#[tokio::test]
async fn access_endpoints_are_found_across_servers() {
    let (_, server) = site().await;
    for (name, status) in [("com.example/a1", "active"), ("com.example/b1", "draft")] {
        server.version(name, "1.0.0", status).await;
        for (url, target, transport) in [
            ("x", json!({ "server_alias": "latest" }), "sse"),
            ("y", json!({ "server_version": "1.0.0" }), "streamable-http"),
        ] {
            let mut body = target;
            (body["url"], body["transport_type"]) = (format!("{url} of {name}").into(), transport.into());
            server.send("POST", &format!("/{name}/endpoints"), body).await.ok();
        }
    }
    let find = async |path: &str, arguments: &[(&str, &str)]| {
        let found = server.read(path, arguments).await.ok();
        let mut urls = names(&found, "mcp_access_endpoints", "url");
        urls.sort_unstable();
        urls
    };
    let all = ["x of com.example/a1", "x of com.example/b1", "y of com.example/a1", "y of com.example/b1"];
    assert_eq!(find("/endpoints", &[]).await, all);
    assert_eq!(find("/endpoints", &[("server_alias", "latest")]).await, all[..2]);
    assert_eq!(find("/endpoints", &[("server_version", "1.0.0")]).await, all[2..]);
    assert_eq!(find("/endpoints", &[("server_version", "1.0.0"), ("server_alias", "latest")]).await, all[..0]);
    assert_eq!(find("/endpoints", &[("filter_string", "status = 'draft'")]).await, [all[1], all[3]]);
    assert_eq!(find("/endpoints", &[("filter_string", "server_name = 'com.example/a1'")]).await, [all[0], all[2]]);
    assert_eq!(find("/endpoints", &[("filter_string", "transport_type = 'sse'")]).await, all[..2]);
    assert_eq!(find("/com.example/a1/endpoints", &[]).await, [all[0], all[2]]);
    assert_eq!(find("/com.example/none/endpoints", &[]).await, all[..0]);
    let page = server.read("/endpoints", &[("max_results", "3")]).await.ok();
    let token = page["next_page_token"].as_str().unwrap();
    let rest = server.read("/endpoints", &[("max_results", "3"), ("page_token", token)]).await.ok();
    assert_eq!(rest["mcp_access_endpoints"].as_array().unwrap().len(), 1);
}
