//! Entities that a user is denied are left out of responses about other entities, and cannot be
//! found by filters.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use mlflow_api::auth::PermissionLevel;
use serde_json::{Value, json};
use test_site::TestResponse;

use crate::users_server::{Client, PASSWORD, Server};

/// A server with sample entities, and their ids by the names that are used as placeholders below.
struct World {
    server: Server,
    ids: Vec<(&'static str, String)>,
}

/// The denied resource types, each with a user to whom all resources of the type are denied.
const DENIED: [(&str, &str); 5] = [
    ("run", "norun"),
    ("logged_model", "nomodel"),
    ("assessment", "noassessment"),
    ("registered_model_version", "noversion"),
    ("prompt_version", "nopromptversion"),
];

const TRACE: &str = "tr-00000000000000000000000000000001";

fn v2(path: &str) -> String {
    format!("/api/2.0/mlflow/{path}")
}

fn v3(path: &str) -> String {
    format!("/api/3.0/mlflow/{path}")
}

impl World {
    async fn new() -> Self {
        let server = Server::new(PermissionLevel::Edit).await;
        let mut world = Self { server, ids: vec![("trace", TRACE.to_owned())] };
        world.make("experiment", v2("experiments/create"), json!({ "name": "e" }), "/experiment_id").await;
        world.make("run", v2("runs/create"), json!({ "experiment_id": "$experiment" }), "/run/info/run_id").await;
        let model = json!({ "experiment_id": "$experiment", "name": "m", "source_run_id": "$run" });
        world.make("model", v2("logged-models"), model, "/model/info/model_id").await;
        let point = json!({ "run_id": "$run", "key": "k", "value": 1, "timestamp": 1, "model_id": "$model" });
        world.ask(v2("runs/log-metric"), point).await;
        world.ask(v2("runs/outputs"), json!({ "run_id": "$run", "models": [{ "model_id": "$model" }] })).await;
        world.ask(v2("runs/log-inputs"), json!({ "run_id": "$run", "models": [{ "model_id": "$model" }] })).await;
        let prompt = json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]);
        for (name, tags) in [("m", json!([])), ("p", prompt)] {
            world.ask(v2("registered-models/create"), json!({ "name": name, "tags": tags })).await;
            let version = json!({ "name": name, "source": "s3://bucket/x", "run_id": "$run", "run_link": "l" });
            world.ask(v2("model-versions/create"), version).await;
        }
        world.ask(v2("registered-models/alias"), json!({ "name": "m", "alias": "a", "version": "1" })).await;
        world.export_span().await;
        let info = json!({
            "trace_id": TRACE,
            "trace_location": location(),
            "request_time": "2026-01-01T00:00:00Z",
            "state": "OK",
            "trace_metadata": { "mlflow.sourceRun": "$run", "mlflow.modelId": "$model" },
        });
        world.ask(v3("traces"), json!({ "trace": { "trace_info": info } })).await;
        let source = json!({ "source_type": "HUMAN", "source_id": "x" });
        let feedback = json!({ "assessment_name": "f", "feedback": { "value": true }, "source": source });
        world.ask(v3("traces/$trace/assessments"), json!({ "assessment": feedback })).await;
        let user = world.server.user("everything").await;
        assert_eq!(user.permissions().await, Vec::new());
        for (tier, name) in DENIED {
            let user = world.server.user(name).await;
            world.server.grant(&user, tier, "*", "DENY").await;
        }
        world
    }

    /// Sends a span, which completes the trace.
    async fn export_span(&self) {
        let span = json!({
            "traceId": TRACE.trim_start_matches("tr-"),
            "spanId": "0000000000000001",
            "name": "s",
            "startTimeUnixNano": "1767225600000000000",
            "endTimeUnixNano": "1767225601000000000",
        });
        let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] });
        let credentials = STANDARD.encode(format!("admin:{PASSWORD}"));
        let request = Request::post("/v1/traces").header(CONTENT_TYPE, "application/json");
        let request = request.header(AUTHORIZATION, format!("Basic {credentials}"));
        let request = request.header("x-mlflow-experiment-id", self.filled("$experiment"));
        self.server.admin.api.send(request.body(Body::from(body.to_string())).unwrap()).await.ok();
    }

    async fn make(&mut self, name: &'static str, path: String, body: Value, pointer: &str) {
        let made = self.ask(path, body).await;
        self.ids.push((name, made.pointer(pointer).unwrap().as_str().unwrap().to_owned()));
    }

    async fn ask(&self, path: String, body: Value) -> Value {
        self.asked("admin", "POST", &path, &body).await.ok()
    }

    async fn asked(&self, user: &'static str, method: &str, path: &str, body: &Value) -> TestResponse {
        let body = serde_json::from_str(&self.filled(&body.to_string())).unwrap();
        let client = Client { name: user, ..self.server.admin.clone() };
        client.at(method, &self.filled(path), &body).await
    }

    fn filled(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("${name}"), id))
    }
}

