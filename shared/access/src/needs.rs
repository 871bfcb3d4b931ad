//! What an endpoint needs.

use mlflow_api::{EvaluationDatasetId, ExperimentId, ModelId, RegisteredModelName, RunId, TraceId};

/// What is done to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Create one.
    Create,
    /// Show it among others. What the caller may not read is left out of the answer and is no error.
    List,
    /// Read it.
    Read,
    /// Change it.
    Update,
    /// Delete or restore it.
    Delete,
}

/// A kind of entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// An experiment, named by its id or its name. Scorers are guarded by their experiment.
    Experiment,
    /// A run; its experiment guards it.
    Run,
    /// A logged model; its experiment guards it.
    LoggedModel,
    /// A trace; its experiment guards it, and its assessments with it.
    Trace,
    /// A registered model or a prompt, named by its name. It guards its versions.
    RegisteredModel,
    /// An evaluation dataset, named by its id. It belongs to no experiment, but may be listed by several.
    EvaluationDataset,
}

impl Resource {
    /// The kind of entity that guards it.
    const fn guard(self) -> Self {
        match self {
            Self::Run | Self::LoggedModel | Self::Trace => Self::Experiment,
            other => other,
        }
    }
}

/// The least that a row of a route table needs, for its reader; a test holds it against the [`Needs`] of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Open to everybody, without a word about anybody's data: health, version, what the server can do.
    Public,
    /// Create an entity of this kind.
    Create(Resource),
    /// List entities of this kind; the answer holds those the caller may read.
    List(Resource),
    /// Read the entity the request names.
    Read(Resource),
    /// Change it.
    Update(Resource),
    /// Delete or restore it.
    Delete(Resource),
}

impl Permission {
    /// The action and the kind of entity; `None` for what is open to everybody.
    #[must_use]
    pub const fn action(self) -> Option<(Action, Resource)> {
        match self {
            Self::Public => None,
            Self::Create(resource) => Some((Action::Create, resource)),
            Self::List(resource) => Some((Action::List, resource)),
            Self::Read(resource) => Some((Action::Read, resource)),
            Self::Update(resource) => Some((Action::Update, resource)),
            Self::Delete(resource) => Some((Action::Delete, resource)),
        }
    }
}

/// What an endpoint acts on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// No entity in particular: one that is to be created, or all that the caller may see.
    Any(Resource),
    /// An experiment by its id.
    Experiment(ExperimentId),
    /// An experiment by its name.
    ExperimentNamed(String),
    /// A run.
    Run(RunId),
    /// A logged model.
    LoggedModel(ModelId),
    /// A trace.
    Trace(TraceId),
    /// A registered model or a prompt.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset.
    EvaluationDataset(EvaluationDatasetId),
}

impl Target {
    /// The kind of entity.
    #[must_use]
    pub const fn resource(&self) -> Resource {
        match self {
            Self::Any(resource) => *resource,
            Self::Experiment(_) | Self::ExperimentNamed(_) => Resource::Experiment,
            Self::Run(_) => Resource::Run,
            Self::LoggedModel(_) => Resource::LoggedModel,
            Self::Trace(_) => Resource::Trace,
            Self::RegisteredModel(_) => Resource::RegisteredModel,
            Self::EvaluationDataset(_) => Resource::EvaluationDataset,
        }
    }
}

/// One thing that an endpoint needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// What it does.
    pub action: Action,
    /// To what.
    pub target: Target,
}

/// All that an endpoint needs for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(Vec<Need>);

impl Needs {
    /// Nothing: the answer says no word about anybody's data. A request that names no entity, such as a search of no experiments,
    /// needs nothing either.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// To create an entity of a kind.
    #[must_use]
    pub fn create(resource: Resource) -> Self {
        Self::of(Action::Create, [Target::Any(resource)])
    }

    /// To list entities of a kind.
    #[must_use]
    pub fn list(resource: Resource) -> Self {
        Self::of(Action::List, [Target::Any(resource)])
    }

    /// To read an entity.
    #[must_use]
    pub fn read(target: Target) -> Self {
        Self::of(Action::Read, [target])
    }

    /// To change an entity.
    #[must_use]
    pub fn update(target: Target) -> Self {
        Self::of(Action::Update, [target])
    }

    /// To delete or restore an entity.
    #[must_use]
    pub fn delete(target: Target) -> Self {
        Self::of(Action::Delete, [target])
    }

    /// The same action on several entities.
    #[must_use]
    pub fn of(action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        Self::nothing().and(action, targets)
    }

    /// These needs and others. What is named twice is needed once.
    #[must_use]
    pub fn and(mut self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        let mut seen: std::collections::HashSet<Need> = self.0.iter().cloned().collect();
        let needs = targets.into_iter().map(|target| Need { action, target });
        self.0.extend(needs.filter(|need| seen.insert(need.clone())));
        self
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Need> {
        self.0.iter()
    }

    /// Whether they hold what a route's row says is the least; a request that names no entity needs nothing. A row that names an experiment
    /// is one whose requests may name any of what experiments guard.
    #[must_use]
    pub fn include(&self, permission: Permission) -> bool {
        let is_least = |need: &Need| {
            let resource = need.target.resource();
            let of_row = permission.action();
            of_row == Some((need.action, resource)) || of_row == Some((need.action, resource.guard()))
        };
        self.0.is_empty() || self.iter().any(is_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_hold_the_permission_of_their_row() {
        let run = Target::Run(RunId::named("r").unwrap());
        let needs = Needs::update(run.clone()).and(Action::Update, [run.clone(), run]);
        assert_eq!(needs.iter().count(), 1);
        assert!(needs.include(Permission::Update(Resource::Run)));
        assert!(needs.include(Permission::Update(Resource::Experiment)));
        for other in [Permission::Public, Permission::Read(Resource::Run), Permission::Update(Resource::LoggedModel)] {
            assert!(!needs.include(other), "{other:?}");
        }
    }
}
