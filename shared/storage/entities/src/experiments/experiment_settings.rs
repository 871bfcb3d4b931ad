//! Settings of a table that apply to single experiments.

use crate::indexed_fields_setting;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Query, Result, Table};

use crate::trace_archival::TraceArchivalSetting;
use crate::trace_retention::TraceRetentionSetting;

/// Deletes the settings of an experiment that is being permanently deleted. Takes one request, and
/// one for each setting that mentions the experiment.
///
/// # Errors
/// Returns failures of the table, and [`table::Failure::Unreadable`] if a setting cannot be read.
pub async fn forget_settings(table: &Table, experiment: ExperimentId) -> Result<()> {
    let settings = table.query(Query::of(rows::Config::all())).await?;
    if TraceRetentionSetting::among(&settings)?.own.contains(&experiment) {
        TraceRetentionSetting::forget(table, experiment).await?;
    }
    if TraceArchivalSetting::among(&settings)?.allowlist.contains(&experiment) {
        TraceArchivalSetting::forget(table, experiment).await?;
    }
    if indexed_fields_setting::IndexedFieldsSetting::among(&settings)?.own.contains_key(&experiment) {
        indexed_fields_setting::ExperimentFieldsSetting::forget(table, experiment).await?;
    }
    Ok(())
}
