//! Creating issues.

use access::Granted;
use entities::attributes::{
    CATEGORIES, CHANGES, CREATED, CREATED_BY, EXPERIMENT, ISSUE_STATUS, LAST_SEEN, NAME, SEVERITY, SOURCE_RUN, UPDATED,
    UPDATED_BY,
};
use entities::{RunLocation, locate_run, now_ms};
use key_schema::rows;
use mlflow_api::issues::{Issue, IssueSeverity, IssueStatus, Metadata};
use mlflow_api::{Error, ErrorCode, ExperimentId, IssueId, Result};
use rand::RngExt;
use table::{Condition, Failure, Item, Write, number, text};

use super::items::{IssueTexts, StoredIssue, categories_text};
use crate::store::Store;

/// A validated issue that is to be created.
#[derive(Clone, Debug)]
pub struct NewIssue {
    /// Id that the client has chosen.
    pub id: Option<IssueId>,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Status.
    pub status: IssueStatus,
    /// Severity.
    pub severity: Option<IssueSeverity>,
    /// Root causes.
    pub root_causes: Vec<String>,
    /// The run that found the issue.
    pub source_run: Option<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// The user who creates the issue.
    pub created_by: Option<String>,
    /// When the issue was last seen, in ms.
    pub last_seen: Option<i64>,
    /// Metadata.
    pub metadata: Metadata,
}

/// The items of an issue.
#[derive(Clone, Debug)]
pub struct IssueItems {
    /// The compact row, which is written last.
    pub item: Item,
    /// The item of the long texts.
    pub content: Item,
    /// The parts of the long texts, which are written first.
    pub parts: Vec<Item>,
    /// The row that claims the id. `None` if the id contains the experiment.
    pub location: Option<Item>,
}

fn taken() -> Error {
    Error::new(ErrorCode::ResourceAlreadyExists, "Issue ID already exists")
}

impl NewIssue {
    /// Creates the items of the issue. `created` and `updated` are the times of its creation and of
    /// its last change, in ms. `updated_by` is the user who last changed it, if the server has
    /// users.
    ///
    /// # Errors
    /// Returns an error if the texts are too long.
    pub fn items(
        &self,
        experiment: ExperimentId,
        issue: &IssueId,
        created: i64,
        (updated, updated_by): (i64, Option<&str>),
    ) -> Result<IssueItems> {
        let packed = self.texts().pack(experiment, issue)?;
        let content = packed.on(Item::new(rows::IssueContent::key(&experiment, issue)));
        let location = Item::new(rows::IssueLocation::key(issue)).with(EXPERIMENT, text(experiment.to_string()));
        let item = self.row(experiment, issue, created)?.with(UPDATED, number(updated));
        Ok(IssueItems {
            item: updated_by.into_iter().fold(item, |item, user| item.with(UPDATED_BY, text(user))),
            content,
            parts: packed.parts,
            location: issue.experiment().is_none().then_some(location),
        })
    }

    fn texts(&self) -> IssueTexts {
        IssueTexts {
            description: self.description.clone(),
            root_causes: self.root_causes.clone(),
            metadata: self.metadata.clone(),
        }
    }

    /// Creates the compact row of the issue.
    fn row(&self, experiment: ExperimentId, issue: &IssueId, created: i64) -> Result<Item> {
        let item = Item::new(rows::Issue::key(&experiment, issue))
            .with(NAME, text(&self.name))
            .with(ISSUE_STATUS, text(self.status.name()))
            .with(CREATED, number(created))
            .with(LAST_SEEN, number(self.last_seen.unwrap_or(created)))
            .with(CHANGES, number(0));
        let item = self.severity.iter().fold(item, |item, severity| item.with(SEVERITY, text(severity.name())));
        let item = self.source_run.iter().fold(item, |item, run| item.with(SOURCE_RUN, text(run)));
        let item = self.created_by.iter().fold(item, |item, user| item.with(CREATED_BY, text(user)));
        if self.categories.is_empty() {
            return Ok(item);
        }
        Ok(item.with(CATEGORIES, text(categories_text(&self.categories)?)))
    }
}

impl Store {
    /// Creates an issue. Takes one request, one more to check its run, one more if the lease on the
    /// experiment has expired, and one more per 25 parts of long texts.
    pub async fn issue_create(&self, experiment: &Granted<ExperimentId>, new: &NewIssue) -> Result<Issue> {
        let experiment = self.reviewed_experiment(**experiment).await?;
        // An id in the format of this server belongs to the experiment that it contains.
        if new.id.as_ref().and_then(IssueId::experiment).is_some_and(|other| other != experiment) {
            return Err(taken());
        }
        if let Some(run) = &new.source_run {
            self.issue_check_run(experiment, run).await?;
        }
        let mut attempts = self.table.attempts("an issue");
        loop {
            attempts.next().await?;
            let now = now_ms();
            let issue = new.id.clone().unwrap_or_else(|| IssueId::new(now, experiment, rand::rng().random()));
            let items = new.items(experiment, &issue, now, (now, new.created_by.as_deref()))?;
            let IssueItems { item, content, parts, location } = items;
            let mut others = vec![Write::Put(content, Condition::Always)];
            others.extend(location.map(|location| Write::Put(location, Condition::item_missing())));
            let part_keys: Vec<_> = parts.iter().filter_map(Item::key).collect();
            self.table.write_many(parts, &[]).await?;
            match self.table.create(item.clone(), others).await {
                Ok(()) => return Ok(StoredIssue::of(item)?.response(new.texts(), false)),
                Err(Failure::Cancelled(_)) => {
                    self.table.write_many(Vec::new(), &part_keys).await?;
                    if new.id.is_some() {
                        return Err(taken());
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Fails unless a run exists in the experiment. Takes one request, and one more if this server
    /// did not generate the id.
    async fn issue_check_run(&self, experiment: ExperimentId, run: &str) -> Result<()> {
        let at: RunLocation = locate_run(&self.table, run).await?;
        if at.experiment != experiment {
            // The response must not reveal whether a run of another experiment exists. If this
            // server generated the run's id, the id itself contains the experiment, so the error
            // may say so.
            return Err(match at.run.experiment() {
                Some(_) => Error::invalid("Source run must belong to the Issue experiment"),
                None => at.not_found(),
            });
        }
        self.table.get(&at.key()).await?.map(drop).ok_or_else(|| at.not_found())
    }
}
