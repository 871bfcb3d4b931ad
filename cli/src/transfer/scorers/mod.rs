//! Scorers, their versions, and their online configurations, which select the traces on which they
//! run automatically.
//!
//! On this server, the id of a scorer contains its experiment, so MLflow's ids are replaced
//! ([`record::scorer_id`]).

mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{OnlineConfigRecord, ScorerRecord, ScorerVersionRecord, scorer_id};

/// Name of scorers in reports.
const KIND: &str = "scorers";
