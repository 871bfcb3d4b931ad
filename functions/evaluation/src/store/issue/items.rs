//! The items of issues.

use entities::attributes::{
    CATEGORIES, CREATED, CREATED_BY, ISSUE_STATUS, LAST_SEEN, NAME, SEVERITY, SOURCE_RUN, UPDATED, UPDATED_BY,
};
use entities::documents::content::{self, PackedContent};
use entities::unreadable;
use key_schema::{Key, Ordinal, WideDigest, rows};
use mlflow_api::issues::{Issue, IssueSeverity, IssueStatus, MAX_CONTENT_BYTES, Metadata, folded_category};
use mlflow_api::{Error, ErrorCode, ExperimentId, IssueId, Result};
use search::IssueFields;
use serde::{Deserialize, Serialize};
use table::Item;

/// The long texts of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IssueTexts {
    pub(super) description: String,
    pub(super) root_causes: Vec<String>,
    pub(super) metadata: Metadata,
}

impl IssueTexts {
    /// Packs the texts of an issue.
    ///
    /// # Errors
    /// Returns an error if the texts are too long.
    pub(super) fn pack(&self, experiment: ExperimentId, issue: &IssueId) -> Result<PackedContent> {
        let json = serde_json::to_string(self).map_err(Error::internal)?;
        if json.len() > MAX_CONTENT_BYTES {
            let message = format!(
                "The description, root causes and metadata of an issue have at most {MAX_CONTENT_BYTES} bytes."
            );
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        Ok(content::pack_once(issue.as_str(), &json, content::MAX_INLINE_BYTES, part_key(experiment)))
    }

    /// Parses the texts of an issue.
    pub(super) fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|_| Error::internal("the texts of an issue cannot be read"))
    }
}

/// Returns a function that computes the keys of the parts into which texts are divided that are too
/// long for their item.
pub fn part_key(experiment: ExperimentId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    move |content, part| rows::IssuePart::key(&experiment, content, part)
}

/// Returns the stored form of categories: a JSON array.
pub(super) fn categories_text(categories: &[String]) -> Result<String> {
    serde_json::to_string(categories).map_err(Error::internal)
}

/// An issue with the fields that its compact row contains.
#[derive(Clone, Debug)]
pub(super) struct StoredIssue {
    experiment: ExperimentId,
    id: IssueId,
    pub(super) item: Item,
    status: IssueStatus,
    severity: Option<IssueSeverity>,
    categories: Vec<String>,
    traces: i64,
}

impl StoredIssue {
    /// Reads an issue from its row.
    ///
    /// # Errors
    /// Returns an internal error if the row is invalid.
    pub(super) fn of(item: Item) -> Result<Self> {
        let unreadable = || unreadable(&item, "an issue");
        let row = item.key().as_ref().and_then(rows::Issue::parse).ok_or_else(unreadable)?;
        let status = item.get(ISSUE_STATUS).and_then(IssueStatus::from_name).ok_or_else(unreadable)?;
        let severity = match item.get(SEVERITY) {
            None => None,
            Some(name) => Some(IssueSeverity::from_name(name).ok_or_else(unreadable)?),
        };
        let categories = match item.get(CATEGORIES) {
            None => Vec::new(),
            Some(json) => serde_json::from_str(json).map_err(|_| unreadable())?,
        };
        Ok(Self { experiment: row.experiment, id: row.issue, item, status, severity, categories, traces: 0 })
    }

    /// Sets the number of traces that exhibit the issue.
    pub(super) fn with_traces(self, traces: i64) -> Self {
        Self { traces: traces.max(0), ..self }
    }

    /// Returns the experiment of the issue.
    pub(super) const fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    /// Returns the key of the item with the issue's long texts.
    pub(super) fn content_key(&self) -> Key {
        rows::IssueContent::key(&self.experiment, &self.id)
    }

    /// Returns the issue in the form of a response.
    pub(super) fn response(&self, texts: IssueTexts, has_count: bool) -> Issue {
        let text = |attribute| self.item.get(attribute).map(str::to_owned);
        Issue {
            issue_id: self.id.to_string(),
            experiment_id: self.experiment.to_string(),
            name: text(NAME).unwrap_or_default(),
            description: texts.description,
            status: self.status,
            severity: self.severity,
            root_causes: texts.root_causes,
            source_run_id: text(SOURCE_RUN),
            created_timestamp: self.created(),
            last_updated_timestamp: self.updated(),
            created_by: text(CREATED_BY),
            categories: self.categories.clone(),
            trace_count: has_count.then_some(self.traces),
            last_seen_timestamp: self.last_seen(),
            last_updated_by: text(UPDATED_BY),
            metadata: texts.metadata,
        }
    }
}

impl IssueFields for StoredIssue {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn name(&self) -> &str {
        self.item.get(NAME).unwrap_or_default()
    }

    fn status(&self) -> IssueStatus {
        self.status
    }

    fn severity(&self) -> Option<IssueSeverity> {
        self.severity
    }

    fn source_run(&self) -> Option<&str> {
        self.item.get(SOURCE_RUN)
    }

    fn created(&self) -> i64 {
        self.item.get(CREATED).unwrap_or_default()
    }

    fn updated(&self) -> i64 {
        self.item.get(UPDATED).unwrap_or_default()
    }

    fn last_seen(&self) -> i64 {
        self.item.get(LAST_SEEN).unwrap_or_default()
    }

    fn has_category(&self, folded: &[String]) -> bool {
        self.categories.iter().any(|category| folded.contains(&folded_category(category)))
    }

    fn trace_count(&self) -> i64 {
        self.traces
    }
}
