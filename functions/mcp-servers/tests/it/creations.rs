//! Creations whose requests fail in every possible way, see [`test_site::creations`].

use serde_json::{Value, json};
use test_site::creations::{Creation, CreationSetup};
use test_site::{TableDump, TestClient};

use crate::server::{Server, noise, server_json};

const NAME: &str = "com.example/search";

async fn check(path: &'static str, count: fn(&TableDump) -> Vec<usize>, adds: &'static [usize], body: Value) {
    let ground = async || {
        let setup = CreationSetup::new(|table| TestClient::clone(&Server::on(table)), body.clone()).await;
        Server::on(&setup.site.table).version("com.example/existing", "1.0.0", "active").await;
        setup
    };
    Creation { path, count, adds }.check(ground).await;
}

fn documents(dump: &TableDump) -> usize {
    dump.keys().filter(|key| key.contains(" S#")).count()
}

fn versions(dump: &TableDump) -> usize {
    dump.keys().filter(|key| key.contains(" V#")).count()
}

#[tokio::test]
async fn servers() {
    check("3.0/mlflow/mcp-servers", |dump| vec![documents(dump)], &[1], json!({ "name": NAME })).await;
}

#[tokio::test]
async fn versions_with_and_without_a_new_server() {
    let count = |dump: &TableDump| vec![documents(dump), versions(dump)];
    let new = json!({ "server_json": server_json(NAME, "1.0.0") });
    check("3.0/mlflow/mcp-servers/com.example%2Fsearch/versions", count, &[1, 1], new).await;
    let mut large = server_json("com.example/existing", "2.0.0");
    large["filler"] = noise(900_000).into();
    let large = json!({ "server_json": large, "status": "active" });
    check("3.0/mlflow/mcp-servers/com.example/existing/versions", count, &[0, 1], large).await;
}

#[tokio::test]
async fn access_endpoints() {
    let count = |dump: &TableDump| {
        let endpoints =
            dump.values().filter_map(|item| item.pointer("/endpoints/M")?.as_object().map(serde_json::Map::len));
        vec![endpoints.sum()]
    };
    let new = json!({ "url": "https://example.com/mcp", "server_alias": "latest" });
    check("3.0/mlflow/mcp-servers/com.example/existing/endpoints", count, &[1], new).await;
}
