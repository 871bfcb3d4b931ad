//! The interface of MLflow's REST API: request messages, response types and limits.
//!
//! This crate does no I/O and does not depend on the table. Each message is declared once, with
//! `messages!` in `requests/`. The declaration contains its fields, their types, and MLflow's
//! checks in MLflow's order. Ids, stages and errors are defined in the crate `model` and
//! re-exported here. `auth.rs` contains the types and levels of grants.
//!
//! Surprising behaviour of MLflow is reproduced deliberately, because stock clients and their tests
//! rely on it. It is verified by comparison with the real server.

pub mod artifact_path;
pub mod assessments;
pub mod auth;
pub mod checks;
pub mod content_disposition;
pub mod evaluation_datasets;
mod experiment_tag_formats;
pub mod fields;
pub mod inputs;
pub mod issues;
pub mod json;
pub mod key_value;
pub mod label_schemas;
pub mod limits;
pub mod limits_registry;
pub mod location;
pub mod logged_models;
pub mod mcp_servers;
pub mod message;
pub mod proto_json;
pub mod registry;
mod request;
pub mod requests;
pub mod response_size;
pub mod review_queues;
pub mod scorers;
pub mod skills;
mod trace_archival;
pub mod trace_metrics;
mod trace_retention;
pub mod traces;
pub mod tracking;
pub mod webhooks;

pub use json::Json;
pub use model::{
    ArchiveObject, AssessmentId, DatasetRecordId, Error, ErrorBody, ErrorCode, EvaluationDatasetId, ExperimentId,
    IssueId, LabelSchemaId, McpServerName, McpVersion, ModelId, RegisteredModelName, Result, ReviewQueueId, RunId,
    ScorerId, SkillName, TraceId, UserName, WebhookEventId, WebhookId, Workspace, python,
};
pub use request::Request;
pub use trace_archival::{ARCHIVAL_RETENTION_TAG, ARCHIVE_NOW_TAG, ArchivalRetention, ArchiveNow};
pub use trace_retention::{TRACE_RETENTION_TAG, TraceRetention};
