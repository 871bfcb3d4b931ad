//! Writes settings of a single experiment, which are stored as tags of the experiment.
//! Tags are written by calling the API endpoint for experiment tags within this process.

use std::sync::Arc;

use access::AllowAll;
use artifact_store::ArtifactStore;
use axum::body::Body;
use domain::{Domain, Environment};
use domains::DOMAINS;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use mlflow_api::{ExperimentId, TRACE_RETENTION_TAG};
use serde_json::{Value, json};
use table::Table;
use tower::ServiceExt;

use crate::Failure;

/// Placeholder for the artifact location that the API requires. Setting a tag does not use it.
const PLACEHOLDER_ARTIFACT_ROOT: &str = "mlflow-artifacts:/";

/// Sets the tag, or deletes it if `value` is `None`.
///
/// # Errors
/// The experiment does not exist or is deleted. The message is that of the API.
pub(super) async fn set(table: &Table, experiment: ExperimentId, value: Option<&str>) -> Result<(), Failure> {
    let mut body = json!({ "experiment_id": experiment.to_string(), "key": TRACE_RETENTION_TAG });
    let call = match value {
        Some(value) => {
            body["value"] = value.into();
            "set-experiment-tag"
        }
        None => "delete-experiment-tag",
    };
    let around = Environment::new(Arc::new(AllowAll), table.clone());
    let around = around.with_artifacts(PLACEHOLDER_ARTIFACT_ROOT, ArtifactStore::default());
    let is_tracking = |domain: &&Domain| domain.function.name == "tracking";
    let tracking: Vec<_> = DOMAINS.into_iter().filter(is_tracking).collect();
    let app = domain::mount(&tracking, &[], &around).await?;
    let request = Request::post(format!("/api/2.0/mlflow/experiments/{call}"));
    let request = request.header("content-type", "application/json").body(Body::from(body.to_string()))?;
    let answer = app.oneshot(request).await?;
    let status = answer.status();
    if status == StatusCode::OK {
        return Ok(());
    }
    let said = answer.into_body().collect().await?.to_bytes();
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    Err(said["message"].as_str().map_or_else(|| status.to_string(), str::to_owned).into())
}
