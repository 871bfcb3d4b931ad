//! Creating and changing issues.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::issues::{
    self, IssueResponse, IssueSeverity, IssueStatus, Metadata, check_deleted_keys, check_last_seen, check_name,
    check_texts, check_user,
};
use mlflow_api::requests::issues as message;
use mlflow_api::{Error, ExperimentId, IssueId, Request, Result};
use serde_json::Value;
use service::Endpoint;

use super::reads::{IssueTarget, visible};
use crate::store::{IssueChange, NewIssue, Store};

/// Reads the metadata of a request, and checks the time at which the issue was last seen. Like
/// MLflow, the check accepts the time as a number or as a text of digits.
fn metadata_and_time(request: &Request) -> Result<Metadata> {
    let body = request.object(&[])?;
    let sent = |name: &str, camel: &str| body.get(name).or_else(|| body.get(camel));
    check_last_seen(sent("last_seen_timestamp", "lastSeenTimestamp").unwrap_or(&Value::Null))?;
    issues::metadata(sent("metadata", "metadata"))
}

/// Returns the name of the caller, or else the name in the request.
fn user_of(scope: &Scope, sent: String) -> Option<String> {
    let caller = scope.caller().user().map(|user| user.name.to_string());
    caller.or(Some(sent)).filter(|user| !user.is_empty())
}

pub(crate) struct Create {
    experiment: ExperimentId,
    new: NewIssue,
    created_by: String,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = IssueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateIssue = request.read()?;
        let metadata = metadata_and_time(request)?;
        let status = message.status.as_deref().map(IssueStatus::parse).transpose()?;
        let severity = message.severity.as_deref().map(IssueSeverity::parse).transpose()?;
        check_name(&message.name)?;
        let id = message.issue_id.map(|id| {
            IssueId::parse(&id).ok_or_else(|| Error::invalid("issue_id must be iss-* and at most 36 characters"))
        });
        let id = id.transpose()?;
        check_user("created_by", &message.created_by)?;
        check_texts("categories", &message.categories)?;
        let new = NewIssue {
            id,
            name: message.name,
            description: message.description,
            status: status.unwrap_or(IssueStatus::Pending),
            severity,
            root_causes: message.root_causes,
            source_run: Some(message.source_run_id).filter(|run| !run.is_empty()),
            categories: message.categories,
            created_by: None,
            last_seen: message.last_seen_timestamp,
            metadata,
        };
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new, created_by: message.created_by })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(Target::Experiment(self.experiment), Resource::Issue).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<IssueResponse> {
        let experiment = scope.experiment(self.experiment)?;
        let new = NewIssue { created_by: user_of(scope, self.created_by), ..self.new };
        Ok(IssueResponse { issue: visible(scope, store.issue_create(&experiment, &new).await?) })
    }
}

pub(crate) struct Modify {
    issue: IssueTarget,
    change: IssueChange,
    updated_by: String,
}

impl Endpoint for Modify {
    type Store = Store;
    type Answer = IssueResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateIssue = request.read()?;
        let metadata = metadata_and_time(request)?;
        let status = message.status.as_deref().map(IssueStatus::parse).transpose()?;
        let severity = message.severity.as_deref().map(IssueSeverity::parse).transpose()?;
        message.name.as_deref().map_or(Ok(()), check_name)?;
        check_user("last_updated_by", &message.last_updated_by)?;
        check_texts("categories", message.categories.as_deref().unwrap_or_default())?;
        check_texts("delete_metadata_keys", &message.delete_metadata_keys)?;
        check_deleted_keys(&metadata, &message.delete_metadata_keys)?;
        let change = IssueChange {
            name: message.name,
            description: message.description,
            status,
            severity,
            categories: message.categories,
            last_seen: message.last_seen_timestamp,
            updated_by: None,
            metadata,
            deleted_keys: message.delete_metadata_keys,
        };
        Ok(Self { issue: IssueTarget::of(request), change, updated_by: message.last_updated_by })
    }

    fn needs(&self) -> Needs {
        self.issue.needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<IssueResponse> {
        let (experiment, issue) = self.issue.granted(scope)?;
        let change = IssueChange { updated_by: user_of(scope, self.updated_by), ..self.change };
        Ok(IssueResponse { issue: visible(scope, store.issue_update(&experiment, &issue, &change).await?) })
    }
}
