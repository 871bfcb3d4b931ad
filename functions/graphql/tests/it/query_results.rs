//! Tests queries over a private table.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use artifact_store::ArtifactStore;
use domain::Environment;
use serde_json::{Value, json};
use table::Table;
use test_site::{ROOT, TestClient, TestEnvironment, TestResponse, everybody};
use tokio::task::JoinSet;

/// Starts a process with GraphQL and all domains that queries call.
async fn process(table: Table) -> TestClient {
    // The artifact directory does not exist, so lists of artifacts are empty.
    // `docs/reference/capacity-artifacts.md` contains the cost of listing files in a bucket.
    let files = ArtifactStore::in_directory(Path::new("/nothing is here"));
    let around = Environment::new(everybody(), table).with_artifacts(ROOT, files);
    let around = Environment { is_new_table: true, ..around };
    let domains = [&tracking::DOMAIN, &registry::DOMAIN, &artifacts::DOMAIN, &graphql::DOMAIN];
    TestClient(domain::mount(&domains, &[], &around).await.unwrap())
}

struct Server {
    api: TestClient,
    _site: TestEnvironment,
}

impl Server {
    async fn new() -> Self {
        let site = TestEnvironment::new().await;
        Self { api: process(site.table.clone()).await, _site: site }
    }

    async fn send(&self, body: Value) -> TestResponse {
        self.api.call_at("POST", "/graphql", body.to_string()).await
    }

    async fn query(&self, query: &str) -> Value {
        self.send(json!({ "query": query })).await.ok()
    }

    /// Returns the error of a query that must have exactly one error and no data.
    async fn refusal(&self, query: &str) -> String {
        let mut answer = self.query(query).await;
        assert_eq!(answer["data"], Value::Null, "{query}: {answer}");
        serde_json::from_value::<Vec<String>>(answer["errors"].take()).unwrap().remove(0)
    }

