//! The shape of MLflow's REST API: request messages, response types, error codes, ids, limits.
//!
//! Nothing here does I/O or knows the table. A message is declared once, with `messages!` in
//! `requests/`: its fields, their types, and MLflow's checks in MLflow's order. An `Error` has two
//! texts: the message for the client and the cause for the log. `error.rs` has all error codes,
//! `auth.rs` the types and levels of grants. If MLflow's behaviour surprises, the surprise is
//! deliberate: stock clients and their tests rely on it, and a comparison with the real server pins
//! it.

pub mod answer_size;
pub mod artifact_path;
pub mod assessments;
pub mod auth;
pub mod checks;
mod error;
pub mod evaluation_datasets;
pub mod fields;
mod ids;
mod ids_evaluation;
mod ids_registry;
mod ids_trace;
mod ids_user;
pub mod inputs;
pub mod json;
pub mod key_value;
pub mod limits;
pub mod limits_registry;
mod limits_trace;
pub mod location;
pub mod logged_models;
pub mod message;
pub mod proto_json;
pub mod python;
pub mod registry;
mod request;
pub mod requests;
pub mod scorers;
pub mod trace_metrics;
mod trace_retention;
pub mod traces;
pub mod tracking;
mod workspace;

pub use error::{Error, ErrorBody, ErrorCode, Result};
pub use ids::{ExperimentId, ModelId, RunId};
pub use ids_evaluation::{DatasetRecordId, EvaluationDatasetId, ScorerId};
pub use ids_registry::RegisteredModelName;
pub use ids_trace::{AssessmentId, TraceId};
pub use ids_user::UserName;
pub use json::Json;
pub use request::Request;
pub use trace_retention::{TRACE_RETENTION_TAG, TraceRetention};
pub use workspace::Workspace;
