//! The needs of an endpoint: what a request is going to do, and to which entities.

use std::collections::HashSet;

use mlflow_api::limits::MAX_SEARCHED_EXPERIMENTS;
use mlflow_api::{
    Error, EvaluationDatasetId, ExperimentId, IssueId, McpServerName, ModelId, RegisteredModelName, Result, RunId,
    SkillName, TraceId, UserName,
};

use crate::action::{Action, Permission, Resource};

/// The target of a need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// No entity in particular: one that will be created, or all entities that the caller may see.
    Any(Resource),
    /// An id that cannot belong to any entity.
    Nothing(Resource),
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
    /// A scorer, by its experiment and its name. It does not have to exist.
    Scorer(ExperimentId, String),
    /// A registered model or a prompt. It does not have to exist.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset.
    EvaluationDataset(EvaluationDatasetId),
    /// An issue.
    Issue(IssueId),
    /// An MCP server. It does not have to exist.
    McpServer(McpServerName),
    /// A skill. It does not have to exist.
    Skill(SkillName),
    /// A user. The user does not have to exist.
    User(UserName),
}

impl Target {
    /// Returns the kind of entity.
    #[must_use]
    pub const fn resource(&self) -> Resource {
        match self {
            Self::Any(resource) | Self::Nothing(resource) => *resource,
            Self::Experiment(_) | Self::ExperimentNamed(_) => Resource::Experiment,
            Self::Run(_) => Resource::Run,
            Self::LoggedModel(_) => Resource::LoggedModel,
            Self::Trace(_) => Resource::Trace,
            Self::Scorer(..) => Resource::Scorer,
            Self::RegisteredModel(_) => Resource::RegisteredModel,
            Self::EvaluationDataset(_) => Resource::EvaluationDataset,
            Self::Issue(_) => Resource::Issue,
            Self::McpServer(_) => Resource::McpServer,
            Self::Skill(_) => Resource::Skill,
            Self::User(_) => Resource::User,
        }
    }
}

/// An action on a target that an endpoint needs permission for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// The action.
    pub action: Action,
    /// The kind of the entity that is acted on: the target itself, or an entity within the target.
    pub kind: Resource,
    /// The target.
    pub target: Target,
    /// Whether any caller may learn that the entity does not exist. If so, a missing entity is
    /// reported without consulting the authorizer.
    pub reveals_absence: bool,
    /// Whether the need matters only to an authorizer that checks guards. Other authorizers skip
    /// it, and nothing is read to resolve it.
    pub only_if_guards_are_checked: bool,
}

/// Maximum number of entities that one request may name for one action. Equal to the number of
/// experiments that a search accepts ([`MAX_SEARCHED_EXPERIMENTS`]).
pub const MAX_NAMED_ENTITIES: usize = MAX_SEARCHED_EXPERIMENTS;

/// All needs of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    needs: Vec<Need>,
    /// Whether the request names more than [`MAX_NAMED_ENTITIES`] entities for one action. The
    /// excess entities are not collected.
    has_too_many: bool,
}

impl Needs {
    /// Returns no needs, for responses that contain no user's data. Only unguarded routes may need
    /// nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Returns the need to create an entity of a kind in the workspace.
    #[must_use]
    pub fn create(resource: Resource) -> Self {
        Self::of(Action::Create, [Target::Any(resource)])
    }

    /// Returns the need to create an entity of a kind within a target, such as a run in an
    /// experiment.
    #[must_use]
    pub fn create_in(target: Target, resource: Resource) -> Self {
        Self::nothing().and_in(Action::Create, resource, [target])
    }

    /// Returns the need to list entities of a kind.
    #[must_use]
    pub fn list(resource: Resource) -> Self {
        Self::of(Action::List, [Target::Any(resource)])
    }

    /// Returns the need to read an entity.
    #[must_use]
    pub fn read(target: Target) -> Self {
        Self::of(Action::Read, [target])
    }

    /// Returns the need to change an entity.
    #[must_use]
    pub fn update(target: Target) -> Self {
        Self::of(Action::Update, [target])
    }

    /// Returns the need to delete or restore an entity.
    #[must_use]
    pub fn delete(target: Target) -> Self {
        Self::of(Action::Delete, [target])
    }

    /// Returns the needs for one action on several entities.
    #[must_use]
    pub fn of(action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        Self::nothing().and(action, targets)
    }

    /// Returns the need for an action on entities of a kind within a target.
    #[must_use]
    pub fn of_in(action: Action, resource: Resource, target: Target) -> Self {
        Self::nothing().and_in(action, resource, [target])
    }

    /// Adds an action on more targets. Duplicate needs are dropped.
    #[must_use]
    pub fn and(self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        self.with(targets.into_iter().map(|target| (action, target.resource(), target)), false)
    }

    /// Adds an action on entities of a kind within these targets.
    #[must_use]
    pub fn and_in(self, action: Action, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.with(targets.into_iter().map(|target| (action, kind, target)), false)
    }

    /// Adds needs for entities that the request refers to without reading or changing them. The
    /// scope does not contain these entities. Only an authorizer that checks guards decides such
    /// needs; with any other authorizer, they cost nothing.
    #[must_use]
    pub fn and_naming(self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        let needs = targets.into_iter().map(|target| (action, target.resource(), target));
        self.with(needs, true)
    }

    /// Adds the needs to show entities of these kinds, or their ids, anywhere in the response. A
    /// refusal does not fail the request. Instead, [`Scope::shows`](crate::Scope::shows) reports
    /// what may be shown.
    #[must_use]
    pub fn showing(self, kinds: impl IntoIterator<Item = Resource>) -> Self {
        self.with(kinds.into_iter().map(|kind| (Action::Show, kind, Target::Any(kind))), false)
    }

