//! The calls to endpoints that a query makes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use access::Identity;
use apollo_compiler::resolvers::FieldError;
use apollo_compiler::response::JsonValue;
use apollo_compiler::response::serde_json_bytes::json;
use mlflow_api::{Error, ErrorCode, Request, response_size};
use service::{EndpointResponse, InternalCalls};
use tokio::sync::OnceCell;

use crate::query_limits;
use crate::root_endpoints;

/// Weight of a field in bytes, in addition to its text.
const FIELD_WEIGHT: usize = 32;
/// The root field whose endpoint returns the model versions of runs.
const MODEL_VERSIONS_FIELD: &str = "mlflowSearchModelVersions";

/// A result that several objects of a response contain, either an experiment or the model versions
/// of a run. It is read once per query, no matter how often the query selects it.
type SharedResult = Arc<OnceCell<Result<Arc<JsonValue>, String>>>;

/// The endpoint calls of one query. All of them are made on behalf of the query's caller.
pub(crate) struct EndpointCalls {
    calls: Arc<InternalCalls>,
    identity: Identity,
    arguments: Vec<(String, String)>,
    shared_results: Mutex<HashMap<(&'static str, String), SharedResult>>,
    runs_with_versions: AtomicUsize,
    weight: AtomicUsize,
    read_bytes: AtomicUsize,
}

impl EndpointCalls {
    /// Returns an object that makes calls on behalf of a caller. Endpoints receive `arguments` in
    /// addition to their input.
    pub(crate) fn new(calls: Arc<InternalCalls>, identity: Identity, arguments: Vec<(String, String)>) -> Self {
        Self {
            calls,
            identity,
            arguments,
            shared_results: Mutex::default(),
            runs_with_versions: AtomicUsize::new(0),
            weight: AtomicUsize::new(0),
            read_bytes: AtomicUsize::new(0),
        }
    }

    /// Calls an endpoint with an input that has been checked against the schema. Makes the requests
    /// that the endpoint makes.
    pub(crate) async fn call(&self, endpoint: &str, input: &JsonValue) -> Result<JsonValue, FieldError> {
        self.answer(endpoint, input).await.map_err(|error| {
            if error.code.http_status() >= 500 {
                tracing::error!(%error, endpoint, "call failed");
            }
            failure(&error.message)
        })
    }

    async fn answer(&self, endpoint: &str, input: &JsonValue) -> mlflow_api::Result<JsonValue> {
        let too_long = || response_size::too_long("The data that the query reads", query_limits::MAX_READ_BYTES);
        // If the limit has been exceeded, the query fails, so further calls are skipped.
        if self.read_bytes.load(Ordering::Relaxed) > query_limits::MAX_READ_BYTES {
            return Err(too_long());
        }
        let Some(call) = self.calls.get(endpoint) else {
            return Err(Error::new(ErrorCode::NotImplemented, "This field of the schema is not implemented."));
        };
        let request = Request {
            method: "POST".to_owned(),
            query: self.arguments.clone(),
            content_type: Some("application/json".to_owned()),
            body: serde_json::to_vec(input).map_err(Error::internal)?,
            is_typed: true,
            ..Request::default()
        };
        match call(self.identity.clone(), request).await? {
            EndpointResponse::Json(json) => {
                if self.read_bytes.fetch_add(json.len(), Ordering::Relaxed) + json.len() > query_limits::MAX_READ_BYTES
                {
                    return Err(too_long());
                }
                serde_json::from_slice(&json).map_err(Error::internal)
            }
            _ => Err(Error::internal(format!("{endpoint} does not return JSON"))),
        }
    }

    /// Returns an experiment by id.
    pub(crate) async fn experiment(&self, id: &str) -> Result<Arc<JsonValue>, FieldError> {
        self.read_once("mlflowGetExperiment", id, json!({ "experimentId": id }), "experiment").await
    }

