//! Webhooks with their events. Secrets are imported if both keys are given: the one with which MLflow
//! has encrypted them, and that of this server. Exports never contain secrets.

mod database_reader;
mod exporter;
mod importer;
mod record;

pub(crate) use exporter::export;
pub(crate) use importer::{check_keys, import, verify};
use record::WebhookRecord;

/// Name of this kind of entity in reports.
const KIND: &str = "webhooks";
/// Name of secrets that cannot be imported in reports.
const SECRETS_KIND: &str = "secrets of webhooks";
