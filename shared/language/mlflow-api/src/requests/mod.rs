//! Request messages (`service.proto`). Each message is declared once, with its fields, their types,
//! and the checks in MLflow's order.

pub mod artifacts;
pub mod evaluation_datasets;
pub mod experiments;
pub mod issues;
pub mod label_schemas;
pub mod logged_models;
pub mod logging;
pub mod metrics;
pub mod registry;
pub mod review_queues;
pub mod runs;
pub mod scorers;
pub mod traces;
pub mod webhooks;
pub mod workspaces;
