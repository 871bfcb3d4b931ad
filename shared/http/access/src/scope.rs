//! The entities that a request may touch.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use entities::{LocatedTrace, ModelLocation, RunLocation};
use mlflow_api::{
    Error, ErrorCode, EvaluationDatasetId, ExperimentId, IssueId, McpServerName, ModelId, RegisteredModelName, Result,
    RunId, SkillName, TraceId, UserName, Workspace,
};
use table::Table;

use crate::action::{Action, Resource};
use crate::authorizer::{Authorizer, Visibility};
use crate::authorizer_writes::{AuthorizerWrites, DecidedNames};
use crate::decisions::{AccessRefusal, Decisions, NeedDecision};
use crate::guard::Guard;
use crate::identity::{Caller, Identity};
use crate::needs::{Need, Needs, Target};
use crate::target_resolution::ResolvedEntity;

/// An entity that the request's needs named and that the caller was authorized to act on. Only a
/// [`Scope`] creates one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Granted<T>(T);

impl<T> Deref for Granted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The authorization of a request: its caller, its workspace, and its resolved needs.
#[derive(Clone, Debug)]
pub struct Scope {
    identity: Identity,
    authorizer_writes: AuthorizerWrites,
    visibility: Visibility,
    found: HashMap<Target, Outcome>,
    /// Kinds of entities that the response may show, each with the target that contains them.
    shown: HashSet<(Resource, Target)>,
    /// The experiments of evaluation datasets that responses may name. For datasets without an
    /// entry, all of their experiments may be named.
    experiments: HashMap<EvaluationDatasetId, HashSet<ExperimentId>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Granted(ResolvedEntity),
    /// The entity does not exist in the caller's workspace.
    Absent,
    /// The entity was to be listed, and the caller may not read it.
    Hidden,
}

impl Scope {
    /// Resolves the needs of a request and authorizes them.
    ///
    /// Takes one request to the table for each experiment name, for each run or logged model whose
    /// id this server did not generate, and per 100 traces. If the authorizer checks guards, one
    /// more request reads all of them, preceded by one for evaluation datasets. Needs that name
    /// more than 100 entities are decided in batches.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for a request that names more than
    /// [`MAX_NAMED_ENTITIES`](crate::MAX_NAMED_ENTITIES) entities. `PERMISSION_DENIED` if a need
    /// other than to list or to show is refused, or if the caller may not learn that an entity does
    /// not exist.
    pub async fn enter(
        authorizer: &Arc<dyn Authorizer>,
        identity: Identity,
        table: &Table,
        needs: &Needs,
    ) -> Result<Self> {
        match Box::pin(Self::decide(authorizer, identity, table, needs, false)).await {
            Ok(scope) => Ok(scope),
            Err(AccessRefusal::Denied(denial)) => Err(denied(&denial.0, &denial.1)),
            Err(AccessRefusal::Failed(error)) => Err(error),
        }
    }

    async fn decide(
        authorizer: &Arc<dyn Authorizer>,
        identity: Identity,
        table: &Table,
        needs: &Needs,
        further: bool,
    ) -> std::result::Result<Self, AccessRefusal> {
        needs.check_number()?;
        // Ids do not contain the workspace. If there are several workspaces, guards have to be read
        // to check which workspace an entity belongs to.
        let looks = authorizer.checks_guards() || identity.has_workspaces;
        let needs = &needs.relevant_to_authorizer(looks);
        let mut decisions = Decisions::of(authorizer, identity, table, needs, (looks, further)).await?;
        let (mut found, mut shown, mut experiments) = (HashMap::new(), HashSet::new(), HashMap::new());
        let mut may_list = true;
        for NeedDecision { need, resolved, is_allowed, experiments: readable, .. } in
            std::mem::take(&mut decisions.decided)
        {
            if let (Some(ResolvedEntity::EvaluationDataset(dataset)), Some(readable)) = (&resolved, readable) {
                experiments.insert(dataset.clone(), readable);
            }
            let outcome = match (is_allowed, need.action, resolved) {
                (_, Action::Show, resolved) => {
                    if is_allowed && resolved.is_some() {
                        shown.insert((need.kind, need.target.clone()));
                    }
                    continue;
                }
                (true, _, Some(resolved)) => Outcome::Granted(resolved),
                (true, _, None) => Outcome::Absent,
                (false, _, resolved) => {
                    may_list &= resolved != Some(ResolvedEntity::Workspace);
                    Outcome::Hidden
                }
            };
            // An entity that one need hides stays hidden, even if another need names it too.
            match found.get_mut(&need.target) {
                None => drop(found.insert(need.target.clone(), outcome)),
                Some(before) if outcome == Outcome::Hidden => *before = outcome,
                Some(_) => {}
            }
        }
        let lists = needs.iter().any(|need| need.action == Action::List);
        let visible = if lists && may_list { decisions.visible().await? } else { Visibility::nothing() };
        let Decisions { identity, names, workspace, .. } = decisions;
        let names = if looks { names } else { DecidedNames::default() };
        let along = AuthorizerWrites::of(authorizer, &identity, names, workspace);
        Ok(Self { identity, authorizer_writes: along, visibility: visible, found, shown, experiments })
    }

