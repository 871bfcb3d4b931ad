//! What stands in the table and cannot be read is an error, never a shorter answer: one attribute after another of one item after
//! another is broken, and everything is read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use axum::Router;
use embedded_engine::Engine;
use fts_indexer::{Batch, Indexer};
use key_schema::definition::{PK, SK};
use key_schema::index::RunsChanged;
use key_schema::rows::RowDescription;
use key_schema::{IndexEntry, Key};
use mlflow_api::Workspace;
use serde_json::{Value as Json, json};
use table::{Condition, Item, Retry, Table, Value};

use crate::site::{ROOT, TABLE, functions, send};
use crate::writes::export;

const V2: &str = "/api/2.0/mlflow";
const V3: &str = "/api/3.0/mlflow";

/// A request that reads.
struct Read {
    method: &'static str,
    path: String,
    body: Json,
}

impl Read {
    async fn answer(&self, router: &Router) -> (u16, Json) {
        send(router, self.method, &self.path, &self.body).await
    }
}

async fn post(router: &Router, path: &str, body: Json) -> Json {
    let (status, answer) = send(router, "POST", path, &body).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn text(value: &Json, pointer: &str) -> String {
    value.pointer(pointer).and_then(Json::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}")).to_owned()
}

/// An experiment with everything in it, and what reads it.
async fn tracking(router: &Router) -> Vec<Read> {
    let long = "x".repeat(3_000);
    let tags = json!([{ "key": "short", "value": "s" }, { "key": "long", "value": long }]);
    let new = json!({ "name": "e", "tags": tags });
    let experiment = text(&post(router, &format!("{V2}/experiments/create"), new).await, "/experiment_id");
    let mut runs = Vec::new();
    for start in 1..3 {
        let new = json!({ "experiment_id": experiment, "start_time": start, "tags": tags, "run_name": "n" });
        let run = text(&post(router, &format!("{V2}/runs/create"), new).await, "/run/info/run_id");
        let points: Vec<_> =
            (0..60).map(|step| json!({ "key": "loss", "value": step, "timestamp": step, "step": step })).collect();
        let batch = json!({ "run_id": run, "metrics": points, "params": tags });
        post(router, &format!("{V2}/runs/log-batch"), batch).await;
        let dataset = json!({ "name": "d", "digest": "1", "source_type": "local", "source": "s", "schema": "{}" });
        let datasets = json!([{ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": "train" }] }]);
        let inputs = json!({ "run_id": run, "datasets": datasets, "models": [{ "model_id": "m-in" }] });
        post(router, &format!("{V2}/runs/log-inputs"), inputs).await;
        let outputs = json!({ "run_id": run, "models": [{ "model_id": "m-out", "step": 1 }] });
        post(router, &format!("{V2}/runs/outputs"), outputs).await;
        let update = json!({ "run_id": run, "status": "FINISHED", "end_time": 9 });
        post(router, &format!("{V2}/runs/update"), update).await;
        runs.push(run);
    }
    let new =
        json!({ "experiment_id": experiment, "name": "m", "source_run_id": runs[0], "params": tags, "tags": tags });
    let model = text(&post(router, &format!("{V2}/logged-models"), new).await, "/model/info/model_id");
    let points: Vec<_> = (0..900)
        .map(|step| json!({ "key": "auc", "value": step, "timestamp": step, "step": step, "model_id": model }))
        .collect();
    post(router, &format!("{V2}/runs/log-batch"), json!({ "run_id": runs[0], "metrics": points })).await;
    let get = |path: String| Read { method: "GET", path, body: json!({}) };
    let search = |path: &str, body: Json| Read { method: "POST", path: format!("{V2}/{path}"), body };
    let run = &runs[0];
    let with = |fields: Json| {
        let mut body = json!({ "experiment_ids": [experiment] });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    vec![
        get(format!("{V2}/experiments/get?experiment_id={experiment}")),
        get(format!("{V2}/experiments/get-by-name?experiment_name=e")),
        search("experiments/search", json!({ "max_results": 100 })),
        search("experiments/search", json!({ "max_results": 100, "filter": "tags.short = 's'" })),
        get(format!("{V2}/runs/get?run_id={run}")),
        search("runs/search", with(json!({}))),
        search("runs/search", with(json!({ "filter": "params.short = 's' AND metrics.loss > 1" }))),
        search("runs/search", with(json!({ "filter": "attributes.status = 'FINISHED'" }))),
        search("runs/search", with(json!({ "filter": "datasets.name = 'd'" }))),
        search("runs/search", with(json!({ "order_by": ["metrics.loss DESC"] }))),
        search("runs/search", with(json!({ "order_by": ["attributes.end_time DESC"] }))),
        get(format!("{V2}/metrics/get-history?run_id={run}&metric_key=loss")),
        get(format!("{V2}/metrics/get-history?run_id={run}&metric_key=loss&max_results=20")),
        get(format!("{V2}/metrics/get-history-bulk-interval?run_ids={run}&metric_key=loss&max_results=7")),
        get(format!("/ajax-api/2.0/mlflow/metrics/get-history-bulk?run_id={run}&metric_key=loss")),
        Read {
            method: "POST",
            path: "/ajax-api/2.0/mlflow/experiments/search-datasets".to_owned(),
            body: with(json!({})),
        },
        get(format!("{V2}/logged-models/{model}")),
        search("logged-models/search", with(json!({}))),
        search("logged-models/search", with(json!({ "filter": "name = 'm'" }))),
        search("logged-models/search", with(json!({ "filter": "metrics.auc > 1" }))),
    ]
}

async fn evaluation(router: &Router) -> Vec<Read> {
    let experiment =
        text(&post(router, &format!("{V2}/experiments/create"), json!({ "name": "ev" })).await, "/experiment_id");
    let tags = json!({ "short": "s", "long": "x".repeat(3_000), "user": "u" }).to_string();
    let new = json!({ "name": "questions", "experiment_ids": [experiment], "tags": tags });
    let dataset = text(&post(router, &format!("{V3}/datasets/create"), new).await, "/dataset/dataset_id");
    let noise: String =
        (0..40_000_u32).map(|number| char::from(b'a' + u8::try_from(number * number % 25).unwrap())).collect();
    let records = json!([
        { "inputs": { "q": 1 }, "outputs": "short", "tags": { "mlflow.user": "u" } },
        { "inputs": { "q": 2 }, "outputs": noise },
    ]);
    let merge = json!({ "records": records.to_string() });
    post(router, &format!("{V3}/datasets/{dataset}/records"), merge).await;
    let named = json!({ "experiment_id": experiment, "name": "s" });
    let mut scorer = String::new();
    for round in 0..2 {
        let mut new = named.clone();
        new["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {}, "x": round }).to_string().into();
        scorer = text(&post(router, &format!("{V3}/scorers/register"), new).await, "/scorer_id");
    }
    let config = json!({ "experiment_id": experiment, "name": "s", "sample_rate": 0, "filter_string": "x" });
    assert_eq!(send(router, "PUT", &format!("{V3}/scorers/online-config"), &config).await.0, 200);
    let get = |path: String, body: Json| Read { method: "GET", path: format!("{V3}/{path}"), body };
    let search = |body: Json| Read { method: "POST", path: format!("{V3}/datasets/search"), body };
    vec![
        get(format!("datasets/{dataset}"), json!({})),
        get(format!("datasets/{dataset}/records"), json!({})),
        get(format!("datasets/{dataset}/experiment-ids"), json!({})),
        search(json!({ "experiment_ids": [experiment] })),
        search(json!({ "experiment_ids": [experiment], "filter_string": "tags.short = 's'" })),
        search(json!({ "filter_string": "name LIKE 'q%'", "order_by": ["name"] })),
        get("scorers/list".to_owned(), json!({ "experiment_id": experiment })),
        get("scorers/versions".to_owned(), named.clone()),
        get("scorers/get".to_owned(), named.clone()),
        get("scorers/get".to_owned(), json!({ "experiment_id": experiment, "name": "s", "version": 1 })),
        get("scorers/online-configs".to_owned(), json!({ "scorer_ids": [scorer] })),
    ]
}

async fn traces(router: &Router) -> Vec<Read> {
    let id = |number: u32| format!("tr-{number:032x}");
    let all = format!("{V3}/traces");
    let run = "0".repeat(32);
    for number in 1..3 {
        post(router, "/v1/traces", export(&format!("{number:032x}"), 1)).await;
        let info = json!({
            "trace_id": id(number),
            "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } },
            "request_time": "2023-11-14T22:13:20Z", "execution_duration": "0.005s", "state": "OK",
            "request_preview": "question", "response_preview": "answer", "client_request_id": "c",
            "trace_metadata": { "mlflow.trace.session": "s", "mlflow.trace.user": "u" }, "tags": { "short": "s" },
        });
        post(router, &all, json!({ "trace": { "trace_info": info } })).await;
        let session = json!({ "mlflow.trace.session": "s" });
        for (name, metadata) in [("good", json!({})), ("whole", session)] {
            let said = json!({ "assessment_id": name, "assessment_name": name, "feedback": { "value": true }, "metadata": metadata });
            post(router, &format!("{all}/{}/assessments", id(number)), json!({ "assessment": said })).await;
        }
        let link = json!({ "run_id": run, "trace_ids": [id(number)] });
        post(router, &format!("{V2}/traces/link-to-run"), link).await;
        let prompts = json!({ "trace_id": id(number), "prompt_versions": [{ "name": "p", "version": "1" }] });
        post(router, &format!("{V2}/traces/link-prompts"), prompts).await;
    }
    let get = |path: String| Read { method: "GET", path, body: json!({}) };
    let ask = |path: &str, body: Json| Read { method: "POST", path: format!("{all}/{path}"), body };
    let place = json!([{ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } }]);
    let search = |filter: &str| ask("search", json!({ "locations": place, "filter": filter }));
    let figure = |view: &str, metric: &str, aggregation: &str| {
        let aggregations = json!([{ "aggregation_type": aggregation }]);
        let asked =
            json!({ "experiment_ids": ["0"], "view_type": view, "metric_name": metric, "aggregations": aggregations });
        ask("metrics", asked)
    };
    let first = id(1);
    let correlation = json!({ "experiment_ids": ["0"], "filter_string1": "status = 'OK'", "filter_string2": "feedback.good = 'true'" });
    vec![
        get(format!("{all}/{first}")),
        get(format!("{V2}/traces/{first}/info")),
        get(format!("{all}/get?trace_id={first}")),
        get(format!("{all}/batchGet?trace_ids={first}&trace_ids={}", id(2))),
        ask("batchGetInfos", json!({ "trace_ids": [first, id(2)] })),
        get(format!("{all}/{first}/assessments/good")),
        get(format!("/ajax-api/3.0/mlflow/get-trace-artifact?request_id={first}")),
        search(""),
        search("tag.short = 's' AND attributes.run_id != 'x' AND prompt = 'p/1'"),
        search(&format!("attributes.run_id = '{run}'")),
        search("span.name = 'step 2'"),
        search("feedback.whole = 'true'"),
        figure("TRACES", "trace_count", "COUNT"),
        figure("TRACES", "latency", "AVG"),
        figure("SPANS", "span_count", "COUNT"),
        figure("ASSESSMENTS", "assessment_count", "COUNT"),
        ask("calculate-filter-correlation", correlation),
    ]
}

async fn registry(router: &Router) -> Vec<Read> {
    let tags = json!([{ "key": "short", "value": "s" }, { "key": "long", "value": "x".repeat(3_000) }]);
    post(router, &format!("{V2}/registered-models/create"), json!({ "name": "old", "tags": tags })).await;
    let run = "0".repeat(32);
    for _ in 0..2 {
        let new =
            json!({ "name": "old", "source": "s3://elsewhere/m", "tags": tags, "run_link": "l", "description": "d" });
        post(router, &format!("{V2}/model-versions/create"), new).await;
    }
    let alias = json!({ "name": "old", "alias": "champion", "version": "1" });
    post(router, &format!("{V2}/registered-models/alias"), alias).await;
    let stage = json!({ "name": "old", "version": "1", "stage": "Staging", "archive_existing_versions": false });
    post(router, &format!("{V2}/model-versions/transition-stage"), stage).await;
    post(router, &format!("{V2}/registered-models/rename"), json!({ "name": "old", "new_name": "new" })).await;
    let get = |path: &str| Read { method: "GET", path: format!("{V2}/{path}"), body: json!({}) };
    let search = |path: &str, body: Json| Read { method: "GET", path: format!("{V2}/{path}"), body };
    vec![
        get("registered-models/get?name=new"),
        get("registered-models/get-latest-versions?name=new"),
        get("registered-models/alias?name=new&alias=champion"),
        search("registered-models/search", json!({})),
        search("registered-models/search", json!({ "filter": "tags.short = 's'" })),
        search("registered-models/search", json!({ "order_by": ["last_updated_timestamp DESC"] })),
        get("model-versions/get?name=new&version=1"),
        get("model-versions/get-download-uri?name=new&version=1"),
        search("model-versions/search", json!({})),
        search("model-versions/search", json!({ "filter": "name = 'new'", "order_by": ["creation_timestamp"] })),
        search("model-versions/search", json!({ "filter": format!("run_id = '{run}'") })),
    ]
}

/// What an item looks like with one attribute broken, each with a name.
fn broken(item: &Item, row: &RowDescription) -> Vec<(String, Item)> {
    let mut all = Vec::new();
    for attribute in row.attributes() {
        let names: Vec<_> = item.0.keys().filter(|name| attribute.is_named(name)).cloned().collect();
        for name in names {
            let mut add = |how: &str, value: Option<Value>| {
                let mut item = item.clone();
                item.0.remove(&name);
                item.0.extend(value.map(|value| (name.clone(), value)));
                all.push((format!("{} {} {how}", row.name, attribute.name), item));
            };
            add("of another type", Some(Value::Bool(true)));
            if attribute.is_required {
                add("missing", None);
            }
            let garbage = || Value::B(Blob::new(vec![0xff; 7]));
            match item.0.get(&name) {
                Some(Value::S(_)) if !attribute.kind.reads("?") => add("unknown", Some(Value::S("?".to_owned()))),
                Some(Value::N(_)) => add("a fraction", Some(Value::N("1.5".to_owned()))),
                Some(Value::B(bytes)) => {
                    let half = bytes.as_ref().get(..bytes.as_ref().len() / 2).unwrap_or_default().to_vec();
                    add("cut", Some(Value::B(Blob::new(half))));
                    add("garbage", Some(garbage()));
                }
                Some(Value::Bs(set)) => {
                    let set = set.iter().cloned().chain([Blob::new(vec![0xff; 7])]).collect();
                    add("with garbage in it", Some(Value::Bs(set)));
                }
                Some(Value::M(map)) => {
                    let mut map = map.clone();
                    map.insert("strange".to_owned(), Value::Bool(true));
                    add("with something strange in it", Some(Value::M(map)));
                }
                Some(Value::L(list)) => {
                    let list = list.iter().cloned().chain([Value::Bool(true)]).collect();
                    add("with something strange in it", Some(Value::L(list)));
                }
                _ => {}
            }
        }
    }
    all
}

/// Indexes one of the runs that carry a mark; the other is searched without its copy.
async fn index_one(engine: &Engine, table: &Table) {
    let items = engine.items(TABLE).await.unwrap();
    let marked = items.into_iter().filter(|item| item.get(RunsChanged::INDEX.sort).is_some());
    let record = |item: Json| {
        let keys = json!({ "PK": item["PK"], "SK": item["SK"] });
        let change = json!({ "Keys": keys, "NewImage": item, "SequenceNumber": "1" });
        json!({ "eventName": "MODIFY", "dynamodb": change })
    };
    let records: Vec<_> = marked.map(record).collect();
    let run_of = |record: &Json| record["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap()[..34].to_owned();
    let first = run_of(&records[0]);
    let records: Vec<_> = records.into_iter().filter(|record| run_of(record) == first).collect();
    let answer = Indexer::new(table.clone()).handle(Batch { records }).await;
    assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
}

/// So many items of a row are broken in the same way: one run is read from its copy in the index, another from its own items.
const ITEMS_OF_A_ROW: usize = 2;
/// What only writes or the indexer read, or, of a copy in the index, has the run itself read in its place.
const NOT_ANSWERED: [&str; 8] = [
    " nc ",
    "Config count ",
    "Config layout ",
    "EvaluationInputs ",
    "IndexList ",
    "IndexedCopy link_rows ",
    "ModelHome ",
    "WorkspaceScorer ",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error_and_never_a_shorter_answer() {
    let engine = Engine::memory().unwrap();
    let pause = Duration::from_millis(1);
    let impatient = Retry { attempts: 2, first_pause: pause, longest_pause: pause, ..Retry::default() };
    let table = Table::new(engine.client(), TABLE).with_retry(impatient);
    table.create_if_missing().await.unwrap();
    engine.end_stream(TABLE).await.unwrap();
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let router = functions(&table);
    let mut reads = tracking(&router).await;
    reads.extend(evaluation(&router).await);
    reads.extend(registry(&router).await);
    index_one(&engine, &table).await;
    reads.extend(traces(&router).await);
    let mut expected = Vec::new();
    for read in reads {
        let (status, answer) = read.answer(&router).await;
        assert_eq!(status, 200, "{} {} {answer}", read.method, read.path);
        expected.push((read, answer));
    }
    let (mut noticed, mut unnoticed) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for dumped in engine.items(TABLE).await.unwrap() {
        let part = |name: &str| dumped[name]["S"].as_str().unwrap().to_owned();
        let key = Key { pk: part(PK), sk: part(SK) };
        let row = RowDescription::of(&key).unwrap();
        let whole = table.get(&key).await.unwrap().unwrap();
        for (what, item) in broken(&whole, row) {
            if noticed.get(&what).is_some_and(|items| *items >= ITEMS_OF_A_ROW) {
                continue;
            }
            let mut is_noticed = false;
            table.put(item, &Condition::Always).await.unwrap();
            // Nothing else reads rows of traces, nor do their requests read others.
            let is_of_traces = row.name.starts_with("Trace");
            for (read, expected) in expected.iter().filter(|(read, _)| read.path.contains("trace") == is_of_traces) {
                let (status, answer) = read.answer(&router).await;
                let call = format!("{what}: {} {} {}", read.method, read.path, read.body);
                if status == 200 {
                    assert_eq!(answer, *expected, "{call}");
                    continue;
                }
                assert_eq!((status, &answer["error_code"]), (500, &json!("INTERNAL_ERROR")), "{call} {answer}");
                let message = "The server met an unexpected condition. Its log has the details.";
                assert_eq!(answer["message"], message, "{call}");
                is_noticed = true;
            }
            if is_noticed {
                *noticed.entry(what).or_default() += 1;
            } else {
                unnoticed.insert(what);
            }
        }
        table.put(whole, &Condition::Always).await.unwrap();
    }
    // Another item of the same row may be the one that is read.
    unnoticed.retain(|what| !noticed.contains_key(what) && !NOT_ANSWERED.iter().any(|part| what.contains(part)));
    assert_eq!(unnoticed, BTreeSet::new(), "nothing reads these");
    assert!(noticed.len() > 200, "{} ways to break an item", noticed.len());
    for (read, expected) in &expected {
        assert_eq!(read.answer(&router).await, (200, expected.clone()), "all is whole again");
    }
}
