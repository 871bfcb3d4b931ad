//! Traces, with spans, tags, metadata, assessments, and links to runs and prompts.
//!
//! | file | what it is for |
//! |---|---|
//! | `record.rs` | a trace of an MLflow database |
//! | `database_reader.rs`, `usage_columns.rs`, `assessment_rows.rs` | read traces from the source, without spans |
//! | `span_reader.rs`, `span_files.rs` | read spans from rows, and from files |
//! | `planner.rs`, `importer.rs`, `verifier.rs` | decide about traces, write and compare them |
//! | `table_reader.rs` | reads traces back |
//! | `exporter.rs`, `exported_rows.rs` | write rows of an MLflow database |

mod assessment_rows;
mod database_reader;
mod exported_rows;
mod exporter;
mod importer;
mod planner;
mod record;
mod span_files;
mod span_reader;
mod table_reader;
mod usage_columns;
mod verifier;

pub(crate) use exporter::export;
pub(crate) use importer::import;
pub(crate) use verifier::verify;

/// Name of traces in reports.
const KIND: &str = "traces";
/// Name of the spans of a trace in reports.
const SPANS_KIND: &str = "spans of traces";
/// Name of assessments in reports.
const ASSESSMENTS_KIND: &str = "assessments";
