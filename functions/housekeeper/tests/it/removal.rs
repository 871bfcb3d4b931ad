//! Tests which entities are removed, and which are kept.

use entities::indexed_fields_setting::{ExperimentFieldPatterns, ExperimentFieldsSetting};
use entities::{StoredTrace, now_ms};
use key_schema::attributes::DELETED_TIME;
use key_schema::{Ascending, Descending, Ordinal, WideDigest, rows};
use mlflow_api::{ExperimentId, RunId, TraceId};
use serde_json::json;
use table::{Condition, Item, Map, Update, bytes, map, number, text};
use trace_blocks::{BlockItems, SpansToPack, TraceKey, TracePartition, TraceToPack, pack};

use crate::test_server::TestServer;

const DAY: i64 = 86_400_000;

#[tokio::test]
async fn a_run_leaves_nothing_but_the_datasets_of_its_experiment() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let other = lab.run(&experiment).await;
    lab.index().await;
    let before = lab.dump().await;
    let run = lab.run(&experiment).await;
    lab.index().await;
    assert!(lab.items(&run).await.len() > 100, "rows, history, entries of the index");
    lab.post("runs/delete", json!({ "run_id": run })).await;
    lab.index().await;

    let outcome = lab.collect(None).await;
    assert_eq!(outcome.removed.into_iter().collect::<Vec<_>>(), [format!("Run with ID {run}")]);
    assert_eq!(outcome.kept, []);
    assert_eq!(lab.items(&run).await, Vec::<String>::new());
    assert_eq!(lab.dump().await, before, "the dataset is in both runs");
    assert_eq!((lab.artifacts(&run).len(), lab.artifacts(&other).len()), (0, 4));
    lab.api.get("runs/get", &[("run_id", &run)]).await.missing();
    lab.api.get("runs/get", &[("run_id", &other)]).await.ok();
    // The remaining records of the stream change nothing.
    lab.index().await;
    assert_eq!(lab.dump().await, before);
}

