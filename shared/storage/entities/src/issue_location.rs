//! Locations of issues.

use key_schema::rows;
use mlflow_api::{ExperimentId, IssueId, Result};
use table::Table;

use crate::attributes::EXPERIMENT;

/// Returns the experiment of the issue with this id, or `None` if it is certain that no such issue
/// exists. Ids that this server generated contain the experiment, so they take no request. Other
/// ids take one request. In both cases, the issue may have been deleted, which is only discovered
/// when it is read.
pub async fn locate_issue(table: &Table, issue: &IssueId) -> Result<Option<ExperimentId>> {
    if let Some(experiment) = issue.experiment() {
        return Ok(Some(experiment));
    }
    let row = table.get(&rows::IssueLocation::key(issue)).await?;
    Ok(row.and_then(|row| row.get(EXPERIMENT)))
}
