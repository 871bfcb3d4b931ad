//! Skills, with their versions, tags and aliases.
//!
//! Uploaded content is not copied. Its location may be rewritten by `--artifacts`, like that of other
//! artifacts.

mod content_locations;
mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;

pub(crate) use content_locations::content_locations;
pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{SkillRecord, SkillVersionRecord};

/// Name of this kind of entity in reports.
const KIND: &str = "skills";
