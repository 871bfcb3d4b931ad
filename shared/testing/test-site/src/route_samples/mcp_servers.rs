//! Samples of the MCP server registry.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, V3, text};

/// Returns the body of a request that creates a version. If `is_large`, the version is so large
/// that it is stored in parts.
fn version(server: &str, version: &str, status: &str, is_large: bool) -> Value {
    let noise = |number: u32| char::from(b'a' + u8::try_from(number * number % 25).unwrap());
    let filler: String = (0..if is_large { 60_000_u32 } else { 0 }).map(noise).collect();
    json!({
        "server_json": {
            "name": server, "version": version, "description": "searches", "filler": filler,
            "icons": [{ "src": "https://example.com/i.png", "theme": "dark" }],
        },
        "status": status,
        "tools": [{ "name": "search", "inputSchema": { "type": "object" } }],
    })
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let all = format!("{V3}/mcp-servers");
    let one = format!("{all}/{{name}}");
    let name = "com.example/written";
    let ids = ["com.example%2Fwritten"];
    let [escaped] = ids;
    let new = json!({ "name": name, "icons": [{ "src": "https://example.com/i.png" }] });
    walk.send(&format!("POST {all}"), &[], new).await;
    walk.send(&format!("PATCH {one}"), &ids, json!({ "description": "d", "display_name": "D" })).await;
    for number in ["1.0.0", "1.1.0-rc.1", "1.1.0"] {
        let body = version(name, number, "draft", number == "1.1.0");
        walk.send(&format!("POST {one}/versions"), &ids, body).await;
    }
    // The first version of a server creates the server.
    let other = "com.example%2Fother";
    walk.send(&format!("POST {one}/versions"), &[other], version("com.example/other", "1.0.0", "active", false)).await;
    let of_version = format!("{one}/versions/{{version}}");
    let tools = json!({ "status": "active", "tools": [], "connect_options": { "a": { "hidden": true } } });
    walk.send(&format!("PATCH {of_version}"), &[escaped, "1.1.0"], tools).await;
    walk.send(&format!("PATCH {of_version}"), &[escaped, "1.1.0"], json!({ "status": "deprecated" })).await;
    walk.send(&format!("POST {of_version}/tags"), &[escaped, "1.0.0"], json!({ "key": "k/1", "value": "v" })).await;
    walk.send(&format!("DELETE {of_version}/tags/{{*key}}"), &[escaped, "1.0.0", "k%2F1"], json!({})).await;
    walk.send(&format!("POST {one}/tags"), &ids, json!({ "key": "k/1", "value": "v" })).await;
    walk.send(&format!("DELETE {one}/tags/{{*key}}"), &[escaped, "k%2F1"], json!({})).await;
    for alias in ["team/a", "b"] {
        walk.send(&format!("POST {one}/aliases"), &ids, json!({ "alias": alias, "version": "1.1.0" })).await;
    }
    walk.send(&format!("DELETE {one}/aliases/{{*alias}}"), &[escaped, "team%2Fa"], json!({})).await;
    let endpoint = json!({ "url": "https://example.com/mcp", "server_version": "1.0.0" });
    let created = walk.send(&format!("POST {one}/endpoints"), &ids, endpoint).await;
    let id = text(&created, "/id");
    let update = json!({ "server_alias": "b", "transport_type": "sse" });
    walk.send(&format!("PATCH {one}/endpoints/{{endpoint_id}}"), &[escaped, &id], update).await;
    walk.send(&format!("DELETE {one}/endpoints/{{endpoint_id}}"), &[escaped, &id], json!({})).await;
    walk.send(&format!("DELETE {of_version}"), &[escaped, "1.1.0"], json!({})).await;
    walk.send(&format!("DELETE {one}"), &ids, json!({})).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let (name, escaped) = ("com.example/read", "com.example%2Fread");
    let one = format!("{V3}/mcp-servers/{{name}}");
    for (number, status) in [("1.0.0", "draft"), ("1.1.0", "active")] {
        walk.send(&format!("POST {one}/versions"), &[escaped], version(name, number, status, number == "1.0.0")).await;
    }
    walk.send(&format!("POST {one}/tags"), &[escaped], json!({ "key": "team", "value": "a" })).await;
    walk.send(&format!("POST {one}/aliases"), &[escaped], json!({ "alias": "a/b", "version": "1.0.0" })).await;
    let mut id = String::new();
    for alias in ["latest", "a/b"] {
        let endpoint = json!({ "url": "https://example.com/mcp", "server_alias": alias });
        id = text(&walk.send(&format!("POST {one}/endpoints"), &[escaped], endpoint).await, "/id");
    }
    let get = |path: &str| (format!("GET {V3}/mcp-servers{path}"), json!({}));
    let of = |rest: &str| get(&format!("/{{name={escaped}}}{rest}"));
    let reads = vec![
        get(""),
        get("?filter_string=status%20%3D%20%27active%27&order_by=created_at%20DESC"),
        get("?filter_string=tags.team%20%3D%20%27a%27"),
        get("/endpoints"),
        get("/endpoints?filter_string=status%20%3D%20%27active%27"),
        of(""),
        of("/versions"),
        of("/versions?order_by=%60version%60%20DESC"),
        of("/versions/{version=1.0.0}"),
        of("/aliases/{*alias=a%2Fb}"),
        of("/aliases/{*alias=latest}"),
        of("/endpoints"),
        of(&format!("/endpoints/{{endpoint_id={id}}}")),
    ];
    walk.read(reads).await;
}