    /// Adds the needs to show entities of a kind within these targets
    /// ([`Scope::shows_in`](crate::Scope::shows_in)).
    #[must_use]
    pub fn showing_in(self, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.and_in(Action::Show, kind, targets)
    }

    /// Adds the needs that are not present yet. Stops after [`MAX_NAMED_ENTITIES`] of them, and
    /// records that there are too many.
    fn with(mut self, needs: impl Iterator<Item = (Action, Resource, Target)>, only_if_looked_at: bool) -> Self {
        let mut seen: HashSet<Need> = self.needs.iter().cloned().collect();
        let before = self.needs.len();
        for (action, kind, target) in needs {
            let need =
                Need { action, kind, target, reveals_absence: false, only_if_guards_are_checked: only_if_looked_at };
            if !seen.insert(need.clone()) {
                continue;
            }
            if self.needs.len() - before == MAX_NAMED_ENTITIES {
                self.has_too_many = true;
                break;
            }
            self.needs.push(need);
        }
        self
    }

    /// Adds all needs of `others`.
    #[must_use]
    pub fn and_all(mut self, others: Self) -> Self {
        self.needs.extend(others.needs);
        self.has_too_many |= others.has_too_many;
        self
    }

    /// Returns these needs, or `others` if there are none. For endpoints whose requests may omit
    /// the entity.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        if self.is_empty() { others } else { self }
    }

    /// Returns the needs that the authorizer has to decide. `looks` is whether it checks guards.
    pub(crate) fn relevant_to_authorizer(&self, looks: bool) -> Self {
        let counts = |need: &&Need| looks || !need.only_if_guards_are_checked;
        Self { needs: self.needs.iter().filter(counts).cloned().collect(), has_too_many: self.has_too_many }
    }

    /// Rejects a request that names too many entities.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the request names more than [`MAX_NAMED_ENTITIES`] entities for
    /// one action.
    pub(crate) fn check_number(&self) -> Result<()> {
        if self.has_too_many {
            return Err(Error::invalid(format!(
                "A request names at most {MAX_NAMED_ENTITIES} entities. Send several requests."
            )));
        }
        Ok(())
    }

    /// Marks all needs so that a missing entity is reported as missing to every caller, even to
    /// those without permission. MLflow does so for a few calls.
    #[must_use]
    pub fn revealing_absence(mut self) -> Self {
        for need in &mut self.needs {
            need.reveals_absence = true;
        }
        self
    }

    /// Checks whether there are no needs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Iterates over the needs.
    pub fn iter(&self) -> impl Iterator<Item = &Need> {
        self.needs.iter()
    }

    /// Checks whether the needs include at least the permission of a route. For a route without a
    /// guarded entity, checks that there are no needs. If a route's permission is for experiments,
    /// needs for any kind of entity that experiments guard satisfy it as well.
    #[must_use]
    pub fn include(&self, permission: Permission) -> bool {
        if permission == Permission::Share {
            return self.iter().any(|need| need.action == Action::Share);
        }
        let Some((action, kind)) = permission.action() else { return self.is_empty() };
        let is_named = |named: Resource| {
            named == kind
                || named.guard() == kind
                || (permission == Permission::ReadFiles
                    && matches!(named, Resource::ModelVersion | Resource::SkillVersion))
        };
        self.iter().any(|need| need.action == action && is_named(need.kind))
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
        let experiment = Target::Experiment(ExperimentId::from_number(7).unwrap());
        let created = Needs::create_in(experiment, Resource::Run);
        assert!(created.include(Permission::Create(Resource::Run)));
        let model = Target::RegisteredModel(RegisteredModelName::named("m"));
        let version = Needs::of_in(Action::Read, Resource::ModelVersion, model);
        assert!(version.include(Permission::ReadFiles) && !version.include(Permission::Read(Resource::Experiment)));
        assert!(!needs.include(Permission::ReadFiles));
        for other in [
            Permission::Open,
            Permission::SignedIn,
            Permission::Read(Resource::Run),
            Permission::Update(Resource::LoggedModel),
            Permission::Read(Resource::Experiment),
        ] {
            assert!(!needs.include(other) && !created.include(other), "{other:?}");
        }
        assert!(!Needs::nothing().include(Permission::List(Resource::Run)));
        assert!(Needs::nothing().include(Permission::Open) && Needs::nothing().include(Permission::SignedIn));
    }

    #[test]
    fn a_request_names_a_bounded_number_of_entities() {
        let experiments = |number: usize| {
            let ids = (0..number as u64).map(|id| Target::Experiment(ExperimentId::from_number(id).unwrap()));
            ids.chain([Target::Experiment(ExperimentId::DEFAULT)])
        };
        let most =
            Needs::of(Action::Read, experiments(MAX_NAMED_ENTITIES)).and(Action::List, experiments(MAX_NAMED_ENTITIES));
        assert_eq!((most.iter().count(), most.check_number()), (2 * MAX_NAMED_ENTITIES, Ok(())));
        for more in [
            Needs::of(Action::Read, experiments(MAX_NAMED_ENTITIES + 1)),
            Needs::nothing().and_naming(Action::Read, experiments(3 * MAX_NAMED_ENTITIES)),
            Needs::nothing().and_all(Needs::nothing().and_in(
                Action::Read,
                Resource::Run,
                experiments(MAX_NAMED_ENTITIES + 1),
            )),
        ] {
            assert_eq!(more.iter().count(), MAX_NAMED_ENTITIES);
            let error = more.relevant_to_authorizer(true).check_number().unwrap_err();
            assert_eq!(error.message, "A request names at most 10000 entities. Send several requests.");
        }
    }
}