    /// Reads the model versions of several runs in advance, in one call. Takes one request per run,
    /// and one per 100 versions. If the versions exceed one page or the call fails, nothing is
    /// cached, and [`EndpointCalls::model_versions`] later reads the versions of each run
    /// separately.
    pub(crate) async fn read_model_versions(&self, runs: &[&str]) {
        // The ids can be quoted without escaping, because they were returned by an endpoint and
        // contain no quotes.
        let list = runs.iter().map(|run| format!("'{run}'")).collect::<Vec<_>>().join(",");
        let input = json!({ "filter": format!("run_id IN ({list})") });
        let Ok(mut answer) =
            self.answer(root_endpoints::endpoint(MODEL_VERSIONS_FIELD).unwrap_or_default(), &input).await
        else {
            return;
        };
        if answer.get("next_page_token").is_some() {
            return;
        }
        let versions = answer.get_mut("model_versions").and_then(JsonValue::as_array_mut).map(std::mem::take);
        let mut of_runs: HashMap<String, Vec<JsonValue>> = HashMap::new();
        for version in versions.unwrap_or_default() {
            let run = version.get("run_id").and_then(JsonValue::as_str).unwrap_or_default().to_owned();
            of_runs.entry(run).or_default().push(version);
        }
        for run in runs {
            let versions = of_runs.remove(*run).map_or(JsonValue::Null, JsonValue::Array);
            // If a value was cached in the meantime, it is kept, and the new one is dropped.
            let _ = self.shared_result(MODEL_VERSIONS_FIELD, run).set(Ok(Arc::new(versions)));
        }
    }

    /// Returns the model versions that a run created.
    pub(crate) async fn model_versions(&self, run: &str) -> Result<Arc<JsonValue>, FieldError> {
        // The id can be quoted without escaping, because it was returned by an endpoint and
        // contains no quotes.
        let input = json!({ "filter": format!("run_id='{run}'") });
        self.read_once(MODEL_VERSIONS_FIELD, run, input, "model_versions").await
    }

    async fn read_once(
        &self,
        root: &'static str,
        id: &str,
        input: JsonValue,
        field: &str,
    ) -> Result<Arc<JsonValue>, FieldError> {
        let cell = self.shared_result(root, id);
        let read = async {
            let endpoint = root_endpoints::endpoint(root).unwrap_or_default();
            let answer = self.call(endpoint, &input).await.map_err(|error| error.message)?;
            if answer.get("next_page_token").is_some() {
                return Err(format!("'{id}' has more results of '{root}' than fit into one response."));
            }
            Ok(Arc::new(answer.get(field).cloned().unwrap_or_default()))
        };
        cell.get_or_init(|| read).await.clone().map_err(|message| failure(&message))
    }

    fn shared_result(&self, root: &'static str, id: &str) -> SharedResult {
        let mut followed = self.shared_results.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(followed.entry((root, id.to_owned())).or_default())
    }

    /// Counts runs whose model versions the query selects. Returns `false` if there are too many
    /// such runs.
    pub(crate) fn count_runs_with_versions(&self, runs: usize) -> bool {
        self.runs_with_versions.fetch_add(runs, Ordering::Relaxed) + runs <= query_limits::MAX_RUNS_WITH_VERSIONS
    }

    /// Adds a field whose text has `bytes` bytes to the weight of the response. Returns `false` if
    /// the response is too large.
    pub(crate) fn add_weight(&self, bytes: usize) -> bool {
        let before = self.weight.fetch_add(FIELD_WEIGHT + bytes, Ordering::Relaxed);
        before + FIELD_WEIGHT + bytes <= query_limits::MAX_RESPONSE_WEIGHT
    }

    /// Checks whether the response was too large, and is therefore incomplete.
    pub(crate) fn is_too_heavy(&self) -> bool {
        self.weight.load(Ordering::Relaxed) > query_limits::MAX_RESPONSE_WEIGHT
    }
}

/// Returns the error for a field that could not be resolved.
pub(crate) fn failure(message: &str) -> FieldError {
    FieldError { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_versions_are_counted_over_the_whole_query() {
        let requests = EndpointCalls::new(Arc::default(), Identity::anonymous(), Vec::new());
        assert!(
            requests.count_runs_with_versions(query_limits::MAX_RUNS_WITH_VERSIONS - 1)
                && requests.count_runs_with_versions(1)
        );
        assert!(!requests.count_runs_with_versions(1));
    }

    #[tokio::test]
    async fn nothing_is_read_any_more_once_it_was_too_much() {
        let requests = EndpointCalls::new(Arc::default(), Identity::anonymous(), Vec::new());
        let code = async || requests.answer("nothing", &json!({})).await.unwrap_err().code;
        assert_eq!(code().await, ErrorCode::NotImplemented);
        requests.read_bytes.store(query_limits::MAX_READ_BYTES + 1, Ordering::Relaxed);
        assert_eq!(code().await, response_size::too_long("", 0).code);
    }
}
