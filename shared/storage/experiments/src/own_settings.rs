//! What the settings of a table say of single experiments.

use entities::fields;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Query, Result, Table};

use crate::TraceSetting;

/// Forgets an experiment that is being removed for good. One request, and one for each setting that
/// names it.
///
/// # Errors
/// Those of the table, and [`table::Failure::Unreadable`] for a setting that cannot be read.
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
