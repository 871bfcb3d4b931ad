//! A name is used by only one experiment, even with concurrent requests.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::json;

use crate::server::{Server, Site, TestResponse};

async fn create(server: &Server, name: &str) -> TestResponse {
    server.post("experiments/create", json!({ "name": name })).await
}

async fn rename(server: &Server, id: &str, name: &str) -> TestResponse {
    server.post("experiments/update", json!({ "experiment_id": id, "new_name": name })).await
}

/// Returns the id of the experiment that the row of a name refers to, and the name in that
/// experiment's own item.
async fn owner(server: &Server, name: &str) -> Option<(String, String)> {
    let answer = server.get("experiments/get-by-name", &[("experiment_name", name)]).await;
    if answer.status == 404 {
        return None;
    }
    let experiment = answer.ok()["experiment"].clone();
    let text = |field: &str| experiment[field].as_str().unwrap().to_owned();
    Some((text("experiment_id"), text("name")))
}

/// Checks that the row of each name refers to an experiment with that name, and that each
/// experiment has exactly one such row.
async fn names_fit(site: &Site) {
    let items = site.dump().await;
    let mut named = BTreeSet::new();
    for (key, row) in items.iter().filter(|(key, _)| key.contains(" EXPNAME#")) {
        let id = row["experiment"]["S"].as_str().unwrap();
        assert_eq!(items[&format!("EXP#{id} E#META")]["name"], row["name"], "{key}");
        assert!(named.insert(id.to_owned()), "{id} has two names");
    }
    assert_eq!(named.len(), items.keys().filter(|key| key.ends_with(" E#META")).count());
}

#[tokio::test]
async fn one_of_many_gets_a_name() {
    for lose in [0, 3] {
        let site = Site::new().await;
        site.faults.lose_answer_every(lose);
        let answers = join_all((0..24).map(|_| create(&site.server, "wanted"))).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(won.len(), 1);
        for answer in lost {
            let message = answer.refused(400, "RESOURCE_ALREADY_EXISTS");
            assert_eq!(message, "Experiment(name=wanted) already exists.");
        }
        let (id, _) = owner(&site.server, "wanted").await.unwrap();
        assert_eq!(won[0].body["experiment_id"], id);
        names_fit(&site).await;
    }
}

#[tokio::test]
async fn a_name_is_made_while_another_experiment_takes_it() {
    let site = Site::new().await;
    let other = site.other().await;
    let id = other.experiment("old").await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let renaming = tokio::spawn({
        let (server, id) = (site.server.clone(), id.clone());
        async move { rename(&server, &id, "new").await }
    });
    gate.reached().await;
    create(&other, "new").await.ok();
    gate.open();
    assert_eq!(renaming.await.unwrap().refused(400, "BAD_REQUEST"), "Experiment(name=new) already exists.");
    assert_eq!(owner(&other, "old").await, Some((id.clone(), "old".to_owned())));

    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let creating = tokio::spawn({
        let server = site.server.clone();
        async move { create(&server, "newer").await }
    });
    gate.reached().await;
    rename(&other, &id, "newer").await.ok();
    gate.open();
    creating.await.unwrap().refused(400, "RESOURCE_ALREADY_EXISTS");
    assert_eq!(owner(&other, "newer").await, Some((id, "newer".to_owned())));
    names_fit(&site).await;
}

#[tokio::test]
async fn a_name_is_free_once_it_was_given_up() {
    let site = Site::new().await;
    let server = &site.server;
    let id = server.experiment("a").await;
    rename(server, &id, "b").await.ok();
    rename(server, &id, "b").await.ok();
    assert_eq!(owner(server, "a").await, None);
    let second = server.experiment("a").await;
    rename(server, &id, "a").await.refused(400, "BAD_REQUEST");
    rename(server, &second, "c").await.ok();
    rename(server, &id, "a").await.ok();
    assert_eq!(owner(server, "a").await.unwrap().0, id);
    names_fit(&site).await;
}

