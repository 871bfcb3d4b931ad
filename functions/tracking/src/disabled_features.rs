//! Endpoints of features that this server does not have: the AI gateway, jobs, prompt optimization,
//! and the Assistant. They respond as MLflow does if the feature is switched off, so that clients
//! and pages show the reason. Requests that the UI sends without an action of the user have empty
//! responses instead ([`crate::ui_placeholders`]). The endpoints of issue detection are in the
//! function `evaluation`.
//!
//! The requests are not parsed, because no request would succeed. If MLflow would reject a request
//! as invalid before it checks whether the feature is switched on, these endpoints still respond
//! that the feature is switched off.

use mlflow_api::ErrorCode;
use service::Paths::{AjaxV3, ApiV3, Bare, V3};
use service::{Paths, Refusal, Route};

use crate::store::Store;

/// The response of the AI gateway's endpoints, as in MLflow with `MLFLOW_ENABLE_AI_GATEWAY=false`.
const GATEWAY: Refusal = Refusal::new(
    ErrorCode::NotImplemented,
    "The AI Gateway feature is disabled. Set MLFLOW_ENABLE_AI_GATEWAY=true to enable it.",
    "disabled: there is no AI gateway",
);

/// The response to requests about a job. There are no jobs, so no id exists.
const JOB: Refusal = Refusal::new(
    ErrorCode::ResourceDoesNotExist,
    "Job with ID {job_id} not found",
    "disabled: the server runs no jobs, so none is found",
);

/// The response of the Assistant's endpoints, as in MLflow to a client on another host.
const ASSISTANT: Refusal = Refusal::new(
    ErrorCode::PermissionDenied,
    "Assistant API is only accessible from the same host where the MLflow server is running.",
    "disabled: the Assistant runs programs on the server's host",
)
.in_fastapi();

const GATEWAY_ENDPOINTS: [(&str, &str, Paths); 40] = [
    ("POST", "gateway/budgets/create", V3),
    ("DELETE", "gateway/budgets/delete", V3),
    ("GET", "gateway/budgets/get", V3),
    ("GET", "gateway/budgets/list", V3),
    ("POST", "gateway/budgets/update", V3),
    ("GET", "gateway/budgets/windows", V3),
    ("POST", "gateway/endpoints/bindings/create", V3),
    ("DELETE", "gateway/endpoints/bindings/delete", V3),
    ("GET", "gateway/endpoints/bindings/list", ApiV3),
    ("POST", "gateway/endpoints/create", V3),
    ("DELETE", "gateway/endpoints/delete", V3),
    ("DELETE", "gateway/endpoints/delete-tag", V3),
    ("GET", "gateway/endpoints/get", V3),
    ("GET", "gateway/endpoints/list", ApiV3),
    ("POST", "gateway/endpoints/models/attach", V3),
    ("POST", "gateway/endpoints/models/detach", V3),
    ("POST", "gateway/endpoints/set-tag", V3),
    ("POST", "gateway/endpoints/update", V3),
    ("POST", "gateway/guardrails/add-to-endpoint", V3),
    ("POST", "gateway/guardrails/create", V3),
    ("DELETE", "gateway/guardrails/delete", V3),
    ("GET", "gateway/guardrails/get", V3),
    ("GET", "gateway/guardrails/list", V3),
    ("GET", "gateway/guardrails/list-for-endpoint", V3),
    ("DELETE", "gateway/guardrails/remove-from-endpoint", V3),
    ("PATCH", "gateway/guardrails/update-config", V3),
    ("POST", "gateway/model-definitions/create", V3),
    ("DELETE", "gateway/model-definitions/delete", V3),
    ("GET", "gateway/model-definitions/get", V3),
    ("GET", "gateway/model-definitions/list", ApiV3),
    ("POST", "gateway/model-definitions/update", V3),
    ("GET", "gateway/provider-config", AjaxV3),
    ("GET", "gateway/secrets/config", AjaxV3),
    ("POST", "gateway/secrets/create", V3),
    ("DELETE", "gateway/secrets/delete", V3),
    ("GET", "gateway/secrets/get", V3),
    ("GET", "gateway/secrets/list", ApiV3),
    ("POST", "gateway/secrets/update", V3),
    ("GET", "gateway/supported-models", AjaxV3),
    ("GET", "gateway/supported-providers", AjaxV3),
];