fn location() -> Value {
    json!({ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "$experiment" } })
}

/// A request: the type of resource that it is about, its method, path and body, and the parts of
/// the response that may be left out. Each part is given as a resource type and a JSON pointer, and
/// is left out for users to whom that type is denied.
type Place = (&'static str, &'static str, String, Value, &'static [(&'static str, &'static str)]);

const OF_VERSION: &[(&str, &str)] = &[("run", "/model_version/run_id"), ("run", "/model_version/run_link")];
const OF_MODEL: &[(&str, &str)] = &[
    ("registered_model_version", "/registered_model/latest_versions/0"),
    ("run", "/registered_model/latest_versions/0/run_id"),
];
const OF_LOGGED: &[(&str, &str)] = &[("run", "/model/info/source_run_id"), ("run", "/model/data/metrics/0/run_id")];
const OF_TRACE: &[(&str, &str)] = &[
    ("assessment", "/trace/trace_info/assessments/0"),
    ("run", "/trace/trace_info/trace_metadata/mlflow.sourceRun"),
    ("logged_model", "/trace/trace_info/trace_metadata/mlflow.modelId"),
];

fn places_of_tracking_and_registry() -> Vec<Place> {
    let in_experiment = || json!({ "experiment_ids": ["$experiment"] });
    let graph = "{ mlflowGetRun(input: { runId: \"$run\" }) { run { outputs { modelOutputs { modelId } } } } }";
    vec![
        (
            "run",
            "GET",
            v2("runs/get?run_id=$run"),
            json!({}),
            &[("logged_model", "/run/inputs/model_inputs/0"), ("logged_model", "/run/outputs/model_outputs/0")],
        ),
        ("run", "POST", v2("runs/search"), in_experiment(), &[("logged_model", "/runs/0/outputs/model_outputs/0")]),
        (
            "run",
            "POST",
            "/graphql".to_owned(),
            json!({ "query": graph }),
            &[("logged_model", "/data/mlflowGetRun/run/outputs/modelOutputs/0")],
        ),
        ("logged_model", "GET", v2("logged-models/$model"), json!({}), OF_LOGGED),
        ("logged_model", "PATCH", v2("logged-models/$model"), json!({ "model_id": "$model", "status": 2 }), OF_LOGGED),
        (
            "logged_model",
            "POST",
            v2("logged-models/search"),
            in_experiment(),
            &[("run", "/models/0/info/source_run_id"), ("run", "/models/0/data/metrics/0/run_id")],
        ),
        ("registered_model", "GET", v2("registered-models/get?name=m"), json!({}), OF_MODEL),
        (
            "registered_model",
            "GET",
            v2("registered-models/get?name=p"),
            json!({}),
            &[
                ("prompt_version", "/registered_model/latest_versions/0"),
                ("run", "/registered_model/latest_versions/0/run_id"),
            ],
        ),
        (
            "registered_model",
            "PATCH",
            v2("registered-models/update"),
            json!({ "name": "m", "description": "d" }),
            OF_MODEL,
        ),
        ("registered_model", "POST", v2("registered-models/rename"), json!({ "name": "m", "new_name": "m" }), OF_MODEL),
        (
            "registered_model",
            "GET",
            v2("registered-models/search?filter=name%3D%27m%27"),
            json!({}),
            &[
                ("registered_model_version", "/registered_models/0/latest_versions/0"),
                ("run", "/registered_models/0/latest_versions/0/run_id"),
            ],
        ),
        ("registered_model_version", "GET", v2("model-versions/get?name=m&version=1"), json!({}), OF_VERSION),
        ("registered_model_version", "GET", v2("registered-models/alias?name=m&alias=a"), json!({}), OF_VERSION),
        (
            "registered_model_version",
            "POST",
            v2("registered-models/get-latest-versions"),
            json!({ "name": "m" }),
            &[("run", "/model_versions/0/run_id"), ("run", "/model_versions/0/run_link")],
        ),
        (
            "registered_model_version",
            "PATCH",
            v2("model-versions/update"),
            json!({ "name": "m", "version": "1", "description": "d" }),
            OF_VERSION,
        ),
        (
            "registered_model_version",
            "POST",
            v2("model-versions/transition-stage"),
            json!({ "name": "m", "version": "1", "stage": "Staging", "archive_existing_versions": false }),
            OF_VERSION,
        ),
        (
            "registered_model_version",
            "GET",
            v2("model-versions/search?filter=name%3D%27m%27"),
            json!({}),
            &[("run", "/model_versions/0/run_id")],
        ),
    ]
}

fn places_of_traces() -> Vec<Place> {
    let again = json!({ "trace": { "trace_info": {
        "trace_id": TRACE,
        "trace_location": location(),
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
    } } });
    vec![
        ("trace", "GET", v3("traces/$trace"), json!({}), OF_TRACE),
        ("trace", "GET", v3("traces/get?trace_id=$trace&allow_partial=true"), json!({}), OF_TRACE),
        (
            "trace",
            "GET",
            v3("traces/batchGet?trace_ids=$trace"),
            json!({}),
            &[
                ("assessment", "/traces/0/trace_info/assessments/0"),
                ("run", "/traces/0/trace_info/trace_metadata/mlflow.sourceRun"),
                ("logged_model", "/traces/0/trace_info/trace_metadata/mlflow.modelId"),
            ],
        ),
        (
            "trace",
            "POST",
            v3("traces/batchGetInfos"),
            json!({ "trace_ids": ["$trace"] }),
            &[
                ("assessment", "/trace_infos/0/assessments/0"),
                ("run", "/trace_infos/0/trace_metadata/mlflow.sourceRun"),
                ("logged_model", "/trace_infos/0/trace_metadata/mlflow.modelId"),
            ],
        ),
        (
            "trace",
            "POST",
            v3("traces/search"),
            json!({ "locations": [location()] }),
            &[
                ("assessment", "/traces/0/assessments/0"),
                ("run", "/traces/0/trace_metadata/mlflow.sourceRun"),
                ("logged_model", "/traces/0/trace_metadata/mlflow.modelId"),
            ],
        ),
        ("trace", "POST", v3("traces"), again, OF_TRACE),
    ]
}

/// Checks whether the list of metadata in a v2 response about traces has an entry.
fn has_metadata(answer: &Value, pointer: &str, key: &str) -> bool {
    let entries = answer.pointer(pointer).and_then(Value::as_array);
    entries.is_some_and(|entries| entries.iter().any(|entry| entry["key"] == key))
}

async fn check_places(places: Vec<Place>) {
    let world = World::new().await;
    for (about, method, path, body, withheld) in places {
        let everything = world.asked("everything", method, &path, &body).await.ok();
        for (_, pointer) in withheld {
            assert!(is_there(&everything, pointer), "{method} {path} has no {pointer}: {everything}");
        }
        for (tier, user) in DENIED {
            let answer = world.asked(user, method, &path, &body).await;
            // A request about an entity of the denied type is refused, or does not find the entity.
            if tier == about {
                let none = withheld.iter().all(|(_, pointer)| !is_there(&answer.body, pointer));
                assert!(none, "{user}: {method} {path}: {answer:?}");
                continue;
            }
            let answer = answer.ok();
            for (_, pointer) in withheld {
                let is_withheld = withheld.iter().any(|(of, withheld)| *of == tier && pointer.starts_with(withheld));
                assert_eq!(is_there(&answer, pointer), !is_withheld, "{user}: {method} {path} {pointer}: {answer}");
            }
        }
    }
}

fn is_there(answer: &Value, pointer: &str) -> bool {
    answer.pointer(pointer).is_some_and(|found| found.as_str() != Some("") && !found.is_null())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_runs_and_models_leave_out_what_is_denied() {
    check_places(places_of_tracking_and_registry()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_traces_leave_out_what_is_denied() {
    check_places(places_of_traces()).await;
    let world = World::new().await;
    for (path, pointer) in [
        (v2("traces/$trace/info"), "/trace_info/request_metadata"),
        (v2("traces?experiment_ids=$experiment"), "/traces/0/request_metadata"),
    ] {
        for (user, run, model) in [("everything", true, true), ("norun", false, true), ("nomodel", true, false)] {
            let answer = world.asked(user, "GET", &path, &json!({})).await.ok();
            let has = |key| has_metadata(&answer, pointer, key);
            assert_eq!((has("mlflow.sourceRun"), has("mlflow.modelId")), (run, model), "{user}: {path}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_by_what_is_denied() {
    let world = World::new().await;
    let traces = |filter: &str, order_by: &[&str]| {
        let body = json!({ "locations": [location()], "filter": filter, "order_by": order_by });
        ("POST", v3("traces/search"), body)
    };
    let correlation = json!({
        "experiment_ids": ["$experiment"],
        "filter_string1": "status = 'OK'",
        "filter_string2": "feedback.f = 'true'",
    });
    let metrics = |view: &str, metric: &str, filters: &[&str]| {
        let body = json!({
            "experiment_ids": ["$experiment"],
            "view_type": view,
            "metric_name": metric,
            "aggregations": [{ "aggregation_type": "COUNT" }],
            "filters": filters,
        });
        ("POST", v3("traces/metrics"), body)
    };
    let models = |filter: &str| {
        ("POST", v2("logged-models/search"), json!({ "experiment_ids": ["$experiment"], "filter": filter }))
    };
    let versions = |filter: &str| ("GET", v2(&format!("model-versions/search?filter={filter}")), json!({}));
    for ((method, path, body), tier) in [
        (traces("status = 'OK'", &[]), None),
        (traces("run_id = '$run'", &[]), Some("run")),
        (traces("", &["run_id DESC"]), Some("run")),
        (traces("metadata.`mlflow.modelId` = '$model'", &[]), Some("logged_model")),
        (traces("feedback.f = 'true'", &[]), Some("assessment")),
        (("POST", v3("traces/calculate-filter-correlation"), correlation), Some("assessment")),
        (metrics("TRACES", "trace_count", &[]), None),
        (metrics("ASSESSMENTS", "assessment_count", &[]), Some("assessment")),
        (metrics("TRACES", "trace_count", &["trace.metadata.`mlflow.sourceRun` = '$run'"]), Some("run")),
        (models("name = 'm'"), None),
        (models("source_run_id = '$run'"), Some("run")),
        (versions("name%3D%27m%27"), None),
        (versions("run_id%3D%27$run%27"), Some("run")),
    ] {
        world.asked("everything", method, &path, &body).await.ok();
        for (of, user) in DENIED {
            let expected = if Some(of) == tier { 403 } else { 200 };
            let status = world.asked(user, method, &path, &body).await.status;
            assert_eq!(status, expected, "{user}: {method} {path} {body}");
        }
    }
}
