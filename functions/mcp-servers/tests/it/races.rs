//! Concurrent requests to one server, and requests whose responses are lost.

use futures::future::join_all;
use serde_json::json;

use crate::server::{Server, site};

const NAME: &str = "com.example/search";

#[tokio::test]
async fn concurrent_changes_of_a_server_are_all_made() {
    let (_, server) = site().await;
    let versions = (0..8).map(|number| server.version(NAME, format!("1.{number}.0").leak(), "active"));
    join_all(versions.collect::<Vec<_>>()).await;
    assert_eq!(server.latest(NAME).await, (json!("1.7.0"), json!("active")));
    let tags = (0..8).map(|number| {
        let body = json!({ "key": format!("k{number}"), "value": "v" });
        let server = server.clone();
        async move { server.send("POST", &format!("/{NAME}/tags"), body).await.ok() }
    });
    join_all(tags.collect::<Vec<_>>()).await;
    assert_eq!(server.get_server(NAME).await["tags"].as_object().unwrap().len(), 8);
    let statuses = (0..8).map(|number| {
        let server = server.clone();
        async move { server.set_status(NAME, &format!("1.{number}.0"), "deprecated").await.ok() }
    });
    join_all(statuses.collect::<Vec<_>>()).await;
    assert_eq!(server.latest(NAME).await, (json!("1.7.0"), json!("deprecated")));
}

#[tokio::test]
async fn faults_change_no_outcome() {
    let (site, _) = site().await;
    let server = Server::on(&site.faulty());
    site.faults.refuse_every(3);
    site.faults.lose_answer_every(4);
    server.create(NAME).await;
    for version in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
        server.version(NAME, version, "active").await;
    }
    server.send("POST", &format!("/{NAME}/aliases"), json!({ "alias": "a", "version": "1.0.0" })).await.ok();
    server.send("POST", &format!("/{NAME}/endpoints"), json!({ "url": "u", "server_alias": "a" })).await.ok();
    server.set_status(NAME, "2.0.0-rc.1", "deprecated").await.ok();
    server.send("DELETE", &format!("/{NAME}/versions/2.0.0-rc.1"), json!({})).await.ok();
    assert_eq!(server.latest(NAME).await, (json!("1.1.0"), json!("active")));
    let found = server.get_server(NAME).await;
    assert_eq!(found["access_endpoints"].as_array().unwrap().len(), 1);
    site.items().await;
}
