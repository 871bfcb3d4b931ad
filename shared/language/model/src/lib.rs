//! The terms of MLflow that all crates share: ids, statuses and stages, workspaces, and errors.
//!
//! Each kind of id has one grammar, and is parsed before it is used in a key. An [`Error`] has two
//! texts: the message for the client, and the cause for the log. The messages of MLflow's API are
//! in `mlflow-api`, which re-exports these types. `key-schema` and `table` depend on this crate,
//! but not on the messages.

mod error;
mod ids;
mod ids_archive;
mod ids_evaluation;
mod ids_mcp;
mod ids_registry;
mod ids_review;
mod ids_skill;
mod ids_trace;
mod ids_user;
mod ids_webhook;
pub mod python;
mod stages;
mod workspace;

pub use error::{Error, ErrorBody, ErrorCode, Result};
pub use ids::{ExperimentId, ModelId, RunId};
pub use ids_archive::ArchiveObject;
pub use ids_evaluation::{DatasetRecordId, EvaluationDatasetId, ScorerId};
pub use ids_mcp::{McpServerName, McpVersion};
pub use ids_registry::RegisteredModelName;
pub use ids_review::{IssueId, LabelSchemaId, ReviewQueueId};
pub use ids_skill::SkillName;
pub use ids_trace::{AssessmentId, TraceId};
pub use ids_user::UserName;
pub use ids_webhook::{WebhookEventId, WebhookId};
pub use stages::{LifecycleStage, ModelStage, RunStatus, TraceState};
pub use workspace::Workspace;
