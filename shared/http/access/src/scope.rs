//! The entities that a request may touch.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use entities::{ModelLocation, RunLocation, StoredTrace};
use mlflow_api::{
    Error, ErrorCode, EvaluationDatasetId, ExperimentId, ModelId, RegisteredModelName, Result, RunId, TraceId,
    UserName, Workspace,
};
use table::Table;

use crate::along::Along;
use crate::authorizer::{Authorizer, Visible};
use crate::decisions::{Decided, Decisions, Refusal};
use crate::identity::{Caller, Identity};
use crate::kind::{Action, Resource};
use crate::needs::{Need, Needs, Target};
use crate::resolve::Resolved;

/// An entity that the needs of a request named and that its caller was allowed to act on. Only a [`Scope`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Granted<T>(T);

impl<T> Deref for Granted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The entities that a request may touch: its caller, its workspace, and its resolved needs.
#[derive(Clone, Debug)]
pub struct Scope {
    identity: Identity,
    along: Along,
    visible: Visible,
    found: HashMap<Target, Outcome>,
    /// The kinds of entities in a target that the answer may show.
    shown: HashSet<(Resource, Target)>,
    /// The experiments of evaluation datasets that answers may name; all experiments of datasets that are not among these.
    experiments: HashMap<EvaluationDatasetId, HashSet<ExperimentId>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Granted(Resolved),
    /// There is no such entity, or none in the caller's workspace.
    Absent,
    /// The caller may not read it, and it was to be listed.
    Hidden,
}

