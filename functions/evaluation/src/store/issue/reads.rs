//! Reading issues.

use access::Granted;
use entities::documents::content;
use key_schema::rows;
use mlflow_api::issues::Issue;
use mlflow_api::{Error, ExperimentId, IssueId, Result};
use table::{Item, Table};

use super::items::{IssueTexts, StoredIssue, part_key};
use crate::store::Store;

/// Returns an issue, given its compact row. Takes one request, and one more for long texts. For
/// imports and exports, which have no caller whose access to the experiment was checked.
///
/// # Errors
/// Returns an error if the table cannot be read, or the items are invalid.
pub async fn read_issue(table: &Table, item: Item) -> Result<Issue> {
    let stored = StoredIssue::of(item)?;
    let gone = || Error::unavailable("the issue was deleted in the meantime");
    let content = table.get(&stored.content_key()).await?.ok_or_else(gone)?;
    let read = content::read_with_item(table, content, part_key(stored.experiment())).await?;
    let (_, json) = read.ok_or_else(gone)?;
    Ok(stored.response(IssueTexts::read(&json)?, false))
}

impl Store {
    /// Returns an issue. Takes one request, and one more for long texts.
    pub async fn issue_get(&self, experiment: &Granted<ExperimentId>, issue: &IssueId) -> Result<Issue> {
        let (stored, content) = self.issue_items(**experiment, issue).await?;
        let (_, texts) = self.issue_texts(**experiment, content).await?;
        Ok(stored.response(texts, false))
    }

    /// Reads the items of an issue: its compact row, and the item of its texts. Takes one request.
    pub(super) async fn issue_items(&self, experiment: ExperimentId, issue: &IssueId) -> Result<(StoredIssue, Item)> {
        let keys = [rows::Issue::key(&experiment, issue), rows::IssueContent::key(&experiment, issue)];
        let mut found = self.table.get_many(&keys).await?;
        let [item, content] = keys.map(|key| found.remove(&key));
        match (item, content) {
            (Some(item), Some(content)) => Ok((StoredIssue::of(item)?, content)),
            (None, _) => Err(IssueId::not_found(issue.as_str())),
            (Some(_), None) => Err(Error::internal("the texts of an issue are missing")),
        }
    }

    /// Reads the texts in an item. Returns them with the item that they belong to, which is newer
    /// than the given one if the texts have changed since it was read. Takes no request unless the
    /// texts are long.
    pub(super) async fn issue_texts(&self, experiment: ExperimentId, item: Item) -> Result<(Item, IssueTexts)> {
        let read = content::read_with_item(&self.table, item, part_key(experiment)).await?;
        let (item, json) = read.ok_or_else(|| Error::unavailable("the issue was deleted in the meantime"))?;
        Ok((item, IssueTexts::read(&json)?))
    }
}
