//! Resolves the targets of a request to stored entities.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use entities::{LocatedTrace, ModelLocation, RunLocation, locate_model, locate_run, locate_traces};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Name, rows};
use mlflow_api::{
    ErrorCode, EvaluationDatasetId, ExperimentId, McpServerName, RegisteredModelName, Result, SkillName, TraceId,
    UserName, Workspace,
};
use table::Table;

use crate::guard::Guard;
use crate::needs::Target;

/// Number of targets that are resolved concurrently.
const CONCURRENCY: usize = 16;

/// The entity of a target, as the parts of its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResolvedEntity {
    /// No stored entity. The target is an entity that will be created, or all entities of a kind.
    Workspace,
    Experiment(ExperimentId),
    Run(RunLocation),
    LoggedModel(ModelLocation),
    Trace(Arc<LocatedTrace>),
    Scorer(ExperimentId, String),
    RegisteredModel(RegisteredModelName),
    EvaluationDataset(EvaluationDatasetId),
    /// The experiment of an issue.
    Issue(ExperimentId),
    McpServer(McpServerName),
    Skill(SkillName),
    User(UserName),
}

impl ResolvedEntity {
    /// Returns the guard of the entity.
    pub(crate) fn guarded(&self, target: &Target) -> Guard {
        match self {
            Self::Workspace => Guard::Workspace(target.resource()),
            Self::Experiment(experiment) | Self::Issue(experiment) => Guard::Experiment(*experiment),
            Self::Run(at) => Guard::Experiment(at.experiment),
            Self::LoggedModel(at) => Guard::Experiment(at.experiment),
            Self::Trace(trace) => Guard::Experiment(trace.experiment()),
            Self::Scorer(experiment, name) => Guard::Scorer(*experiment, name.clone()),
            Self::RegisteredModel(name) => Guard::RegisteredModel(name.clone()),
            Self::EvaluationDataset(dataset) => Guard::EvaluationDataset(dataset.clone()),
            Self::McpServer(name) => Guard::McpServer(name.clone()),
            Self::Skill(name) => Guard::Skill(name.clone()),
            Self::User(user) => Guard::User(user.clone()),
        }
    }
}

/// Resolves targets and returns the results in the same order, with `None` for entities that do not
/// exist. Ids that this server generates contain the id of their experiment and take no request.
/// One request is sent for each experiment name, for each other id of a run, a logged model or an
/// issue, and per 100 traces, whose blocks are not read. Repeated targets are resolved once.
pub(crate) async fn resolve(
    table: &Table,
    workspace: &Workspace,
    targets: &[&Target],
) -> Result<Vec<Option<ResolvedEntity>>> {
    let mut seen = HashSet::new();
    let once: Vec<_> = targets.iter().copied().filter(|target| seen.insert(*target)).collect();
    let traces: Vec<_> =
        once.iter().filter_map(|target| if let Target::Trace(id) = target { Some(id) } else { None }).collect();
    let traces = locate_traces(table, &traces).await?;
    let traces = traces.into_iter().map(|(id, trace)| (id, Arc::new(trace))).collect();
    let places: Vec<_> = once.iter().map(|target| place(table, workspace, &traces, target)).collect();
    let places: Vec<_> = stream::iter(places).buffered(CONCURRENCY).try_collect().await?;
    let places: HashMap<_, _> = once.into_iter().zip(places).collect();
    Ok(targets.iter().map(|target| places.get(target).cloned().flatten()).collect())
}

async fn place(
    table: &Table,
    workspace: &Workspace,
    traces: &HashMap<TraceId, Arc<LocatedTrace>>,
    target: &Target,
) -> Result<Option<ResolvedEntity>> {
    Ok(match target {
        Target::Any(_) => Some(ResolvedEntity::Workspace),
        Target::Nothing(_) => None,
        Target::Experiment(experiment) => Some(ResolvedEntity::Experiment(*experiment)),
        Target::ExperimentNamed(name) => {
            let key = rows::ExperimentName::key(&workspace.as_str().into(), &Name::from(name.as_str()));
            let row = table.get(&key).await?;
            row.and_then(|row| entities::experiment_of_name(&row, name)).map(ResolvedEntity::Experiment)
        }
        Target::Run(run) => match locate_run(table, run.as_str()).await {
            Ok(at) => Some(ResolvedEntity::Run(at)),
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => None,
            Err(error) => return Err(error),
        },
        Target::LoggedModel(model) => locate_model(table, model.as_str()).await?.map(ResolvedEntity::LoggedModel),
        Target::Trace(trace) => traces.get(trace).cloned().map(ResolvedEntity::Trace),
        Target::Scorer(experiment, name) => Some(ResolvedEntity::Scorer(*experiment, name.clone())),
        Target::RegisteredModel(name) => Some(ResolvedEntity::RegisteredModel(name.clone())),
        Target::EvaluationDataset(dataset) => Some(ResolvedEntity::EvaluationDataset(dataset.clone())),
        Target::Issue(issue) => entities::locate_issue(table, issue).await?.map(ResolvedEntity::Issue),
        Target::McpServer(name) => Some(ResolvedEntity::McpServer(name.clone())),
        Target::Skill(name) => Some(ResolvedEntity::Skill(name.clone())),
        Target::User(user) => Some(ResolvedEntity::User(user.clone())),
    })
}