#[tokio::test]
async fn a_deleted_experiment_keeps_its_name() {
    let site = Site::new().await;
    let server = &site.server;
    let id = server.experiment("kept").await;
    server.post("experiments/delete", json!({ "experiment_id": id })).await.ok();
    create(server, "kept").await.refused(400, "RESOURCE_ALREADY_EXISTS");
    let other = server.experiment("other").await;
    rename(server, &other, "kept").await.refused(400, "BAD_REQUEST");
    rename(server, &id, "free").await.refused(500, "INVALID_STATE");
    assert_eq!(owner(server, "kept").await.unwrap().0, id);
    server.post("experiments/restore", json!({ "experiment_id": id })).await.ok();
    rename(server, &id, "free").await.ok();
    create(server, "kept").await.ok();
    names_fit(&site).await;
}

#[tokio::test]
async fn many_rename_delete_and_restore_at_once() {
    let site = Site::new().await;
    site.faults.lose_answer_every(11);
    let server = &site.server;
    let ids = join_all((0..3).map(|number| async move { server.experiment(&format!("start {number}")).await })).await;
    let ids = &ids;
    join_all((0..18_usize).map(|task| async move {
        let id = &ids[task % 3];
        let answer = match task % 6 {
            0 => server.post("experiments/delete", json!({ "experiment_id": id })).await,
            1 => server.post("experiments/restore", json!({ "experiment_id": id })).await,
            _ => rename(server, id, &format!("name {}", task % 5)).await,
        };
        let known = ["BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST", "INVALID_STATE"];
        let code = answer.body["error_code"].as_str();
        assert!(answer.status == 200 || code.is_some_and(|code| known.contains(&code)), "{answer:?}");
    }))
    .await;
    names_fit(&site).await;
}

#[tokio::test]
async fn names_of_every_kind() {
    let site = Site::new().await;
    let server = &site.server;
    let long = "n".repeat(500);
    let names = ["#", "a#b", "$", "E#META", "😀", "ä", "a\u{0}b", "A", "a", " ", "%", long.as_str()];
    for name in names {
        let id = server.experiment(name).await;
        assert_eq!(owner(server, name).await, Some((id, name.to_owned())));
        create(server, name).await.refused(400, "RESOURCE_ALREADY_EXISTS");
    }
    names_fit(&site).await;
}

#[tokio::test]
async fn names_of_one_fnv_hash_are_two() {
    let site = Site::new().await;
    let server = &site.server;
    let [one, other] = test_site::hash_collisions::names();
    let ids = [server.experiment(&one).await, server.experiment(&other).await];
    assert_eq!(owner(server, &one).await, Some((ids[0].clone(), one.clone())));
    rename(server, &ids[0], "short").await.ok();
    assert_eq!(owner(server, &one).await, None);
    assert_eq!(owner(server, &other).await, Some((ids[1].clone(), other)));
    names_fit(&site).await;
}

/// The row under the key of this experiment's name contains another name. Requests cannot cause
/// this state, so the test writes it directly.
#[tokio::test]
async fn a_row_of_another_name_is_not_the_experiments() {
    let site = Site::new().await;
    let server = &site.impatient().await;
    let [one, other] = test_site::hash_collisions::names();
    let ids = [server.experiment(&one).await, server.experiment(&other).await, server.experiment("third").await];
    let key = key_schema::rows::ExperimentName::key(&"default".into(), &one.as_str().into());
    let row = site.table.get(&key).await.unwrap().unwrap();
    let row = row.with("name", table::text(&other)).with("experiment", table::text(&ids[1]));
    site.table.put(row, &table::Condition::Always).await.unwrap();
    let before = site.dump().await;
    assert_eq!(owner(server, &one).await, None);
    for taken in [create(server, &one).await, rename(server, &ids[2], &one).await] {
        assert!(taken.refused(400, "BAD_REQUEST").contains("Choose another name"));
    }
    // The first experiment no longer owns its name. No call on it may affect the other experiment.
    assert_ne!(rename(server, &ids[0], "new").await.status, 200);
    for path in ["experiments/delete", "experiments/restore"] {
        assert_ne!(server.post(path, json!({ "experiment_id": ids[0] })).await.status, 200);
    }
    // The attempt to create an experiment has used up an id, although it failed.
    let changes = site.changes(&before).await;
    assert_eq!(changes.keys().collect::<Vec<_>>(), ["CONFIG CFG#experiment_counter"]);
}
