//! Experiments and their tags.
//!
//! An experiment is imported in two steps: [`records`] reads it and decides about its id, and
//! [`publish`] writes its document after everything that belongs to it.

mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use importer::{publish, records, verify};
pub(crate) use record::{ExperimentRecord, ExportedExperiment, ImportedExperiment};

/// Name of experiments in reports.
const KIND: &str = "experiments";
