//! Request messages (`service.proto`), each declared once: fields, types, and checks in MLflow's order.

pub mod artifacts;
pub mod evaluation_datasets;
pub mod experiments;
pub mod logged_models;
pub mod logging;
pub mod metrics;
pub mod registry;
pub mod runs;
pub mod scorers;
pub mod traces;
pub mod workspaces;