impl Scope {
    /// Resolves the needs of a request, and asks the authorizer. One request for each run or logged
    /// model whose id was made elsewhere, for each name of an experiment, and per hundred traces.
    /// Where the authorizer looks at guards, one more for all of them, and one before that for
    /// evaluation datasets. Needs of more than a hundred entities are decided in batches.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for a request that names more than [`MAX_NAMED`](crate::MAX_NAMED)
    /// entities. `PERMISSION_DENIED`, where the caller may not do something other than listing or showing, or
    /// may not know that something is not there.
    pub async fn enter(
        authorizer: &Arc<dyn Authorizer>,
        identity: Identity,
        table: &Table,
        needs: &Needs,
    ) -> Result<Self> {
        match Box::pin(Self::decide(authorizer, identity, table, needs, false)).await {
            Ok(scope) => Ok(scope),
            Err(Refusal::Denied(denial)) => Err(denied(&denial.0, &denial.1)),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    async fn decide(
        authorizer: &Arc<dyn Authorizer>,
        identity: Identity,
        table: &Table,
        needs: &Needs,
        further: bool,
    ) -> std::result::Result<Self, Refusal> {
        needs.check_number()?;
        // Ids say nothing about workspaces: where there are several, each has to be kept to its own.
        let looks = authorizer.looks() || identity.has_workspaces;
        let needs = &needs.counting(looks);
        let mut decisions = Decisions::of(authorizer, identity, table, needs, (looks, further)).await?;
        let (mut found, mut shown, mut experiments) = (HashMap::new(), HashSet::new(), HashMap::new());
        let mut may_list = true;
        for Decided { need, resolved, is_allowed, experiments: readable, .. } in std::mem::take(&mut decisions.decided)
        {
            if let (Some(Resolved::EvaluationDataset(dataset)), Some(readable)) = (&resolved, readable) {
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
                    may_list &= resolved != Some(Resolved::Workspace);
                    Outcome::Hidden
                }
            };
            // A hidden entity stays hidden, even if another need names it, too.
            match found.get_mut(&need.target) {
                None => drop(found.insert(need.target.clone(), outcome)),
                Some(before) if outcome == Outcome::Hidden => *before = outcome,
                Some(_) => {}
            }
        }
        let lists = needs.iter().any(|need| need.action == Action::List);
        let visible = if lists && may_list { decisions.visible().await? } else { Visible::nothing() };
        let Decisions { identity, models, workspace, .. } = decisions;
        let along = Along::of(authorizer, &identity, if looks { models } else { HashMap::new() }, workspace);
        Ok(Self { identity, along, visible, found, shown, experiments })
    }

    /// Checks whether the caller of this request may do something else as well, with entities that
    /// were not known when the request was authorized. A refusal is neither an error nor logged.
    ///
    /// Takes the same requests as [`enter`](Self::enter), and none if the authorizer does not look
    /// at guards. Users and grants that were read a moment ago are not read again.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn may(&self, table: &Table, needs: &Needs) -> Result<bool> {
        let Some((authorizer, identity)) = self.along.by().filter(|(authorizer, _)| authorizer.looks()) else {
            return Ok(true);
        };
        match Box::pin(Self::decide(authorizer, identity.clone(), table, needs, true)).await {
            Ok(scope) => Ok(scope.found.values().all(|outcome| matches!(outcome, Outcome::Granted(_)))),
            Err(Refusal::Denied(_)) => Ok(false),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    /// The caller, with workspace and credentials.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The writes that the authorizer adds to those of the request.
    #[must_use]
    pub fn along(&self) -> &Along {
        &self.along
    }

    /// The caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// The workspace that the request is about.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.identity.workspace
    }

    /// The entities that lists may show. None, unless the needs include a list and the caller may
    /// list it.
    #[must_use]
    pub fn visible(&self) -> &Visible {
        &self.visible
    }

    /// Whether the answer may show entities of a kind, or their ids, whatever is in it. Not unless the needs said so.
    #[must_use]
    pub fn shows(&self, kind: Resource) -> bool {
        self.shows_in(kind, &Target::Any(kind))
    }

    /// The same of entities of a kind that are in this one.
    #[must_use]
    pub fn shows_in(&self, kind: Resource, target: &Target) -> bool {
        self.shown.contains(&(kind, target.clone()))
    }

    /// Whether the answer may name an experiment of an evaluation dataset: the caller may read it.
    #[must_use]
    pub fn shows_experiment(&self, dataset: &EvaluationDatasetId, experiment: ExperimentId) -> bool {
        self.experiments.get(dataset).is_none_or(|experiments| experiments.contains(&experiment))
    }

    /// An experiment by its id. It need not be there.
    ///
    /// # Errors
    /// An internal one, if the needs did not name it; so with all that follow.
    pub fn experiment(&self, experiment: ExperimentId) -> Result<Granted<ExperimentId>> {
        self.listed_experiment(experiment)?.ok_or_else(|| experiment.not_found())
    }

    /// An experiment that is to be listed; `None` if the caller may not read it.
    pub fn listed_experiment(&self, experiment: ExperimentId) -> Result<Option<Granted<ExperimentId>>> {
        self.granted(&Target::Experiment(experiment), |place| match place {
            Resolved::Experiment(experiment) => Some(*experiment),
            _ => None,
        })
    }

    /// Those of these experiments that the caller may read.
    pub fn listed_experiments(&self, experiments: &[ExperimentId]) -> Result<Vec<Granted<ExperimentId>>> {
        experiments.iter().filter_map(|experiment| self.listed_experiment(*experiment).transpose()).collect()
    }

    /// An experiment by its name; `None` where there is none of this name.
    pub fn experiment_named(&self, name: &str) -> Result<Option<Granted<ExperimentId>>> {
        self.granted(&Target::ExperimentNamed(name.to_owned()), |place| match place {
            Resolved::Experiment(experiment) => Some(*experiment),
            _ => None,
        })
    }

    /// A run.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` for an id made elsewhere that no run has. An id made here need not be that of a run.
    pub fn run(&self, run: &RunId) -> Result<Granted<RunLocation>> {
        self.known_run(run)?.ok_or_else(|| RunId::not_found(run.as_str()))
    }

    /// A run; `None` for an id made elsewhere that no run has.
    pub fn known_run(&self, run: &RunId) -> Result<Option<Granted<RunLocation>>> {
        self.granted(&Target::Run(run.clone()), |place| match place {
            Resolved::Run(at) => Some(at.clone()),
            _ => None,
        })
    }

    /// A logged model.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` as for a run.
    pub fn logged_model(&self, model: &ModelId) -> Result<Granted<ModelLocation>> {
        self.known_logged_model(model)?.ok_or_else(|| ModelId::not_found(model.as_str()))
    }

    /// A logged model; `None` for an id made elsewhere that no logged model has.
    pub fn known_logged_model(&self, model: &ModelId) -> Result<Option<Granted<ModelLocation>>> {
        self.granted(&Target::LoggedModel(model.clone()), |place| match place {
            Resolved::LoggedModel(at) => Some(at.clone()),
            _ => None,
        })
    }

    /// A trace, as it was when the request began.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is none of this id.
    pub fn trace(&self, trace: &TraceId) -> Result<Granted<StoredTrace>> {
        self.known_trace(trace)?.ok_or_else(|| TraceId::not_found(trace.as_str()))
    }

    /// A trace; `None` where there is none of this id, or none that the caller may see.
    pub fn known_trace(&self, trace: &TraceId) -> Result<Option<Granted<StoredTrace>>> {
        self.granted(&Target::Trace(trace.clone()), |place| match place {
            Resolved::Trace(trace) => Some(StoredTrace::clone(trace)),
            _ => None,
        })
    }

    /// All traces that the needs named and that are there.
    pub fn traces(&self) -> impl Iterator<Item = &StoredTrace> {
        self.found.values().filter_map(|outcome| match outcome {
            Outcome::Granted(Resolved::Trace(trace)) => Some(&**trace),
            _ => None,
        })
    }

    /// The same scope, to which some of these traces are not there.
    #[must_use]
    pub fn only_traces(mut self, is_there: impl Fn(&StoredTrace) -> bool) -> Self {
        for outcome in self.found.values_mut() {
            if matches!(outcome, Outcome::Granted(Resolved::Trace(trace)) if !is_there(trace)) {
                *outcome = Outcome::Absent;
            }
        }
        self
    }

    /// The experiment of a scorer. Neither need be there.
    pub fn scorer(&self, experiment: ExperimentId, name: &str) -> Result<Granted<ExperimentId>> {
        let found = self.granted(&Target::Scorer(experiment, name.to_owned()), |place| match place {
            Resolved::Scorer(experiment, _) => Some(*experiment),
            _ => None,
        });
        found?.ok_or_else(|| experiment.not_found())
    }

    /// A registered model or a prompt. It need not be there.
    pub fn registered_model(&self, name: &RegisteredModelName) -> Result<Granted<RegisteredModelName>> {
        let found = self.granted(&Target::RegisteredModel(name.clone()), |place| match place {
            Resolved::RegisteredModel(name) => Some(name.clone()),
            _ => None,
        });
        found?.ok_or_else(|| name.not_found())
    }

    /// An evaluation dataset. It need not be there.
    pub fn evaluation_dataset(&self, dataset: &EvaluationDatasetId) -> Result<Granted<EvaluationDatasetId>> {
        self.known_evaluation_dataset(dataset)?.ok_or_else(|| EvaluationDatasetId::not_found(dataset.as_str()))
    }

    /// The same; `None` where it is in another workspace.
    pub fn known_evaluation_dataset(
        &self,
        dataset: &EvaluationDatasetId,
    ) -> Result<Option<Granted<EvaluationDatasetId>>> {
        self.granted(&Target::EvaluationDataset(dataset.clone()), |place| match place {
            Resolved::EvaluationDataset(dataset) => Some(dataset.clone()),
            _ => None,
        })
    }

    /// A user. He need not be there.
    pub fn user(&self, user: &UserName) -> Result<Granted<UserName>> {
        let found = self.granted(&Target::User(user.clone()), |place| match place {
            Resolved::User(user) => Some(user.clone()),
            _ => None,
        });
        found?.ok_or_else(|| UserName::not_found(user.as_str()))
    }

    fn granted<T>(&self, target: &Target, place: impl Fn(&Resolved) -> Option<T>) -> Result<Option<Granted<T>>> {
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

/// Returns the error for a denied need, which is also logged. Texts that clients have chosen are
/// escaped in the log.
fn denied(identity: &Identity, need: &Need) -> Error {
    let by = identity.caller.name();
    let Need { action, kind, target, .. } = need;
    tracing::info!(target: "audit", event = "denied", ?by, ?action, ?kind, ?target);
    Error::new(ErrorCode::PermissionDenied, "Permission denied")
}
