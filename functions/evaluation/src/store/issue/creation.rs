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

fn taken() -> Error {
    Error::new(ErrorCode::ResourceAlreadyExists, "Issue ID already exists")
}

impl NewIssue {
    /// Creates the compact row of the issue.
    fn item(&self, experiment: ExperimentId, issue: &IssueId, now: i64) -> Result<Item> {
        let item = Item::new(rows::Issue::key(&experiment, issue))
            .with(NAME, text(&self.name))
            .with(ISSUE_STATUS, text(self.status.name()))
            .with(CREATED, number(now))
            .with(UPDATED, number(now))
            .with(LAST_SEEN, number(self.last_seen.unwrap_or(now)))
            .with(CHANGES, number(0));
        let item = self.severity.iter().fold(item, |item, severity| item.with(SEVERITY, text(severity.name())));
        let item = self.source_run.iter().fold(item, |item, run| item.with(SOURCE_RUN, text(run)));
        let user = self.created_by.iter();
        let item = user.fold(item, |item, user| item.with(CREATED_BY, text(user)).with(UPDATED_BY, text(user)));
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
        let texts = IssueTexts {
            description: new.description.clone(),
            root_causes: new.root_causes.clone(),
            metadata: new.metadata.clone(),
        };
        let mut attempts = self.table.attempts("an issue");
        loop {
            attempts.next().await?;
            let now = now_ms();
            let issue = new.id.clone().unwrap_or_else(|| IssueId::new(now, experiment, rand::rng().random()));
            let packed = texts.pack(experiment, &issue)?;
            let parts = packed.part_keys();
            let item = new.item(experiment, &issue, now)?;
            let content = packed.on(Item::new(rows::IssueContent::key(&experiment, &issue)));
            let mut others = vec![Write::Put(content, Condition::Always)];
            if issue.experiment().is_none() {
                let location = Item::new(rows::IssueLocation::key(&issue));
                let location = location.with(EXPERIMENT, text(experiment.to_string()));
                others.push(Write::Put(location, Condition::item_missing()));
            }
            self.table.write_many(packed.parts, &[]).await?;
            match self.table.create(item.clone(), others).await {
                Ok(()) => return Ok(StoredIssue::of(item)?.response(texts, false)),
                Err(Failure::Cancelled(_)) => {
                    self.table.write_many(Vec::new(), &parts).await?;
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
