//! Deletion of a model with all its rows, which takes effect immediately and is permanent.

use futures::future::join_all;
use serde_json::json;

use crate::server::{Server, Site};

async fn filled(server: &Server, versions: u32) {
    server.model("m").await;
    let numbers: Vec<_> = (0..versions).collect();
    for part in numbers.chunks(8) {
        join_all(part.iter().map(|_| server.version_of_run("m", "r"))).await;
    }
    for number in 1..=3 {
        server.set_version_tag("m", number, "text", &"x".repeat(60_000)).await.ok();
        server.set_tag("m", &format!("k{number}"), &"x".repeat(60_000)).await.ok();
        server.set_alias("m", &format!("a{number}"), number).await.ok();
        server.transition("m", number, "Staging", false).await.ok();
    }
}

async fn delete(server: &Server) -> u16 {
    server.delete("registered-models/delete", json!({ "name": "m" })).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left() {
    let ground = Site::new().await;
    filled(&ground.other, 120).await;
    for (refuse, lose) in [(0, 0), (10, 0), (0, 7)] {
        let site = ground.copy();
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        assert_eq!(delete(&site.server).await, 200);
        assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_broken_off_is_whole_to_everybody() {
    let mut broken = 0;
    let ground = Site::new().await;
    filled(&ground.other, 120).await;
    for call in [1, 2, 3, 5, 6] {
        let site = ground.copy();
        let server = site.impatient();
        site.faults.cut_off_at(call);
        let status = delete(&server).await;
        site.faults.work_again();
        let is_there = site.other.model_of("m").await.status == 200;
        if is_there {
            assert_eq!(site.other.versions("name = 'm'").await.len(), 120);
            assert_eq!(delete(&site.other).await, 200);
        } else {
            broken += u32::from(status != 200);
            assert!(site.other.versions("").await.is_empty());
            assert!(site.other.versions("run_id = 'r'").await.is_empty());
            for number in [1, 120] {
                site.other.version_at("m", number).await.missing();
                site.other.set_version_tag("m", number, "k", "v").await.missing();
            }
            site.other.by_alias("m", "a1").await.missing();
            // A new model with this name has none of the old rows.
            site.other.model("m").await;
            assert_eq!(site.other.version_of_run("m", "new").await, 1);
            assert_eq!(site.other.versions("").await, [("m".to_owned(), 1)]);
            let found = site.other.version_at("m", 1).await.ok();
            assert_eq!(
                (&found["model_version"]["run_id"], &found["model_version"]["tags"]),
                (&"new".into(), &().into())
            );
            assert_eq!(delete(&site.other).await, 200);
        }
        // Repeating the deletion completes it.
        assert_eq!(delete(&site.other).await, 404);
        assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "{call}");
    }
    assert!(broken >= 3, "{broken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_goes_with_its_aliases_and_its_number_is_not_used_again() {
    let site = Site::new().await;
    filled(&site.other, 5).await;
    let server = &site.server;
    server.set_alias("m", "b", 3).await.ok();
    site.faults.lose_answer_every(2);
    for number in [3, 5] {
        let version = json!({ "name": "m", "version": number.to_string() });
        server.delete("model-versions/delete", version.clone()).await.ok();
        server.delete("model-versions/delete", version).await.missing();
        server.version_at("m", number).await.missing();
    }
    site.faults.lose_answer_every(0);
    for alias in ["a3", "b"] {
        server.by_alias("m", alias).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    let model = server.model_of("m").await.ok()["registered_model"].clone();
    let latest: Vec<_> =
        model["latest_versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(latest, ["2", "4"]);
    assert_eq!(server.version("m").await, 6);
    assert!(!site.dump().await.keys().any(|key| key.contains("M#V#0000000003") || key.contains("#0000000005")));
}

/// The model gets another version after the deletion has read the model.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_beside_a_deletion_goes_with_it() {
    let site = Site::new().await;
    filled(&site.other, 3).await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let server = site.server.clone();
    let deletion = tokio::spawn(async move { delete(&server).await });
    gate.reached().await;
    assert_eq!(site.other.version("m").await, 4);
    gate.open();
    assert_eq!(deletion.await.unwrap(), 200);
    assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
}