    /// Checks whether the caller also has permission for needs whose entities were not known when
    /// the request was authorized. A refusal is neither an error nor logged.
    ///
    /// Takes the same number of requests as [`enter`](Self::enter), and none if the authorizer does
    /// not check guards. Users and grants that are still in the short-lived cache are not read
    /// again.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn is_allowed(&self, table: &Table, needs: &Needs) -> Result<bool> {
        let Some((authorizer, identity)) =
            self.authorizer_writes.by().filter(|(authorizer, _)| authorizer.checks_guards())
        else {
            return Ok(true);
        };
        match Box::pin(Self::decide(authorizer, identity.clone(), table, needs, true)).await {
            Ok(scope) => Ok(scope.found.values().all(|outcome| matches!(outcome, Outcome::Granted(_)))),
            Err(AccessRefusal::Denied(_)) => Ok(false),
            Err(AccessRefusal::Failed(error)) => Err(error),
        }
    }

    /// Returns the caller, with workspace and credentials.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the source of the writes that the authorizer adds to the request's transactions.
    #[must_use]
    pub fn authorizer_writes(&self) -> &AuthorizerWrites {
        &self.authorizer_writes
    }

    /// Returns the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// Returns the workspace of the request.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.identity.workspace
    }

    /// Returns which entities lists may show to the caller. Shows nothing unless one of the needs
    /// was to list, and the caller may list.
    #[must_use]
    pub fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// Checks whether the caller may perform an action on an entity that a list shows. Refuses
    /// everything unless one of the needs was to list. Meant for user interfaces, which only offer
    /// what the caller may do.
    #[must_use]
    pub fn allows_listed(&self, action: Action, kind: Resource, guarded: &Guard) -> bool {
        self.identity.restriction.allows(action, kind) && self.visibility.allows(action, kind, guarded)
    }

    /// Checks whether entities of a kind, or their ids, may appear anywhere in the response. Always
    /// `false` unless the needs included it.
    #[must_use]
    pub fn shows(&self, kind: Resource) -> bool {
        self.shows_in(kind, &Target::Any(kind))
    }

    /// Checks whether entities of a kind within `target` may appear in the response.
    #[must_use]
    pub fn shows_in(&self, kind: Resource, target: &Target) -> bool {
        self.shown.contains(&(kind, target.clone()))
    }

    /// Checks whether the response may name an experiment of an evaluation dataset, which requires
    /// that the caller may read the experiment.
    #[must_use]
    pub fn shows_experiment(&self, dataset: &EvaluationDatasetId, experiment: ExperimentId) -> bool {
        self.experiments.get(dataset).is_none_or(|experiments| experiments.contains(&experiment))
    }

    /// Returns an experiment by its id. The experiment does not have to exist.
    ///
    /// # Errors
    /// An internal error if the needs did not name the experiment. All accessors of entities return
    /// such an error.
    pub fn experiment(&self, experiment: ExperimentId) -> Result<Granted<ExperimentId>> {
        self.listed_experiment(experiment)?.ok_or_else(|| experiment.not_found())
    }

    /// Returns an experiment that is to be listed, or `None` if the caller may not read it.
    pub fn listed_experiment(&self, experiment: ExperimentId) -> Result<Option<Granted<ExperimentId>>> {
        self.granted(&Target::Experiment(experiment), |place| match place {
            ResolvedEntity::Experiment(experiment) => Some(*experiment),
            _ => None,
        })
    }

    /// Returns the experiments among these that the caller may read.
    pub fn listed_experiments(&self, experiments: &[ExperimentId]) -> Result<Vec<Granted<ExperimentId>>> {
        experiments.iter().filter_map(|experiment| self.listed_experiment(*experiment).transpose()).collect()
    }

    /// Returns an experiment by its name, or `None` if no experiment has this name.
    pub fn experiment_named(&self, name: &str) -> Result<Option<Granted<ExperimentId>>> {
        self.granted(&Target::ExperimentNamed(name.to_owned()), |place| match place {
            ResolvedEntity::Experiment(experiment) => Some(*experiment),
            _ => None,
        })
    }

    /// Returns a run.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` if this server did not generate the id and no run has it. A run
    /// whose id this server generated may not exist either, but that is not checked here.
    pub fn run(&self, run: &RunId) -> Result<Granted<RunLocation>> {
        self.known_run(run)?.ok_or_else(|| RunId::not_found(run.as_str()))
    }

    /// Returns a run, or `None` if this server did not generate the id and no run has it.
    pub fn known_run(&self, run: &RunId) -> Result<Option<Granted<RunLocation>>> {
        self.granted(&Target::Run(run.clone()), |place| match place {
            ResolvedEntity::Run(at) => Some(at.clone()),
            _ => None,
        })
    }

    /// Returns a logged model.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` if this server did not generate the id and no logged model has it.
    pub fn logged_model(&self, model: &ModelId) -> Result<Granted<ModelLocation>> {
        self.known_logged_model(model)?.ok_or_else(|| ModelId::not_found(model.as_str()))
    }

    /// Returns a logged model, or `None` if this server did not generate the id and no logged model
    /// has it.
    pub fn known_logged_model(&self, model: &ModelId) -> Result<Option<Granted<ModelLocation>>> {
        self.granted(&Target::LoggedModel(model.clone()), |place| match place {
            ResolvedEntity::LoggedModel(at) => Some(at.clone()),
            _ => None,
        })
    }

    /// Returns a trace, as it was when the request began. If the trace is packed, its block has not been
    /// read.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` if no trace has this id.
    pub fn trace(&self, trace: &TraceId) -> Result<Granted<LocatedTrace>> {
        self.known_trace(trace)?.ok_or_else(|| TraceId::not_found(trace.as_str()))
    }

    /// Returns a trace, or `None` if no trace that the caller may see has this id.
    pub fn known_trace(&self, trace: &TraceId) -> Result<Option<Granted<LocatedTrace>>> {
        self.granted(&Target::Trace(trace.clone()), |place| match place {
            ResolvedEntity::Trace(trace) => Some(LocatedTrace::clone(trace)),
            _ => None,
        })
    }

    /// Iterates over all traces that the needs named and that exist.
    pub fn traces(&self) -> impl Iterator<Item = &LocatedTrace> {
        self.found.values().filter_map(|outcome| match outcome {
            Outcome::Granted(ResolvedEntity::Trace(trace)) => Some(&**trace),
            _ => None,
        })
    }

    /// Hides the traces for which `is_there` returns `false`, as if they did not exist.
    #[must_use]
    pub fn retain_traces(mut self, is_there: impl Fn(&LocatedTrace) -> bool) -> Self {
        for outcome in self.found.values_mut() {
            if matches!(outcome, Outcome::Granted(ResolvedEntity::Trace(trace)) if !is_there(trace)) {
                *outcome = Outcome::Absent;
            }
        }
        self
    }

    /// Returns the experiment of a scorer. Neither the scorer nor the experiment has to exist.
    pub fn scorer(&self, experiment: ExperimentId, name: &str) -> Result<Granted<ExperimentId>> {
        let found = self.granted(&Target::Scorer(experiment, name.to_owned()), |place| match place {
            ResolvedEntity::Scorer(experiment, _) => Some(*experiment),
            _ => None,
        });
        found?.ok_or_else(|| experiment.not_found())
    }

    /// Returns a registered model or a prompt. It does not have to exist.
    pub fn registered_model(&self, name: &RegisteredModelName) -> Result<Granted<RegisteredModelName>> {
        let found = self.granted(&Target::RegisteredModel(name.clone()), |place| match place {
            ResolvedEntity::RegisteredModel(name) => Some(name.clone()),
            _ => None,
        });
        found?.ok_or_else(|| name.not_found())
    }

    /// Returns an MCP server, or `None` if the caller may not see it. It does not have to exist.
    pub fn known_mcp_server(&self, name: &McpServerName) -> Result<Option<Granted<McpServerName>>> {
        self.granted(&Target::McpServer(name.clone()), |place| match place {
            ResolvedEntity::McpServer(name) => Some(name.clone()),
            _ => None,
        })
    }

    /// Returns a skill, or `None` if the caller may not see it. The skill does not have to exist.
    pub fn known_skill(&self, name: &SkillName) -> Result<Option<Granted<SkillName>>> {
        self.granted(&Target::Skill(name.clone()), |place| match place {
            ResolvedEntity::Skill(name) => Some(name.clone()),
            _ => None,
        })
    }

    /// Returns an evaluation dataset. It does not have to exist.
    pub fn evaluation_dataset(&self, dataset: &EvaluationDatasetId) -> Result<Granted<EvaluationDatasetId>> {
        self.known_evaluation_dataset(dataset)?.ok_or_else(|| EvaluationDatasetId::not_found(dataset.as_str()))
    }

    /// Returns an evaluation dataset, or `None` if it belongs to another workspace.
    pub fn known_evaluation_dataset(
        &self,
        dataset: &EvaluationDatasetId,
    ) -> Result<Option<Granted<EvaluationDatasetId>>> {
        self.granted(&Target::EvaluationDataset(dataset.clone()), |place| match place {
            ResolvedEntity::EvaluationDataset(dataset) => Some(dataset.clone()),
            _ => None,
        })
    }

    /// Returns the experiment of an issue.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` if no issue can have this id. An issue whose id this server
    /// generated may not exist either, but that is not checked here.
    pub fn issue(&self, issue: &IssueId) -> Result<Granted<ExperimentId>> {
        let found = self.granted(&Target::Issue(issue.clone()), |place| match place {
            ResolvedEntity::Issue(experiment) => Some(*experiment),
            _ => None,
        });
        found?.ok_or_else(|| IssueId::not_found(issue.as_str()))
    }

    /// Checks the permissions for an action that the request turned out to need only after it was
    /// authorized. Takes the same number of requests as [`is_allowed`](Self::is_allowed).
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if the caller lacks them.
    pub async fn require(&self, table: &Table, needs: &Needs) -> Result<()> {
        if self.is_allowed(table, needs).await? {
            return Ok(());
        }
        Err(self.refusal(needs))
    }

    /// Returns the error for a request that an endpoint refuses for lack of permission. Logs the
    /// refusal. The error names the first of these needs, whether or not the caller has permission
    /// for it.
    #[must_use]
    pub fn refusal(&self, needs: &Needs) -> Error {
        match needs.iter().next() {
            Some(need) => denied(&self.identity, need),
            None => Error::internal("nothing is required"),
        }
    }

    /// Checks whether a user has this name. Always `false` on a server without users.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn is_user_name(&self, name: &UserName) -> Result<bool> {
        match self.authorizer_writes.by() {
            Some((authorizer, _)) => authorizer.is_user_name(name).await,
            None => Ok(false),
        }
    }

    /// Returns a user. The user does not have to exist.
    pub fn user(&self, user: &UserName) -> Result<Granted<UserName>> {
        let found = self.granted(&Target::User(user.clone()), |place| match place {
            ResolvedEntity::User(user) => Some(user.clone()),
            _ => None,
        });
        found?.ok_or_else(|| UserName::not_found(user.as_str()))
    }

    fn granted<T>(&self, target: &Target, place: impl Fn(&ResolvedEntity) -> Option<T>) -> Result<Option<Granted<T>>> {
        match self.found.get(target) {
            Some(Outcome::Granted(found)) => match place(found) {
                Some(granted) => Ok(Some(Granted(granted))),
                None => Err(Error::internal(format!("{target:?} was resolved to {found:?}"))),
            },
            Some(Outcome::Absent | Outcome::Hidden) => Ok(None),
            None => Err(Error::internal(format!("{target:?} is not among the needs of this request"))),
        }
    }
}

/// Returns the error for a denied need and logs it. Text chosen by clients is escaped in the log.
fn denied(identity: &Identity, need: &Need) -> Error {
    let by = identity.caller.name();
    let Need { action, kind, target, .. } = need;
    tracing::info!(target: "audit", event = "denied", ?by, ?action, ?kind, ?target);
    Error::new(ErrorCode::PermissionDenied, "Permission denied")
}