#[tokio::test]
async fn a_run_that_was_never_indexed_leaves_nothing_either() {
    let lab = TestServer::new().await;
    let run = lab.run("0").await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    lab.collect(None).await;
    assert_eq!(lab.items(&run).await, Vec::<String>::new());
    lab.index().await;
    assert_eq!(lab.items(&run).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_logged_model_leaves_nothing() {
    let lab = TestServer::new().await;
    let run = lab.run("0").await;
    let (model, other) = (lab.model("0", &run).await, lab.model("0", &run).await);
    assert!(!lab.items(&format!("MODEL#{model}")).await.is_empty(), "it has points of its own");
    lab.delete_model(&model).await;
    let outcome = lab.collect(None).await;
    assert_eq!(outcome.removed.into_iter().collect::<Vec<_>>(), [format!("Logged model with ID {model}")]);
    assert_eq!(lab.items(&model).await, Vec::<String>::new());
    assert!(!lab.items(&format!("MODEL#{other}")).await.is_empty());
    assert_eq!((lab.artifacts(&model).len(), lab.artifacts(&other).len()), (0, 3));
}

/// Writes the rows of a trace in the form in which the traces function writes them.
async fn trace(lab: &TestServer, experiment: &str) {
    let (id, trace) = (ExperimentId::parse(experiment).unwrap(), TraceId::new(7));
    let (day, time) = (Ascending(3), 3 * DAY + 1);
    let empty = || map(Map::new());
    let head = Item::new(rows::Trace::key(&trace))
        .with("experiment", text(experiment))
        .with("start_time", number(time))
        .with("state", text("OK"))
        .with("tags", empty())
        .with("metadata", empty())
        .with("assessments", empty())
        .with("marked", number(time))
        .with("edits", number(1));
    let spans = Item::new(rows::TraceSpans::key(&id, &trace, &WideDigest(1), &Ordinal(0)))
        .with("arrived", number(1))
        .with("parts", number(1))
        .with("content", bytes(vec![1]));
    let mark = rows::TraceMark::key(&id, &day, &Ordinal(0), &Descending(time), &trace);
    let day = Item::new(rows::TraceDay::key(&id, &day)).with("shards", number(1));
    let mut items = vec![head.clone(), spans, Item::new(mark).with("marked", number(time)), day];
    // Rows of another trace, which was packed, and rows that an interrupted packer left behind.
    let partition = TracePartition { experiment: id, day: 3, shard: 0 };
    let key = Item::new(rows::Trace::key(&TraceId::new(8)));
    let packed = Item(head.0.into_iter().chain(key.0).collect());
    let trace = StoredTrace::of(packed.clone()).unwrap();
    let end = TraceKey::of(&trace);
    let spans = SpansToPack::of(trace.id(), &[]);
    let BlockItems { block, spans } = pack(&partition, &end, vec![TraceToPack { trace, spans }], 1, 1).unwrap();
    items.extend(spans.into_iter().chain([packed, block]));
    items.push(Item::new(partition.spans_key(&WideDigest(7))).with("content", bytes(vec![1])));
    items.push(Item::new(partition.packing_key()).with("to_pack", number(1)));
    items.push(Item::new(partition.lock_key()).with("until", number(1)).with("nc", bytes(vec![1])));
    lab.site.table.write_many(items, &[]).await.unwrap();
}

#[tokio::test]
async fn an_experiment_leaves_nothing() {
    let lab = TestServer::new().await;
    let bystander = lab.experiment("bystander").await;
    lab.run(&bystander).await;
    lab.index().await;
    let experiment = lab.experiment("e").await;
    let before = lab.dump().await;
    let tag = json!({ "experiment_id": experiment, "key": "big", "value": "v".repeat(1_100) });
    lab.post("experiments/set-experiment-tag", tag).await;
    let (run, second) = (lab.run(&experiment).await, lab.run(&experiment).await);
    let (model, second_model) = (lab.model(&experiment, &run).await, lab.model(&experiment, &run).await);
    lab.post("runs/delete", json!({ "run_id": second })).await;
    lab.delete_model(&second_model).await;
    lab.index().await;
    trace(&lab, &experiment).await;
    let fields = ExperimentFieldsSetting {
        indexed: ExperimentFieldPatterns::nothing(),
        searched: ExperimentFieldPatterns::nothing(),
    };
    let id = ExperimentId::parse(&experiment).unwrap();
    fields.write_after(&ExperimentFieldsSetting::default(), &lab.site.table, id).await.unwrap();
    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;

    let outcome = lab.collect(None).await;
    assert_eq!(outcome.kept, []);
    assert!(outcome.removed.contains(&format!("Experiment with ID {experiment}")));
    assert_eq!(outcome.removed.len(), 5);
    let mut expected = before;
    expected.retain(|key, _| !key.starts_with(&format!("EXP#{experiment} ")) && !key.ends_with("EXPNAME#e"));
    let left = lab.dump().await;
    assert_eq!(left.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    lab.index().await;
    assert_eq!(lab.dump().await, expected);
    for id in [&run, &second, &model, &second_model] {
        assert_eq!((lab.items(id).await.len(), lab.artifacts(id).len()), (0, 0));
    }
    lab.api.get("experiments/get", &[("experiment_id", &experiment)]).await.missing();
    // The name of the experiment can be reused.
    lab.experiment("e").await;
}

#[tokio::test]
async fn blocks_that_cannot_be_read_stay_and_others_go() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    trace(&lab, &experiment).await;
    // A block that is newer than the first one.
    let partition = TracePartition { experiment: ExperimentId::parse(&experiment).unwrap(), day: 3, shard: 0 };
    let key = partition.block_key(&TraceKey { time: 3 * DAY + 2, trace: TraceId::new(9) });
    lab.site.table.put(Item::new(key.clone()).with("core", bytes(vec![1])), &Condition::Always).await.unwrap();
    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
    let outcome = lab.collect(None).await;
    assert_eq!(outcome.kept.len(), 1, "{:?}", outcome.kept);
    let left: Vec<_> =
        lab.dump().await.into_keys().filter(|key| key.starts_with("TR") || key.starts_with("SPANS#")).collect();
    assert_eq!(
        left.iter().filter(|left| left.contains(" B#")).collect::<Vec<_>>(),
        [&format!("{} {}", key.pk, key.sk)]
    );
    let is_lost = |left: &String| left.contains(" M#") || left.starts_with("TRACE#") || left.starts_with("SPANS#");
    assert!(!left.iter().any(is_lost), "{left:?}");
    // The item is deleted directly, as by an operator.
    lab.site.table.delete(&key, &Condition::Always).await.unwrap();
    let outcome = lab.collect(None).await;
    assert_eq!(outcome.kept, []);
    assert!(outcome.removed.contains(&format!("Experiment with ID {experiment}")));
}

#[tokio::test]
async fn only_what_was_deleted_long_ago_goes() {
    let lab = TestServer::new().await;
    let (old, young) = (lab.run("0").await, lab.run("0").await);
    for run in [&old, &young] {
        lab.post("runs/delete", json!({ "run_id": run })).await;
    }
    let key = rows::Run::key(&ExperimentId::DEFAULT, &RunId::parse(&old).unwrap());
    lab.site.table.update(&Update::new(key).set(DELETED_TIME, number(now_ms() - 31 * DAY))).await.unwrap();
    let experiment = lab.experiment("e").await;
    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
    let outcome = lab.collect(Some(now_ms() - 30 * DAY)).await;
    assert_eq!(outcome.removed.into_iter().collect::<Vec<_>>(), [format!("Run with ID {old}")]);
    lab.api.get("runs/get", &[("run_id", &young)]).await.ok();
    lab.api.get("experiments/get", &[("experiment_id", &experiment)]).await.ok();
}

#[tokio::test]
async fn what_was_restored_stays() {
    let lab = TestServer::new().await;
    let kept = lab.experiment("kept").await;
    let (run, of_kept) = (lab.run("0").await, lab.run(&kept).await);
    for verb in ["delete", "restore"] {
        lab.post(&format!("runs/{verb}"), json!({ "run_id": run })).await;
    }
    assert!(lab.items(DELETED_TIME.name()).await.is_empty(), "a run that is not deleted has no such time");
    // The run is deleted individually, but becomes active again when its experiment is deleted and
    // restored.
    lab.post("runs/delete", json!({ "run_id": of_kept })).await;
    for verb in ["delete", "restore"] {
        lab.post(&format!("experiments/{verb}"), json!({ "experiment_id": kept })).await;
    }
    // This experiment is deleted, but one of its runs has been restored.
    let half = lab.experiment("half").await;
    let (restored, gone) = (lab.run(&half).await, lab.run(&half).await);
    lab.post("experiments/delete", json!({ "experiment_id": half })).await;
    lab.post("runs/restore", json!({ "run_id": restored })).await;

    let outcome = lab.collect(None).await;
    assert_eq!(outcome.removed.into_iter().collect::<Vec<_>>(), [format!("Run with ID {gone}")]);
    let of_half = (format!("Experiment with ID {half}"), "1 of its runs could not be deleted".to_owned());
    assert!(outcome.kept.contains(&of_half), "{:?}", outcome.kept);
    for id in [&run, &of_kept, &restored] {
        let info = lab.api.get("runs/get", &[("run_id", id)]).await.ok()["run"]["info"].clone();
        assert_eq!(info["lifecycle_stage"], "active");
        assert_eq!(lab.artifacts(id).len(), 4);
    }
    lab.post("experiments/restore", json!({ "experiment_id": half })).await;
}

#[tokio::test]
async fn artifacts_that_cannot_be_reached_keep_what_they_belong_to() {
    let lab = TestServer::new().await;
    let new = json!({ "name": "far", "artifact_location": "s3://elsewhere/x" });
    let experiment = crate::test_server::text(&lab.post("experiments/create", new).await["experiment_id"]);
    let run = lab.run(&experiment).await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    let before = lab.dump().await;
    let outcome = lab.collect(None).await;
    assert!(outcome.removed.is_empty());
    let (entity, why) = outcome.kept.first().unwrap();
    assert_eq!(*entity, format!("Run with ID {run}"));
    assert!(why.starts_with(&format!("its artifacts at s3://elsewhere/x/{run}/artifacts remain")), "{why}");
    assert_eq!(lab.dump().await, before);
    lab.post("runs/restore", json!({ "run_id": run })).await;
    lab.post("runs/delete", json!({ "run_id": run })).await;

    let leaving = lab.retention().leaving_artifacts(true);
    assert_eq!(crate::test_server::collect(&leaving, None).await.removed.len(), 1);
    assert_eq!(lab.items(&run).await, Vec::<String>::new());
}
