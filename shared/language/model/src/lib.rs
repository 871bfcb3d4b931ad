//! What all crates say in MLflow's terms: ids, statuses and stages, workspaces, errors.
//!
//! Ids have one grammar each, and are parsed before they come near a key. An [`Error`] has two
//! texts: the message for the client and the cause for the log. The messages of MLflow's API are in
//! `mlflow-api`, which hands these types on. `key-schema` and `table` know this crate and no
//! message.

mod error;
mod ids;
mod ids_evaluation;
mod ids_registry;
mod ids_trace;
mod ids_user;
pub mod python;
mod stages;
mod workspace;

pub use error::{Error, ErrorBody, ErrorCode, Result};
pub use ids::{ExperimentId, ModelId, RunId};
pub use ids_evaluation::{DatasetRecordId, EvaluationDatasetId, ScorerId};
pub use ids_registry::RegisteredModelName;
pub use ids_trace::{AssessmentId, TraceId};
pub use ids_user::UserName;
pub use stages::{LifecycleStage, ModelStage, RunStatus, TraceState};
pub use workspace::Workspace;
