//! Tests creations with faults at each request to the table ([`test_site::creations`]).

use serde_json::{Value, json};
use test_site::creations::{Creation, CreationSetup};
use test_site::{TableDump, TestClient};

use crate::server::{Server, registration};

async fn check(path: &'static str, count: fn(&TableDump) -> Vec<usize>, adds: &'static [usize], body: Value) {
    let ground = async || {
        let setup = CreationSetup::new(|table| TestClient::clone(&Server::on(table)), body.clone()).await;
        Server::on(&setup.site.table).register("existing", "active").await;
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
async fn skills() {
    check("3.0/mlflow/skills", |dump| vec![documents(dump)], &[1], json!({ "name": "a" })).await;
}

#[tokio::test]
async fn versions_with_and_without_a_new_skill() {
    let count = |dump: &TableDump| vec![documents(dump), versions(dump)];
    check("3.0/mlflow/skills/@acme/a/versions", count, &[1, 1], registration("active")).await;
    check("3.0/mlflow/skills/existing/versions", count, &[0, 1], registration("draft")).await;
}
