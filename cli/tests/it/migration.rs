//! Migrations that are interrupted, repeated, and run while other processes serve the table. No
//! release has a migration yet, so these tests define one.

use std::collections::BTreeMap;

use embedded_engine::Engine;
use embedded_engine::faults::InjectedFault;
use entities::attributes::NAME;
use entities::layout::{self, CURRENT_LAYOUT, LayoutError};
use entities::migration::{MIGRATIONS, Migration, MigrationError, MigrationResult, migrate, migrate_by};
use futures::future::BoxFuture;
use key_schema::index::ExperimentsByStage;
use key_schema::{Name, rows};
use mlflow_api::Workspace;
use serde_json::{Value, json};
use table::{Failure, Query, Table, Update, number};
use test_site::{TABLE, TestClient, TestEnvironment, key_of};

use crate::test_server::{ROOT, functions};

/// Attribute that the migration adds to each experiment: the length of its name in bytes.
const ADDED: &str = "name_bytes";
const DONE: MigrationResult = MigrationResult { from: CURRENT_LAYOUT, to: CURRENT_LAYOUT + 1 };
/// Experiments that exist before the migration.
const NAMES: [&str; 3] = ["a", "bb", "ccc"];

fn measure<'a>(table: &'a Table, _: &'a Table) -> BoxFuture<'a, Result<(), Failure>> {
    Box::pin(async move {
        let listed = ExperimentsByStage::all(&Name::from(Workspace::default().as_str()));
        for listed in table.query(Query::of(listed)).await? {
            let Some(ExperimentsByStage { experiment, .. }) = listed.entry() else { continue };
            let key = rows::Experiment::key(&experiment);
            let Some(found) = table.get(&key).await? else { continue };
            let bytes = found.get(NAME).unwrap_or_default().len();
            let added = Update::new(key).set(ADDED, number(i64::try_from(bytes).unwrap()));
            match table.apply(&added).await {
                // The experiment was removed in the meantime.
                Err(Failure::Refused { .. }) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    })
}

/// Returns the released migrations, followed by the one of this test.
fn steps() -> Vec<Migration> {
    [MIGRATIONS, &[measure]].concat()
}

fn access_of(engine: &Engine) -> Table {
    Table::new(engine.client(), format!("{TABLE}-access"))
}

/// Returns a table in use, with some experiments.
async fn in_use() -> TestEnvironment {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let api = TestClient(functions(&site.table).await);
    for name in NAMES {
        let made = api.post("experiments/create", json!({ "name": name })).await.ok();
        api.post("runs/create", json!({ "experiment_id": made["experiment_id"], "start_time": 1 })).await.ok();
    }
    site
}

/// Returns all items by key. [`TestEnvironment::items`] cannot be used, because it fails for
/// attributes that are not declared, such as the one that the migration adds.
async fn all(site: &TestEnvironment) -> BTreeMap<(String, String), Value> {
    let items = site.engine.items(TABLE).await.unwrap();
    let by_key = |item: Value| {
        let key = key_of(&item);
        ((key.pk, key.sk), item)
    };
    items.into_iter().map(by_key).collect()
}

/// Returns the name of each experiment, with the value that the migration added.
async fn measured(site: &TestEnvironment) -> Vec<(String, Option<usize>)> {
    let items = site.engine.items(TABLE).await.unwrap();
    let experiments = items.iter().filter(|item| item["SK"]["S"] == "E#META");
    let added = |item: &Value| item[ADDED]["N"].as_str().map(|bytes| bytes.parse().unwrap());
    experiments.map(|item| (item[NAME.name()]["S"].as_str().unwrap().to_owned(), added(item))).collect()
}

fn is_measured(all: &[(String, Option<usize>)]) -> bool {
    all.iter().all(|(name, bytes)| *bytes == Some(name.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_this_version_stays_as_it_is() {
    let site = in_use().await;
    let before = site.dump().await;
    let none = MigrationResult { from: CURRENT_LAYOUT, to: CURRENT_LAYOUT };
    assert_eq!(migrate(&site.table, &access_of(&site.engine)).await, Ok(Some(none)));
    assert_eq!(site.dump().await, before);
    let empty = TestEnvironment::new().await;
    assert_eq!(migrate(&empty.table, &access_of(&empty.engine)).await, Ok(None));
    assert!(empty.items().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_goes_through_once_and_shuts_out_earlier_versions() {
    let site = in_use().await;
    let access = access_of(&site.engine);
    assert_eq!(migrate_by(&steps(), &site.table, &access).await, Ok(Some(DONE)));
    assert!(is_measured(&measured(&site).await));
    let after = all(&site).await;
    let again = MigrationResult { from: CURRENT_LAYOUT + 1, ..DONE };
    assert_eq!(migrate_by(&steps(), &site.table, &access).await, Ok(Some(again)));
    assert_eq!(all(&site).await, after);
    let later = LayoutError::TooNew(CURRENT_LAYOUT + 1, CURRENT_LAYOUT);
    assert_eq!(migrate_by(MIGRATIONS, &site.table, &access).await, Err(MigrationError::Layout(later)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_is_cut_off_at_any_request_is_repeated() {
    let ground = in_use().await;
    let (whole, mut cut) = (ground.copy(), 0);
    migrate_by(&steps(), &whole.table, &access_of(&whole.engine)).await.unwrap();
    let expected = all(&whole).await;
    for trouble in [InjectedFault::Disconnected, InjectedFault::AnswerLost] {
        for request in 1.. {
            let site = ground.copy();
            site.faults.trouble_at(trouble, request, u64::MAX);
            let access = access_of(&site.engine);
            if migrate_by(&steps(), &site.impatient(), &access).await.is_ok() {
                break;
            }
            cut += 1;
            let number = layout::read(&site.table, CURRENT_LAYOUT + 1).await.unwrap();
            // The layout number is written last.
            assert!(number == Some(CURRENT_LAYOUT) || is_measured(&measured(&site).await), "{trouble:?} at {request}");
            migrate_by(&steps(), &site.table, &access).await.unwrap();
            assert_eq!(all(&site).await, expected, "{trouble:?} at {request}");
        }
    }
    assert!(cut > 10, "{cut} requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_serve_the_table_while_two_processes_migrate_it() {
    let site = in_use().await;
    let api = TestClient(functions(&site.table).await);
    let served = async {
        for number in 0..40 {
            let made = api.post("experiments/create", json!({ "name": format!("new {number}") })).await.ok();
            let run = json!({ "experiment_id": made["experiment_id"], "start_time": 1 });
            let run = api.post("runs/create", run).await.ok()["run"]["info"]["run_id"].clone();
            let metric = json!({ "run_id": run, "key": "m", "value": number, "timestamp": 1, "step": 1 });
            api.post("runs/log-metric", metric).await.ok();
            let renamed = json!({ "experiment_id": made["experiment_id"], "new_name": format!("renamed {number}") });
            api.post("experiments/update", renamed).await.ok();
            let found = api.get("runs/get", &[("run_id", run.as_str().unwrap())]).await.ok();
            let value = &found["run"]["data"]["metrics"][0]["value"];
            assert_eq!(value.as_f64(), Some(f64::from(number)), "{found}");
        }
    };
    let access = access_of(&site.engine);
    let steps = steps();
    let migrated = || migrate_by(&steps, &site.table, &access);
    let (first, second, ()) = tokio::join!(migrated(), migrated(), served);
    for done in [first, second] {
        assert_eq!(done.unwrap().map(|done| done.to), Some(CURRENT_LAYOUT + 1));
    }
    let known = measured(&site).await;
    let before: Vec<_> = known.iter().filter(|(name, _)| NAMES.contains(&name.as_str())).cloned().collect();
    assert!(before.len() == NAMES.len() && is_measured(&before), "{known:?}");
    assert_eq!(layout::read(&site.table, CURRENT_LAYOUT + 1).await, Ok(Some(CURRENT_LAYOUT + 1)));
    let found = api.post("experiments/search", json!({ "max_results": 100 })).await.ok();
    assert_eq!(found["experiments"].as_array().unwrap().len(), known.len());
}
