//! Renaming applies to a model with all its versions, regardless of concurrent requests.

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use test_site::all_troubles;

use crate::server::{Server, Site, tags};

async fn filled(site: &Site, name: &str, versions: u32) {
    site.other.model(name).await;
    let numbers: Vec<_> = (0..versions).collect();
    for part in numbers.chunks(8) {
        join_all(part.iter().map(|_| site.other.version_of_run(name, "r"))).await;
    }
}

/// Checks that the model exists under only one of two names, and has its last version.
async fn expect_one(server: &Server, name: &str, gone: &str, versions: u32) {
    assert_eq!(server.models(&[]).await, [name]);
    let model = server.model_of(name).await.ok();
    assert_eq!(model["registered_model"]["latest_versions"][0]["version"], versions.to_string());
    assert_eq!(server.version_at(name, versions).await.ok()["model_version"]["name"], name);
    assert_eq!(server.by_alias(name, "first").await.ok()["model_version"]["version"], "1");
    server.model_of(gone).await.missing();
    server.version_at(gone, 1).await.missing();
    server.by_alias(gone, "first").await.missing();
}

/// Checks that all versions are found by one name, and none by the other name.
async fn expect_whole(server: &Server, name: &str, gone: &str, versions: u32) {
    let all: Vec<_> = (1..=versions).map(|number| (name.to_owned(), number)).collect();
    expect_one(server, name, gone, versions).await;
    assert_eq!(server.versions(&format!("name = '{name}'")).await, all);
    assert_eq!(server.versions("run_id = 'r'").await, all);
    assert!(server.versions(&format!("name = '{gone}'")).await.is_empty());
    server.set_version_tag(gone, 1, "k", "v").await.missing();
    server.set_alias(gone, "a", 1).await.missing();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_is_broken_off_has_happened_or_not() {
    // Uses more versions than fit into one transaction.
    let versions = if all_troubles() { 300 } else { 120 };
    let site = Site::new().await;
    filled(&site, "old", versions).await;
    site.other.set_alias("old", "first", 1).await.ok();
    let server = site.impatient();
    let mut random = StdRng::seed_from_u64(1);
    let (mut name, mut free) = ("old", "new");
    let (mut done, mut undone) = (0, 0);
    for round in 0..20 {
        let call = random.random_range(1..=4);
        let lost = random.random_range(0..=4);
        site.faults.lose_answer_every(lost);
        site.faults.cut_off_at(call);
        let answer = server.rename(name, free).await;
        site.faults.work_again();
        site.faults.lose_answer_every(0);
        let is_renamed = site.other.model_of(free).await.status == 200;
        if is_renamed {
            std::mem::swap(&mut name, &mut free);
            done += 1;
        } else {
            assert_ne!(answer.status, 200);
            undone += 1;
        }
        expect_one(&site.other, name, free, versions).await;
        if round % 10 == 9 {
            expect_whole(&site.other, name, free, versions).await;
        }
    }
    assert!(done > 0 && undone > 0, "{done} happened, {undone} did not");
    site.other.rename(name, free).await.ok();
    expect_whole(&site.other, free, name, versions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_passed_on_without_their_versions() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("a").await;
    server.set_tag("a", "of", "first").await.ok();
    for _ in 0..3 {
        server.version_of_run("a", "first").await;
    }
    server.set_alias("a", "x", 3).await.ok();
    server.rename("a", "b").await.ok();
    // A second model gets the first one's original name, and the first one's rows are still in the
    // partition of this name.
    server.model("a").await;
    assert_eq!(server.version_of_run("a", "second").await, 1);
    server.set_version_tag("a", 1, "of", "second").await.ok();
    server.set_tag("a", "of", &"second".repeat(500)).await.ok();
    server.set_tag("b", "long", &"first".repeat(500)).await.ok();
    server.set_alias("a", "x", 1).await.ok();
    assert_eq!(server.version("b").await, 4);
    for (name, versions, of) in [("a", 1, "second"), ("b", 4, "first")] {
        let all: Vec<_> = (1..=versions).map(|number| (name.to_owned(), number)).collect();
        assert_eq!(server.versions(&format!("name = '{name}'")).await, all);
        let aliased = server.by_alias(name, "x").await.ok();
        assert_eq!(aliased["model_version"]["run_id"], of);
        let model = server.model_of(name).await.ok()["registered_model"].clone();
        assert!(tags(&model)["of"].starts_with(of));
        assert_eq!(tags(&model).len(), versions as usize / 4 + 1);
    }
    assert!(tags(&server.version_at("b", 1).await.ok()["model_version"]).is_empty());
    // The second model is renamed to `c`, so that the first model can get its original name back.
    server.rename("a", "c").await.ok();
    server.rename("b", "a").await.ok();
    assert_eq!(server.by_alias("a", "x").await.ok()["model_version"]["run_id"], "first");
    assert_eq!(server.by_alias("c", "x").await.ok()["model_version"]["run_id"], "second");
    assert_eq!(server.versions("run_id = 'second'").await, [("c".to_owned(), 1)]);
    server.set_version_tag("a", 1, "back", "home").await.ok();
    server.rename("a", "c").await.refused(400, "RESOURCE_ALREADY_EXISTS");
    server.rename("c", "a").await.refused(400, "RESOURCE_ALREADY_EXISTS");
    for name in ["a", "c"] {
        server.delete("registered-models/delete", json!({ "name": name })).await.ok();
    }
    assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_beside_a_rename_are_not_lost() {
    let site = Site::new().await;
    site.other.model("a").await;
    site.other.version("a").await;
    // After the rename has read the model, the model gets a tag and a version.
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let server = site.server.clone();
    let rename = tokio::spawn(async move { server.rename("a", "b").await });
    gate.reached().await;
    site.other.set_tag("a", "k", "v").await.ok();
    assert_eq!(site.other.version("a").await, 2);
    gate.open();
    rename.await.unwrap().ok();
    let model = site.other.model_of("b").await.ok()["registered_model"].clone();
    assert_eq!(tags(&model)["k"], "v");
    assert_eq!(model["latest_versions"][0]["version"], "2");
}
