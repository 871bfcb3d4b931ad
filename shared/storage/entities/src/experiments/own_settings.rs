//! Settings of a table that apply to single experiments.

use crate::fields;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Query, Result, Table};

use crate::trace_retention::TraceSetting;

/// Deletes the settings of an experiment that is being permanently deleted. One request, and one
/// for each setting that mentions the experiment.
///
/// # Errors
/// Returns failures of the table, and [`table::Failure::Unreadable`] if a setting cannot be read.
pub async fn forget_settings(table: &Table, experiment: ExperimentId) -> Result<()> {
    let settings = table.query(Query::of(rows::Config::all())).await?;
    if TraceSetting::among(&settings)?.own.contains(&experiment) {
        TraceSetting::forget(table, experiment).await?;
    }
    if fields::Setting::among(&settings)?.own.contains_key(&experiment) {
        fields::OwnSetting::forget(table, experiment).await?;
    }
    Ok(())
}
