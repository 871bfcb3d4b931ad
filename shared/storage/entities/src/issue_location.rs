//! Locations of issues.

use key_schema::rows;
use mlflow_api::{ExperimentId, IssueId, Result};
use table::Table;

use crate::attributes::EXPERIMENT;

/// Returns the experiment of the issue with an id. Takes no request for an id in this server's
/// format, and one request for any other ID. Returns `None` if no issue has such an id. Otherwise,
/// the issue may not exist either, which only reading it shows.
pub async fn locate_issue(table: &Table, issue: &IssueId) -> Result<Option<ExperimentId>> {
    if let Some(experiment) = issue.experiment() {
        return Ok(Some(experiment));
    }
    let row = table.get(&rows::IssueLocation::key(issue)).await?;
    Ok(row.and_then(|row| row.get(EXPERIMENT)))
}
