//! Logged models, with params, tags and metrics.

mod database_reader;
mod exporter;
mod id_remapping;
mod importer;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use id_remapping::remap_ids;
pub(crate) use importer::{import, verify};
use record::{ModelPointRecord, ModelRecord};

/// Name of logged models in reports.
const KIND: &str = "logged models";