    async fn run(&self) -> String {
        let new = json!({ "experiment_id": "0", "run_name": "one", "start_time": 1_700_000_000_000_i64 });
        let run = self.api.post("runs/create", new).await.ok();
        run["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_the_forms_of_the_schema() {
    let server = Server::new().await;
    let run = server.run().await;
    for (key, value) in [("a", json!("NaN")), ("b", json!(0.5))] {
        let step = 9_007_199_254_740_993_i64;
        let point = json!({ "run_id": run, "key": key, "value": value, "timestamp": 5, "step": step });
        server.api.post("runs/log-metric", point).await.ok();
    }
    let query = format!(
        "query GetRun @component(name: \"x\") {{ mlflowGetRun(input: {{ runUuid: \"{run}\" }}) {{ __typename apiError {{ code }} run {{ \
         info {{ runName status endTime startTime }} experiment {{ name experimentId }} modelVersions {{ name }} \
         data {{ metrics {{ key value step timestamp datasetName }} params {{ key }} }} \
         inputs {{ datasetInputs {{ dataset {{ name }} }} }} }} }} }}"
    );
    let mut answer = server.query(&query).await;
    assert_eq!(answer["errors"], Value::Null);
    let metrics = answer["data"]["mlflowGetRun"]["run"]["data"]["metrics"].as_array_mut().unwrap();
    metrics.sort_by_key(|metric| metric["key"].to_string());
    let metric = |key: &str, value: Value| json!({ "key": key, "value": value, "step": "9007199254740993", "timestamp": "5", "datasetName": "" });
    let expected = json!({
        "__typename": "MlflowGetRunResponse",
        "apiError": null,
        "run": {
            "info": { "runName": "one", "status": "RUNNING", "endTime": "0", "startTime": "1700000000000" },
            "experiment": { "name": "Default", "experimentId": "0" },
            "modelVersions": [],
            "data": { "metrics": [metric("a", Value::Null), metric("b", json!(0.5))], "params": [] },
            "inputs": { "datasetInputs": [] },
        },
    });
    assert_eq!(answer["data"]["mlflowGetRun"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_texts_beside_the_data_of_the_other_roots() {
    let server = Server::new().await;
    let query = "{ a: mlflowGetRun(input: { runId: \"f\" }) { run { info { runId } } } \
                 b: mlflowGetExperiment(input: {}) { experiment { experimentId } } \
                 c: mlflowListArtifacts(input: { runId: \"f\" }) { rootUri } }";
    let expected = json!({
        "data": { "a": null, "b": { "experiment": { "experimentId": "0" } }, "c": null },
        "errors": ["Run with id=f not found", "Run with id=f not found"],
    });
    assert_eq!(server.query(query).await, expected);
}

/// Each query occupies a blocking thread while it waits for the engine, which also needs a blocking
/// thread. Even if more queries arrive than there are threads, they must not deadlock.
#[test]
fn more_queries_at_once_than_there_are_threads_end() {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(20).build().unwrap();
    threads.block_on(async {
        let server = Arc::new(Server::new().await);
        let mut queries = JoinSet::new();
        for _ in 0..60 {
            let server = Arc::clone(&server);
            queries.spawn(async move {
                server.query("{ mlflowGetExperiment(input: { experimentId: \"0\" }) { experiment { name } } }").await
            });
        }
        let answers = tokio::time::timeout(Duration::from_mins(5), queries.join_all()).await.unwrap();
        let default = json!({ "mlflowGetExperiment": { "experiment": { "name": "Default" } } });
        assert!(answers.iter().all(|answer| answer["data"] == default), "{answers:?}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_searched_by_query_and_by_mutation() {
    let server = Server::new().await;
    server.run().await;
    for kind in ["query", "mutation"] {
        let query = format!(
            "{kind} S($data: MlflowSearchRunsInput!) {{ mlflowSearchRuns(input: $data) {{ nextPageToken runs {{ ...R }} }} }} \
             fragment R on MlflowRunExtension {{ info {{ runName }} experiment {{ name }} modelVersions {{ name }} }}"
        );
        let variables = json!({ "data": { "experimentIds": "0", "maxResults": 5, "runViewType": "ALL" } });
        let answer = server.send(json!({ "query": query, "variables": variables })).await.ok();
        let run = json!({ "info": { "runName": "one" }, "experiment": { "name": "Default" }, "modelVersions": [] });
        assert_eq!(answer["data"]["mlflowSearchRuns"], json!({ "nextPageToken": "", "runs": [run] }), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_of_a_search_has_its_model_versions() {
    let server = Server::new().await;
    let [none, two, one] = [server.run().await, server.run().await, server.run().await];
    server.api.post("registered-models/create", json!({ "name": "m" })).await.ok();
    let register = async |run: &str, tags: Value| {
        let version = json!({ "name": "m", "source": "s3://bucket/m", "run_id": run, "tags": tags });
        let version = server.api.post("model-versions/create", version).await.ok();
        version["model_version"]["version"].as_str().unwrap().to_owned()
    };
    let search =
        "{ mlflowSearchRuns(input: { experimentIds: [\"0\"] }) { runs { info { runId } modelVersions { version } } } }";
    let found = async || {
        let answer = server.query(search).await;
        assert_eq!(answer["errors"], Value::Null);
        let runs = answer["data"]["mlflowSearchRuns"]["runs"].as_array().unwrap().iter();
        let versions = |run: &Value| {
            let versions = run["modelVersions"].as_array().unwrap().iter();
            let mut versions: Vec<_> = versions.map(|one| one["version"].as_str().unwrap().to_owned()).collect();
            versions.sort();
            (run["info"]["runId"].as_str().unwrap().to_owned(), versions)
        };
        runs.map(versions).collect::<HashMap<_, _>>()
    };
    let mut expected = HashMap::from([(none, Vec::new())]);
    for run in [&two, &one, &two] {
        let version = register(run, json!([])).await;
        expected.entry(run.clone()).or_default().push(version);
    }
    assert_eq!(found().await, expected);
    // The versions of all runs together exceed one page of the search for versions, but the
    // versions of each run fit on a page.
    let tags = json!([{ "key": "long", "value": "x".repeat(95_000) }]);
    for number in 0..80 {
        let run = if number % 2 == 0 { &one } else { &two };
        let version = register(run, tags.clone()).await;
        expected.entry(run.clone()).or_default().push(version);
    }
    for versions in expected.values_mut() {
        versions.sort();
    }
    assert_eq!(found().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_refused_as_mlflow_does() {
    let server = Server::new().await;
    let aliases = |count: usize| (0..count).map(|alias| format!("a{alias}: __typename")).collect::<Vec<_>>().join(" ");
    let nested = |depth: usize| format!("{{{}x{}}}", "a{".repeat(depth - 1), "}".repeat(depth - 1));
    for (query, expected) in [
        (format!("{{ {} }}", aliases(11)), "GraphQL queries should have at most 10 root fields, got 11 root fields."),
        (
            format!("{{ test(inputString: \"x\") {{ {} }} }}", aliases(11)),
            "GraphQL queries should have at most 10 aliases, got 11 aliases.",
        ),
        (nested(11), "Query exceeds maximum depth of 10"),
        (
            format!("{{ test(inputString: \"x\") {{ {} }} }}", "output ".repeat(1_000)),
            "Query exceeds maximum total selections of 1000",
        ),
        ("{ abc }".to_owned(), "Cannot query field 'abc' on type 'Query'."),
        (
            "query ($i: MlflowGetRunInput!) { mlflowGetRun(input: $i) { run { info { runId } } } }".to_owned(),
            "Variable '$i' of required type 'MlflowGetRunInput!' was not provided.",
        ),
        (
            "query A { __typename } query B { __typename }".to_owned(),
            "Must provide operation name if query contains multiple operations.",
        ),
        ("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }".to_owned(), ""),
    ] {
        let refusal = server.refusal(&query).await;
        assert!(refusal.starts_with(expected), "{query}: {refusal}");
    }
    let mut bodies = vec![json!({}), json!([]), json!({ "query": 5 }), json!({ "query": "{" }), json!({ "query": "" })];
    bodies.push(json!({ "query": "{ __typename }", "variables": "x" }));
    bodies.push(json!({ "query": " ".repeat(70_000) }));
    bodies.push(json!({ "query": "{".repeat(60_000) }));
    bodies.push(json!({ "query": format!("{{ test(inputString: {}) {{ output }} }}", "[".repeat(30_000)) }));
    for body in bodies {
        server.send(body).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
}

/// Short queries that become large when they are processed: by nested fragments, by endless
/// nesting, or by fields that have to be merged.
#[tokio::test(flavor = "multi_thread")]
async fn no_short_query_takes_long() {
    let server = Server::new().await;
    server.run().await;
    let search = |fields: &str, fragments: &str| {
        format!("{{ mlflowSearchRuns(input: {{ experimentIds: [\"0\"] }}) {{ runs {{ {fields} }} }} }} {fragments}")
    };
    let doubled = |count: usize| -> String {
        let double = |number: usize| {
            let next = number + 1;
            format!("fragment F{number} on MlflowRunExtension {{ ...F{next} ... {{ ...F{next} }} }} ")
        };
        (0..count).map(double).collect::<String>()
            + &format!("fragment F{count} on MlflowRunExtension {{ info {{ runName }} }}")
    };
    let chained = |count: usize| -> String {
        let next = |number: usize| format!("fragment F{number} on MlflowRunExtension {{ ...F{} }} ", number + 1);
        (0..count).map(next).collect::<String>()
            + &format!("fragment F{count} on MlflowRunExtension {{ info {{ runName }} }}")
    };
    let spread = "fragment S on MlflowRunExtension { ".to_owned()
        + &"...T ".repeat(9_000)
        + "} fragment T on MlflowRunExtension { __typename }";
    let merging = "info { runName } ".repeat(450);
    for query in [
        search("...F0", &doubled(40)),
        search("...F0", &chained(1_000)),
        search("info { runName }", &chained(1_000)),
        search(&"a { ...S } ".repeat(500), &spread),
        search(&merging, ""),
        search(&("... { ".repeat(60) + "__typename" + &"}".repeat(60)), ""),
        format!("{{ {}x }}", "...F0 ".repeat(5_000)) + "fragment F0 on Query { ...F0 }",
        "query A { ...A } ".repeat(3_000) + "fragment A on Query { " + &"...B ".repeat(2_000) + "}",
        "{ __type(name: \"MlflowRunInfo\") { fields { type { fields { type { fields { name } } } } } } }".to_owned(),
        format!("query ({}) {{ __typename }}", "$a: Int ".repeat(6_000)),
        format!("{{ test(inputString: {}\"x\"{}) {{ output }} }}", "[".repeat(60), "]".repeat(60)),
        format!("{{ {} }}", "x ".repeat(30_000)),
    ] {
        // Without limits, these queries would take years.
        let answered = tokio::time::timeout(Duration::from_mins(5), server.send(json!({ "query": query }))).await;
        let head: String = query.chars().take(100).collect();
        assert!(answered.is_ok(), "takes too long: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_answered_so_deep_as_it_cannot_grow() {
    let server = Server::new().await;
    let answer = server.query("{ __schema { types { name fields { name type { name ofType { name } } } } } }").await;
    let types = answer["data"]["__schema"]["types"].as_array().unwrap();
    assert!(types.iter().any(|described| described["name"] == "MlflowRunExtension"));
    let lists = "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }";
    assert_eq!(server.refusal(lists).await, "Maximum introspection depth exceeded");
    let many = format!("{{ __schema {{ types {{ {} }} }} }}", "name ".repeat(100));
    assert_eq!(server.refusal(&many).await, "Query exceeds maximum total selections of 100");
}
