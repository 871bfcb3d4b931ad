//! Runs, with params, tags, metric histories, and the datasets and models that they read or wrote.
//!
//! | file | what it is for |
//! |---|---|
//! | `record.rs` | a run of an MLflow database; of its metrics, only counts and checksums |
//! | `database_reader.rs`, `metric_reader.rs` | read runs and points from the source, in bounded batches |
//! | `id_remapping.rs` | chooses other ids for runs whose ids are taken |
//! | `importer.rs`, `dataset_importer.rs` | write items |
//! | `table_reader.rs` | reads runs back, for verification, changes and export |
//! | `exporter.rs` | writes rows of an MLflow database |

mod database_reader;
mod dataset_importer;
mod exporter;
mod id_remapping;
mod importer;
mod metric_reader;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use id_remapping::remap_ids;
pub(crate) use importer::{import, verify};
use record::{MetricSummary, RunRecord};

/// Name of runs in reports.
const KIND: &str = "runs";