/// Endpoints at which clients of language models call the gateway. MLflow serves them with
/// `FastAPI`, so their errors have its format.
const GATEWAY_CALLS: [(&str, &str); 11] = [
    ("POST", "/gateway/anthropic/v1/messages"),
    // The last segment is the name of the model, followed by `:generateContent` or
    // `:streamGenerateContent`.
    ("POST", "/gateway/gemini/v1beta/models/{endpoint_name}"),
    ("POST", "/gateway/mlflow/v1/chat/completions"),
    ("GET", "/gateway/mlflow/v1/models"),
    ("POST", "/gateway/openai/v1/chat/completions"),
    ("POST", "/gateway/openai/v1/embeddings"),
    ("POST", "/gateway/openai/v1/responses"),
    ("POST", "/gateway/openai/v1/responses/compact"),
    ("POST", "/gateway/proxy/{endpoint_name}/{*path}"),
    ("POST", "/gateway/typesafe/v1/systemone"),
    ("POST", "/gateway/{endpoint_name}/mlflow/invocations"),
];

const ASSISTANT_ENDPOINTS: [(&str, &str); 9] = [
    ("PUT", "assistant/config"),
    ("POST", "assistant/message"),
    ("GET", "assistant/providers/{provider}/health"),
    ("GET", "assistant/providers/{provider}/models"),
    ("PATCH", "assistant/sessions/{session_id}"),
    ("POST", "assistant/sessions/{session_id}/permission"),
    ("GET", "assistant/sessions/{session_id}/stream"),
    ("POST", "assistant/sessions/{session_id}/tool-result"),
    ("POST", "assistant/skills/install"),
];

const JOB_ENDPOINTS: [(&str, &str, Paths, Refusal); 11] = [
    ("POST", "/ajax-api/3.0/jobs/", Bare, Refusal::JOBS.in_fastapi()),
    ("GET", "/ajax-api/3.0/jobs/{job_id}", Bare, JOB.in_fastapi()),
    ("PATCH", "/ajax-api/3.0/jobs/cancel/{job_id}", Bare, JOB.in_fastapi()),
    ("GET", "jobs/{job_id}", AjaxV3, JOB),
    ("PATCH", "jobs/cancel/{job_id}", AjaxV3, JOB),
    ("POST", "genai/evaluate/invoke", AjaxV3, Refusal::JOBS),
    ("POST", "scorer/invoke", AjaxV3, Refusal::JOBS),
    ("POST", "prompt-optimization/jobs", V3, Refusal::JOBS),
    ("GET", "prompt-optimization/jobs/{job_id}", V3, JOB),
    ("DELETE", "prompt-optimization/jobs/{job_id}", V3, JOB),
    ("POST", "prompt-optimization/jobs/{job_id}/cancel", V3, JOB),
];

/// Returns the routes of features that are switched off.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    let gateway = GATEWAY_ENDPOINTS.into_iter().map(|(method, path, paths)| (method, path, paths, GATEWAY));
    let calls = GATEWAY_CALLS.into_iter().map(|(method, path)| (method, path, Bare, GATEWAY.in_fastapi()));
    let assistant = ASSISTANT_ENDPOINTS.into_iter().map(|(method, path)| (method, path, AjaxV3, ASSISTANT));
    let refused = gateway.chain(calls).chain(assistant).chain(JOB_ENDPOINTS);
    let refused = refused.map(|(method, path, paths, refusal)| {
        let route = Route::refused(method, path, paths, refusal);
        match (method, path) {
            // For other methods, `search` is the path of a search.
            ("GET", "/ajax-api/3.0/jobs/{job_id}") | ("DELETE", "prompt-optimization/jobs/{job_id}") => {
                route.with_word_in("job_id", "search")
            }
            _ => route,
        }
    });
    let lists = [
        // Searches of jobs have an empty result.
        Route::json("POST", "/ajax-api/3.0/jobs/search", Bare, r#"{"jobs":[]}"#),
        Route::json("GET", "prompt-optimization/jobs/search", V3, "{}"),
        Route::json("POST", "prompt-optimization/jobs/search", V3, "{}"),
    ];
    refused.chain(lists).collect()
}
