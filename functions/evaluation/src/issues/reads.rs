//! Reading and searching issues.

use access::{Action, Granted, Needs, Resource, Scope, Target, Visibility};
use mlflow_api::issues::{
    DEFAULT_RESULTS, Issue, IssueResponse, IssueSeverity, IssueStatus, IssuesResponse, check_search, check_texts,
};
use mlflow_api::requests::issues as message;
use mlflow_api::{Error, ErrorCode, ExperimentId, IssueId, Request, Result, limits};
use search::{IssueQuery, check_page_token, parse_issue_search};
use service::Endpoint;

use crate::store::{IssueSearch, Store, invalid_issue_token};

/// The issue in the path of a request. A text that is not a valid id refers to no issue.
pub(super) struct IssueTarget {
    text: String,
    id: Option<IssueId>,
}

impl IssueTarget {
    /// Parses the id in the request's path.
    pub(super) fn of(request: &Request) -> Self {
        let text = request.path_part("issue_id").to_owned();
        Self { id: IssueId::parse(&text), text }
    }

    /// Returns the needs for an action on the issue, and for showing the run that found it.
    pub(super) fn needs(&self, action: Action) -> Needs {
        let target = self.id.clone().map_or(Target::Nothing(Resource::Issue), Target::Issue);
        Needs::of(action, [target]).showing([Resource::Run])
    }

    /// Returns the issue, and its experiment with the scope's grant of access.
    pub(super) fn granted(self, scope: &Scope) -> Result<(Granted<ExperimentId>, IssueId)> {
        let id = self.id.ok_or_else(|| IssueId::not_found(&self.text))?;
        Ok((scope.issue(&id)?, id))
    }
}

/// Returns an issue without the run that found it, unless the caller may read runs.
pub(super) fn visible(scope: &Scope, issue: Issue) -> Issue {
    let source_run_id = issue.source_run_id.filter(|_| scope.shows(Resource::Run));
    Issue { source_run_id, ..issue }
}

pub(crate) struct Get(IssueTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = IssueResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(IssueTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<IssueResponse> {
        let (experiment, issue) = self.0.granted(scope)?;
        Ok(IssueResponse { issue: visible(scope, store.issue_get(&experiment, &issue).await?) })
    }
}

pub(crate) struct Search {
    /// The experiment whose issues are searched. `None` searches the issues of all experiments.
    experiment: Option<ExperimentId>,
    search: IssueSearch,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = IssuesResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SearchIssues = request.read()?;
        let max_results = message.max_results.map_or(DEFAULT_RESULTS, i64::from);
        limits::max_results(max_results)?;
        let lists = [
            ("statuses", message.statuses.as_slice()),
            ("severities", &message.severities),
            ("order_by", &message.order_by),
        ];
        check_search(message.name.as_deref(), &lists)?;
        check_texts("categories", &message.categories)?;
        message.statuses.iter().try_for_each(|status| IssueStatus::parse(status).map(|_| ()))?;
        message.severities.iter().try_for_each(|severity| IssueSeverity::parse(severity).map(|_| ()))?;
        let query = IssueQuery {
            filter: &message.filter_string,
            name: message.name.as_deref(),
            statuses: &message.statuses,
            severities: &message.severities,
            categories: &message.categories,
            order_by: &message.order_by,
            by_trace_count: message.include_trace_count,
        };
        if message.view.as_deref().is_some_and(|view| !matches!(view, "basic" | "full")) {
            return Err(Error::invalid("view must be basic or full"));
        }
        check_page_token(&message.page_token).map_err(|_| invalid_issue_token())?;
        let experiment = Some(message.experiment_id.as_str()).filter(|id| !id.is_empty());
        let experiment = experiment.map(ExperimentId::parse).transpose()?;
        let (filter, order) = parse_issue_search(&query)?;
        let search = IssueSearch {
            filter,
            order,
            fingerprint: query.fingerprint(experiment, message.view.as_deref()),
            max_results: usize::try_from(max_results).unwrap_or_default(),
            page_token: message.page_token,
            has_trace_counts: message.include_trace_count,
            has_total: message.include_total_count,
            is_basic: message.view.as_deref() == Some("basic"),
        };
        Ok(Self { experiment, search })
    }

    /// A filter that compares runs reveals which runs have found issues, so it requires permission to
    /// read runs.
    fn needs(&self) -> Needs {
        let issues = match self.experiment {
            Some(experiment) => Needs::of_in(Action::Read, Resource::Issue, Target::Experiment(experiment)),
            None => Needs::list(Resource::Issue).and(Action::Read, [Target::Any(Resource::Issue)]),
        };
        let issues = issues.showing([Resource::Run]);
        if self.search.filter.selects_run() {
            return issues.and(Action::Read, [Target::Any(Resource::Run)]);
        }
        issues
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<IssuesResponse> {
        let found = match self.experiment {
            Some(experiment) => {
                // For an experiment of another workspace, the result is empty, as for one that does
                // not exist, so that callers cannot tell them apart.
                let experiment = scope.listed_experiment(experiment)?;
                store.issue_search(experiment.as_slice(), &self.search).await?
            }
            // As in MLflow, only callers who may see every experiment can search all experiments.
            None if matches!(scope.visibility(), Visibility::Everything) => {
                store.issue_search_all(scope.workspace(), &self.search).await?
            }
            None => return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied")),
        };
        let issues = found.issues.into_iter().map(|issue| visible(scope, issue)).collect();
        Ok(IssuesResponse { issues, ..found })
    }
}
