//! The entities that a request may touch.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use entities::{ModelLocation, RunLocation, StoredTrace, WorkspaceIdentity};
use mlflow_api::{
    Error, ErrorCode, EvaluationDatasetId, ExperimentId, ModelId, RegisteredModelName, Result, RunId, TraceId,
    UserName, Workspace,
};
use table::{Table, TableKey};

use crate::along::Along;
use crate::ask::{Asked, ask};
use crate::authorizer::{Authorizer, Visible};
use crate::guard::{Ask, Guarded, Read, workspace_key};
use crate::identity::{Caller, Identity};
use crate::kind::{Action, Resource};
use crate::needs::{Need, Needs, Target};
use crate::resolve::{Resolved, resolve};

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
    /// evaluation datasets.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, where the caller may not do something other than listing or showing, or
    /// may not know that something is not there.
    pub async fn enter(
        authorizer: &Arc<dyn Authorizer>,
        identity: Identity,
        table: &Table,
        needs: &Needs,
    ) -> Result<Self> {
        // Ids say nothing about workspaces: where there are several, each has to be kept to its own.
        let looks = authorizer.looks() || identity.has_workspaces;
        let needs = &needs.counting(looks);
        let targets =
            resolve(table, &identity.workspace, &needs.iter().map(|need| &need.target).collect::<Vec<_>>()).await?;
        let (asked, identity, read) = ask(authorizer.as_ref(), looks, identity, table, needs, targets).await?;
        let all: Vec<_> = asked.iter().flat_map(|one| &one.asks).cloned().collect();
        let mut allowed = authorizer.authorize(&identity, &all, &read).await?.into_iter();
        let (mut found, mut shown) = (HashMap::new(), HashSet::new());
        let mut may_list = true;
        for (need, Asked { resolved, asks }) in needs.iter().zip(asked) {
            // All answers are taken, so that the next need gets its own.
            let mut is_allowed = true;
            for ask in &asks {
                is_allowed &= allowed.next().unwrap_or(false) && identity.restriction.admits(ask);
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
                (false, Action::List, resolved) => {
                    may_list &= resolved != Some(Resolved::Workspace);
                    Outcome::Hidden
                }
                (false, _, _) => return Err(denied(&identity, need)),
            };
            // A hidden entity stays hidden, even if another need names it, too.
            match found.get_mut(&need.target) {
                None => drop(found.insert(need.target.clone(), outcome)),
                Some(before) if outcome == Outcome::Hidden => *before = outcome,
                Some(_) => {}
            }
        }
        let lists = needs.iter().any(|need| need.action == Action::List);
        let visible = if lists && may_list {
            identity.restriction.narrow(authorizer.visible(&identity).await?)
        } else {
            Visible::nothing()
        };
        let models = if looks { models(&all) } else { HashMap::new() };
        let along = Along::of(authorizer, &identity, models, within(&identity.workspace, &read));
        Ok(Self { identity, along, visible, found, shown })
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

/// The identity of the workspace of a request, if its item was read.
fn within(workspace: &Workspace, read: &Read) -> Option<WorkspaceIdentity> {
    read.get(&TableKey::here(workspace_key(workspace))).and_then(WorkspaceIdentity::of)
}

/// The registered models that were asked about, with their ids.
fn models(asked: &[Ask]) -> HashMap<RegisteredModelName, Option<String>> {
    let model = |ask: &Ask| match &ask.guard {
        Guarded::RegisteredModel(name) => {
            Some((name.clone(), ask.stored.as_ref().and_then(|stored| stored.id.clone())))
        }
        _ => None,
    };
    asked.iter().filter_map(model).collect()
}

/// The refusal, which is also logged. Texts that clients have chosen are escaped there.
fn denied(identity: &Identity, need: &Need) -> Error {
    let by = identity.caller.name();
    let Need { action, kind, target, .. } = need;
    tracing::info!(target: "audit", event = "denied", ?by, ?action, ?kind, ?target);
    Error::new(ErrorCode::PermissionDenied, "Permission denied")
}
