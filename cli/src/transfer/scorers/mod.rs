//! Scorers, their versions, and on which traces they run.
//!
//! Ids of scorers contain their experiment, so that those of MLflow are replaced ([`record::scorer_id`]).

mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{OnlineConfigRecord, ScorerRecord, ScorerVersionRecord, scorer_id};

/// Name of this kind of entity in reports.
const KIND: &str = "scorers";
