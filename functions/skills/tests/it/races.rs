//! Concurrent requests to one skill, and requests whose responses are lost.

use futures::future::join_all;
use serde_json::json;

use crate::server::{Server, site};

#[tokio::test]
async fn concurrent_registrations_have_different_numbers() {
    let (_, server) = site().await;
    let versions = join_all((0..8).map(|_| server.register("a", "active"))).await;
    let mut numbers: Vec<_> = versions.iter().map(|version| version["version"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(server.latest("a").await, (json!(8), json!("active")));
    let statuses = (1..=8).map(|number| server.set_status("a", number, "deprecated"));
    for response in join_all(statuses).await {
        response.ok();
    }
    assert_eq!(server.latest("a").await, (json!(8), json!("deprecated")));
}

#[tokio::test]
async fn faults_change_no_outcome() {
    let (site, _) = site().await;
    let server = Server::on(&site.faulty());
    site.faults.refuse_every(3);
    site.faults.lose_answer_every(4);
    server.send("POST", "", json!({ "name": "a" })).await.ok();
    for number in 1..=3 {
        assert_eq!(server.register("a", "active").await["version"], number);
    }
    server.send("POST", "/a/aliases", json!({ "alias": "b", "version": 3 })).await.ok();
    server.set_status("a", 3, "deprecated").await.ok();
    server.send("DELETE", "/a/versions/3", json!({})).await.ok();
    assert_eq!(server.latest("a").await, (json!(2), json!("active")));
    site.items().await;
}
