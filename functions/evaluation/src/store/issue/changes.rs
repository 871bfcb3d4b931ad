//! Changing issues.

use access::Granted;
use entities::attributes::{CATEGORIES, CHANGES, ISSUE_STATUS, LAST_SEEN, NAME, SEVERITY, UPDATED, UPDATED_BY};
use entities::documents::content;
use entities::now_ms;
use key_schema::rows;
use mlflow_api::issues::{Issue, IssueSeverity, IssueStatus, Metadata, check_metadata};
use mlflow_api::{ExperimentId, IssueId, Result};
use search::IssueFields;
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::items::{IssueTexts, StoredIssue, categories_text, part_key};
use crate::store::Store;

/// A validated change of an issue. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct IssueChange {
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<String>,
    /// New status.
    pub status: Option<IssueStatus>,
    /// New severity.
    pub severity: Option<IssueSeverity>,
    /// New categories.
    pub categories: Option<Vec<String>>,
    /// When the issue was seen, in ms.
    pub last_seen: Option<i64>,
    /// The user who makes the change.
    pub updated_by: Option<String>,
    /// Entries of the metadata to set.
    pub metadata: Metadata,
    /// Keys of the metadata to delete.
    pub deleted_keys: Vec<String>,
}

impl IssueChange {
    /// Returns the update of the compact row of an issue.
    fn update(&self, stored: &StoredIssue, experiment: ExperimentId, issue: &IssueId, now: i64) -> Result<Update> {
        let mut update = Update::new(rows::Issue::key(&experiment, issue))
            .set(UPDATED, number(now))
            .add(CHANGES, number(1))
            .only_if(Condition::unchanged(&stored.item, CHANGES));
        if let Some(name) = &self.name {
            update = update.set(NAME, text(name));
        }
        if let Some(status) = self.status {
            update = update.set(ISSUE_STATUS, text(status.name()));
        }
        if let Some(severity) = self.severity {
            update = update.set(SEVERITY, text(severity.name()));
        }
        if let Some(categories) = &self.categories {
            let mut once: Vec<String> = Vec::new();
            for category in categories {
                if !once.contains(category) {
                    once.push(category.clone());
                }
            }
            update = if once.is_empty() {
                update.remove(CATEGORIES)
            } else {
                update.set(CATEGORIES, text(categories_text(&once)?))
            };
        }
        // The stored time is never replaced by an earlier one.
        if let Some(seen) = self.last_seen.filter(|seen| *seen > stored.last_seen()) {
            update = update.set(LAST_SEEN, number(seen));
        }
        if let Some(user) = &self.updated_by {
            update = update.set(UPDATED_BY, text(user));
        }
        Ok(update)
    }

    /// Returns the texts after the change.
    fn texts(&self, texts: &IssueTexts) -> Result<IssueTexts> {
        let mut metadata = texts.metadata.clone();
        metadata.extend(self.metadata.clone());
        metadata.retain(|key, _| !self.deleted_keys.contains(key));
        check_metadata(&metadata)?;
        Ok(IssueTexts {
            description: self.description.clone().unwrap_or_else(|| texts.description.clone()),
            root_causes: texts.root_causes.clone(),
            metadata,
        })
    }
}

impl Store {
    /// Changes an issue. Takes three requests, and one more per 25 parts of long texts.
    pub async fn issue_update(
        &self,
        experiment: &Granted<ExperimentId>,
        issue: &IssueId,
        change: &IssueChange,
    ) -> Result<Issue> {
        let experiment = **experiment;
        let mut attempts = self.table.attempts("an issue");
        loop {
            attempts.next().await?;
            let (stored, content) = self.issue_items(experiment, issue).await?;
            let (content, texts) = self.issue_texts(experiment, content).await?;
            let changed = change.texts(&texts)?;
            let mut writes = vec![Write::Update(change.update(&stored, experiment, issue, now_ms())?)];
            let (mut new_parts, mut old_parts) = (Vec::new(), Vec::new());
            if changed != texts {
                let packed = changed.pack(experiment, issue)?;
                new_parts = packed.part_keys();
                old_parts = content::part_keys(&content, part_key(experiment));
                let item = packed.on(Item::new(stored.content_key()));
                writes.push(Write::Put(item, Condition::item_exists()));
                self.table.write_many(packed.parts, &[]).await?;
            }
            match self.table.transact(&writes).await {
                Ok(()) => {
                    self.table.write_many(Vec::new(), &old_parts).await?;
                    let (stored, _) = self.issue_items(experiment, issue).await?;
                    return Ok(stored.response(changed, false));
                }
                // Another request has changed the issue concurrently.
                Err(Failure::Cancelled(_)) => self.table.write_many(Vec::new(), &new_parts).await?,
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
