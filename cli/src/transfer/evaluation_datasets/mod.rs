//! Evaluation datasets and their records.
//!
//! Datasets keep their ids. An id of this server begins with the creation time, and an id of MLflow
//! does not, so an imported dataset has its creation time as an attribute. Records get ids of this
//! server, because records are read in the order of their ids ([`record::record_id`]).
//!
//! A dataset may have hundreds of thousands of records. They are never in memory all at once: the
//! fingerprint of a dataset contains a sum over them ([`RecordSum`]).

mod database_reader;
mod exporter;
mod importer;
mod record;
mod stale_items;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{DatasetRecord, EvaluationDataset, RecordSum, record_id};

/// Name of evaluation datasets in reports.
const KIND: &str = "evaluation datasets";
/// Name of the records of datasets in reports.
const RECORD_KIND: &str = "records of evaluation datasets";
