//! A list in 1,000 workspaces with 100 experiments each costs only its page, regardless of the
//! number of other workspaces.

use std::fmt::Write as _;

use domain::Environment;
use entities::attributes::{CREATED, EXPERIMENT, ID, LOCATION, NAME, STAGE, STAGE_VERSION, TAGS, UPDATED, WORKSPACE};
use http::Request;
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Stage, rows};
use mlflow_api::ExperimentId;
use serde_json::{Value, json};
use table::{Item, Map, Table, UsageMeter, map, number, text};
use test_site::{TestClient, TestEnvironment, everybody};

use crate::test_server::{ROOT, of_table};

const WORKSPACES: u64 = 1_000;
const EXPERIMENTS: u64 = 100;
/// Batch size of writes.
const AT_ONCE: usize = 2_500;

fn workspace(number: u64) -> Vec<Item> {
    let name = format!("team-{number}");
    let meta =
        Item::new(rows::Workspace::key(&name.as_str().into())).with(ID, text(&name)).with(CREATED, self::number(0));
    let listed = Item::new(rows::ListedWorkspace::key(&name.as_str().into()));
    let experiments = (0..EXPERIMENTS).flat_map(|of| experiment(&name, 1 + number * EXPERIMENTS + of));
    [meta, listed].into_iter().chain(experiments).collect()
}

fn experiment(workspace: &str, number: u64) -> [Item; 2] {
    let id = ExperimentId::from_number(number).unwrap();
    let (called, at) = (format!("experiment {number}"), i64::try_from(number).unwrap());
    let item = Item::new(rows::Experiment::key(&id))
        .with(NAME, text(&called))
        .with(WORKSPACE, text(workspace))
        .with(LOCATION, text("s3://bucket/x"))
        .with(CREATED, self::number(at))
        .with(UPDATED, self::number(at))
        .with(STAGE, text("active"))
        .with(STAGE_VERSION, self::number(0))
        .with(TAGS, map(Map::new()));
    let row = Item::new(rows::ExperimentName::key(&workspace.into(), &called.as_str().into()))
        .with(NAME, text(&called))
        .with(EXPERIMENT, text(id.to_string()))
        .indexed(ExperimentsByStage::key(&Stage::Active, &Descending(at), &id))
        .indexed(ExperimentsByChange::key(&Stage::Active, &Descending(at), &id));
    [item, row]
}

async fn api(table: &Table) -> TestClient {
    let around = Environment::new(everybody(), table.clone()).with_workspaces();
    TestClient(
        domain::mount(&of_table(), &[], &Environment { artifact_root: ROOT.to_owned(), ..around }).await.unwrap(),
    )
}

/// Lists a workspace's experiments, models and more, one call each. Returns the requests and read
/// units of the calls, and their responses.
async fn lists(table: &Table) -> (String, Vec<Value>) {
    let page = json!({ "max_results": 20 });
    let calls = [
        ("POST", "2.0/mlflow/experiments/search", page.clone()),
        ("POST", "2.0/mlflow/experiments/search", json!({ "max_results": 20, "filter": "name LIKE 'experiment%'" })),
        ("GET", "2.0/mlflow/registered-models/search?max_results=20", json!({})),
        ("GET", "2.0/mlflow/model-versions/search?max_results=20", json!({})),
        ("POST", "3.0/mlflow/datasets/search", page),
        ("GET", "3.0/mlflow/scorers/list", json!({})),
        ("GET", "2.0/mlflow/experiments/get-by-name?experiment_name=experiment%20101", json!({})),
    ];
    let (mut costs, mut answers) = (String::new(), Vec::new());
    for (method, path, body) in calls {
        let meter = UsageMeter::default();
        let api = api(&table.metered(meter.clone())).await;
        meter.take();
        let request = Request::builder().method(method).uri(format!("/api/{path}"));
        let request = request.header("content-type", "application/json").header("x-mlflow-workspace", "team-1");
        answers.push(api.send(request.body(body.to_string().into()).unwrap()).await.ok());
        let used = meter.take();
        writeln!(costs, "{method} {path}: {} requests, {} read units", used.requests, used.read_units).unwrap();
    }
    (costs, answers)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes a thousand workspaces; part of `make test-slow`"]
async fn a_list_costs_its_page_however_many_workspaces_there_are() {
    let [few, many] = [TestEnvironment::new().await, TestEnvironment::new().await];
    for (site, workspaces) in [(&few, 2), (&many, WORKSPACES)] {
        let mut items = Vec::new();
        for number in 0..workspaces {
            items.extend(workspace(number));
            if items.len() >= AT_ONCE || number + 1 == workspaces {
                site.table.write_many(std::mem::take(&mut items), &[]).await.unwrap();
            }
        }
    }
    let (cost, answers) = lists(&few.table).await;
    let (cost_of_many, answers_of_many) = lists(&many.table).await;
    assert_eq!(cost, cost_of_many);
    assert_eq!(answers, answers_of_many);
    assert_eq!(answers[0]["experiments"].as_array().unwrap().len(), 20);
    let meter = UsageMeter::default();
    let api = api(&many.table.metered(meter.clone())).await;
    meter.take();
    let all = api.get_at("/api/3.0/mlflow/workspaces", &[]).await.ok();
    assert_eq!(all["workspaces"].as_array().unwrap().len() as u64, WORKSPACES + 1);
    // One request reads the names of the workspaces. Eleven read up to 100 workspaces each.
    assert!(meter.take().requests <= 12);
}
