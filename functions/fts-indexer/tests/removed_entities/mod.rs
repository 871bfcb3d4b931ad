//! The removal of everything that belongs to a deleted run or experiment.

use key_schema::{Ascending, Digest, Name, Ordinal, WideDigest, rows};
use mlflow_api::{ExperimentId, ModelId};
use serde_json::{Value, json};
use table::{Condition, Item, text};

use crate::{Site, changed, record};

#[tokio::test]
async fn a_run_that_is_gone_leaves_nothing() {
    let site = Site::new().await;
    let at = site.run(1, "gone").await;
    site.log(&at, "loss", 1, 0.5).await;
    let segment = rows::MetricSegment::key(&at.run, &"loss".into(), &Ascending(1), &Ascending(1), &Digest(1));
    site.table.put(Item::new(segment), &table::Condition::item_missing()).await.unwrap();
    let row = rows::MetricChart::key(&at.run, &"loss".into(), &Ordinal(1), &Ordinal(0));
    site.table.put(Item::new(row), &table::Condition::item_missing()).await.unwrap();
    let row = rows::RunTag::key(&at.experiment, &at.run, &"big".into());
    site.table.put(Item::new(row), &table::Condition::item_missing()).await.unwrap();
    // Rows of the registry that refer to the run are kept, because they are not data of the run.
    let version = rows::VersionOfRun::key(&at.run.as_str().into(), &"model".into(), &Ordinal(1));
    let row_of_version = Item::new(version.clone()).with("home", text("model"));
    site.table.put(row_of_version, &table::Condition::item_missing()).await.unwrap();
    let dataset = WideDigest::of(&["iris"]);
    for key in [
        rows::RunInput::key(&at.experiment, &at.run, &dataset),
        rows::DatasetLink::key(&at.experiment, &dataset, &at.run),
    ] {
        site.table.put(Item::new(key), &table::Condition::item_missing()).await.unwrap();
    }
    let other = site.run(2, "stays").await;
    assert!(site.handle([changed(&at), changed(&other)].concat()).await.is_empty());
    // The directory of lists is kept, because it belongs to the experiment and not to the run.
    let stays = |key: &str| key.contains(other.run.as_str()) || key.contains(" IX#");
    let of_other: Vec<_> = site.dump().await.into_iter().filter(|(key, _)| stays(key)).collect();

    site.table.write_many(Vec::new(), &[at.key()]).await.unwrap();
    let removed = record("REMOVE", &at, "", 1);
    // The batch includes a delayed record about the run's metrics, and is delivered twice.
    let late = record("MODIFY", &at, "#METRIC", 2);
    assert!(site.handle(vec![removed.clone(), late]).await.is_empty());
    assert!(site.handle(vec![removed]).await.is_empty());
    assert!(site.table.get(&version).await.unwrap().is_some());
    site.table.write_many(Vec::new(), &[version]).await.unwrap();
    assert_eq!(site.dump().await.into_iter().collect::<Vec<_>>(), of_other);
}

#[tokio::test]
async fn an_experiment_that_is_gone_leaves_nothing() {
    leaves_nothing("default", &json!({ "name": { "S": "gone" } })).await;
    // The experiment's item contains its workspace.
    leaves_nothing("team-a", &json!({ "name": { "S": "gone" }, "workspace": { "S": "team-a" } })).await;
}

async fn leaves_nothing(workspace: &str, image: &Value) {
    let site = Site::new().await;
    let experiment = ExperimentId::from_number(1).unwrap();
    let at = site.run(1, "of it").await;
    site.log(&at, "loss", 1, 0.5).await;
    let deleted = site.run(2, "of it too").await;
    site.set_stage(&deleted, "deleted").await;
    assert!(site.handle([changed(&at), changed(&deleted)].concat()).await.is_empty());
    assert_eq!(site.keys("C").await.len(), 2);
    let (digest, model) = (WideDigest::of(&["iris", "d1"]), ModelId::new(1_700_000_000_000, experiment, 7));
    let dataset = Item::new(rows::Dataset::key(&experiment, &digest));
    // The name of the scorer is so long that its key contains a hash instead of the whole name.
    let scorer = Name::from("ä".repeat(400).as_str());
    let other = ExperimentId::from_number(2).unwrap();
    let foreign = Item::new(rows::DatasetPart::key(&other, &digest, &digest, &Ordinal(0)));
    let of_it = [
        dataset.with("name", text("iris")).with("digest", text("d1")),
        Item::new(rows::DatasetPart::key(&experiment, &digest, &digest, &Ordinal(0))),
        Item::new(rows::RunInput::key(&experiment, &at.run, &digest)),
        Item::new(rows::DatasetLink::key(&experiment, &digest, &at.run)),
        Item::new(rows::LoggedModel::key(&experiment, &model)),
        Item::new(rows::LoggedModelSegment::key(&model, &digest)),
        Item::new(rows::Scorer::key(&experiment, &scorer)).with("name", text(&scorer.0)),
        Item::new(rows::WorkspaceScorer::key(&workspace.into(), &experiment, &scorer)),
        Item::new(rows::ExperimentName::key(&workspace.into(), &"gone".into()))
            .with("experiment", text(experiment.to_string())),
    ];
    site.table.write_many(of_it.into(), &[]).await.unwrap();
    site.table.put(foreign.clone(), &Condition::Always).await.unwrap();
    let keys = json!({ "PK": { "S": format!("EXP#{experiment}") }, "SK": { "S": "E#META" } });
    let change = json!({ "Keys": keys, "OldImage": image, "SequenceNumber": "1" });
    let removed = json!({ "eventName": "REMOVE", "dynamodb": change });
    assert!(site.handle(vec![removed]).await.is_empty());
    // Only another experiment's item remains.
    assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), [foreign.key().unwrap().text()]);
}
