//! Registered models and prompts, with versions, aliases and tags.
//!
//! A model's versions are written before its document. They are in the partition of the model's
//! home. This is the partition of its name, unless another model had the name before.

mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;
mod version_locations;

pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{RegisteredModelRecord, VersionRecord};
pub(crate) use version_locations::VersionLocations;

/// Names of registered models and their versions in reports.
const KIND: &str = "registered models";
const VERSION_KIND: &str = "model versions";
