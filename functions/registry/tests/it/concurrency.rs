//! Concurrent clients of one model, while the table throttles and loses responses.

use futures::future::join_all;
use key_schema::IndexEntry;
use key_schema::index::AliasedVersions;
use serde_json::json;

use crate::server::{Site, tags, text};

const CLIENTS: u32 = 32;

async fn create_at_once(site: &Site) {
    site.other.model("m").await;
    let mut numbers = join_all((0..CLIENTS).map(|_| site.server.version_of_run("m", "r"))).await;
    site.faults.refuse_every(0);
    site.faults.lose_answer_every(0);
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=CLIENTS).collect::<Vec<_>>());
    let found = site.other.versions("name = 'm'").await;
    assert_eq!(found, (1..=CLIENTS).map(|number| ("m".to_owned(), number)).collect::<Vec<_>>());
    assert_eq!(site.other.versions("run_id = 'r'").await, found);
    let latest = site.other.by_alias("m", "latest").await.ok();
    assert_eq!(latest["model_version"]["version"], CLIENTS.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_counted_without_a_gap() {
    let site = Site::new().await;
    create_at_once(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_counted_while_calls_are_refused() {
    let site = Site::new().await;
    site.faults.refuse_every(10);
    create_at_once(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_counted_while_answers_are_lost() {
    let site = Site::new().await;
    site.faults.lose_answer_every(7);
    create_at_once(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_counted_where_transactions_conflict() {
    let site = Site::with_conflicts().await;
    create_at_once(&site).await;
    assert!(site.faults.calls("TransactWriteItems") > 2 * u64::from(CLIENTS), "transactions conflict");
}

/// Each client changes another part of the model, and no change is lost.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_many_clients_all_stay() {
    for (conflicts, refuse, lose) in [(false, 0, 0), (false, 10, 0), (false, 0, 7), (true, 0, 0), (true, 0, 7)] {
        let site = if conflicts { Site::with_conflicts().await } else { Site::new().await };
        site.other.model("m").await;
        for _ in 0..8 {
            site.other.version("m").await;
        }
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let server = &site.server;
        join_all((1..=8).map(|number| async move {
            server.set_version_tag("m", number, "k", &number.to_string()).await.ok();
            server.set_version_tag("m", number, "gone", "x").await.ok();
            server.set_tag("m", &format!("k{number}"), "v").await.ok();
            server.set_alias("m", &format!("a{number}"), number).await.ok();
            server.set_alias("m", "shared", number).await.ok();
            server.transition("m", number, "Staging", false).await.ok();
            let tag = json!({ "name": "m", "version": number.to_string(), "key": "gone" });
            server.delete("model-versions/delete-tag", tag).await.ok();
        }))
        .await;
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);
        let model = site.other.model_of("m").await.ok()["registered_model"].clone();
        assert_eq!(tags(&model).len(), 8);
        assert_eq!(model["aliases"].as_array().unwrap().len(), 9);
        assert_eq!(model["latest_versions"].as_array().unwrap().len(), 1);
        assert_eq!(model["latest_versions"][0]["version"], "8");
        let shared = text(&site.other.by_alias("m", "shared").await.ok()["model_version"], "version");
        for number in 1..=8 {
            let version = site.other.version_at("m", number).await.ok()["model_version"].clone();
            assert_eq!(version["current_stage"], "Staging");
            assert_eq!(tags(&version).into_iter().collect::<Vec<_>>(), [("k".to_owned(), number.to_string())]);
            let aliases = version["aliases"].as_array().unwrap().len();
            assert_eq!(aliases, if shared == number.to_string() { 2 } else { 1 });
        }
        // The local index that contains a model and its versions with aliases has nine entries: the
        // model and its eight versions.
        let listed =
            site.dump().await.into_values().filter(|item| item.get(AliasedVersions::INDEX.sort).is_some()).count();
        assert_eq!(listed, 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_gets_a_name() {
    let site = Site::new().await;
    site.faults.lose_answer_every(3);
    let create = || site.server.post("registered-models/create", json!({ "name": "m" }));
    let answers = join_all((0..8).map(|_| create())).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        answer.refused(400, "RESOURCE_ALREADY_EXISTS");
    }
    site.faults.lose_answer_every(0);
    assert_eq!(site.other.models(&[]).await, ["m"]);
}

#[tokio::test]
async fn tag_and_list_of_a_prompt_are_the_same_clients() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    for round in 0..12 {
        let set = async { server.set_tag("m", "mlflow.prompt.is_prompt", "true").await.ok() };
        let unset = async {
            if round % 2 == 0 {
                return server.set_tag("m", "mlflow.prompt.is_prompt", "no").await.ok();
            }
            let tag = json!({ "name": "m", "key": "mlflow.prompt.is_prompt" });
            server.delete("registered-models/delete-tag", tag).await.ok()
        };
        futures::future::join(set, unset).await;
        let models = server.models(&[]).await;
        let prompts = server.models(&[("filter", "tags.`mlflow.prompt.is_prompt` = 'true'")]).await;
        assert_eq!([models, prompts].concat(), ["m"], "the model is in one of the two lists");
    }
}
