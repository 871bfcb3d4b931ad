//! The needs of an endpoint.

use std::collections::HashSet;

use mlflow_api::limits::SEARCHED_EXPERIMENTS;
use mlflow_api::{
    Error, EvaluationDatasetId, ExperimentId, ModelId, RegisteredModelName, Result, RunId, TraceId, UserName,
};

use crate::kind::{Action, Permission, Resource};

/// The target of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// No entity in particular: one that is to be created, or all that the caller may see.
    Any(Resource),
    /// An entity whose id can be that of none.
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
    /// A scorer, by its experiment and its name. It need not be there.
    Scorer(ExperimentId, String),
    /// A registered model or a prompt. It need not be there.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset.
    EvaluationDataset(EvaluationDatasetId),
    /// A user. He need not be there.
    User(UserName),
}

impl Target {
    /// The kind of entity.
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
            Self::User(_) => Resource::User,
        }
    }
}

/// One thing that an endpoint needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// The action.
    pub action: Action,
    /// The kind of entity: that of the target, or one that is in it.
    pub kind: Resource,
    /// The target.
    pub target: Target,
    /// Whether everybody is told that there is no such entity: nobody is asked then whether the caller may know.
    pub tells_of_absence: bool,
    /// Whether only an authorizer that looks at guards has to check these needs. For any other,
    /// nothing is read to find the named entities.
    pub only_if_looked_at: bool,
}

/// The largest number of entities that one request may name for one action: as many as a search takes experiments
/// ([`SEARCHED_EXPERIMENTS`]).
pub const MAX_NAMED: usize = SEARCHED_EXPERIMENTS;

/// All that an endpoint needs for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    needs: Vec<Need>,
    /// Whether the request names more than [`MAX_NAMED`] entities for one action. The entities beyond are not collected.
    is_too_many: bool,
}

impl Needs {
    /// Nothing: the answer says no word about anybody's data. Only routes that nothing guards may need nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// To create an entity of a kind in the workspace.
    #[must_use]
    pub fn create(resource: Resource) -> Self {
        Self::of(Action::Create, [Target::Any(resource)])
    }

    /// To create an entity of a kind in another one.
    #[must_use]
    pub fn create_in(target: Target, resource: Resource) -> Self {
        Self::nothing().and_in(Action::Create, resource, [target])
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

    /// The same for entities within another one.
    #[must_use]
    pub fn of_in(action: Action, resource: Resource, target: Target) -> Self {
        Self::nothing().and_in(action, resource, [target])
    }

    /// These needs and others. Targets that are named twice are needed once.
    #[must_use]
    pub fn and(self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        self.with(targets.into_iter().map(|target| (action, target.resource(), target)), false)
    }

    /// These needs and others, of entities of a kind in those that are named.
    #[must_use]
    pub fn and_in(self, action: Action, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.with(targets.into_iter().map(|target| (action, kind, target)), false)
    }

    /// These needs and others of entities that are only named: nothing of them is read or changed, so that a scope does not hold them. They
    /// are needed where the authorizer looks at guards, and cost nothing where it does not.
    #[must_use]
    pub fn and_naming(self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        let needs = targets.into_iter().map(|target| (action, target.resource(), target));
        self.with(needs, true)
    }

    /// These needs, and to show entities of some kinds in the answer, or their ids, whatever is in it: the scope says which it may
    /// ([`Scope::shows`](crate::Scope::shows)). A refusal of that fails no request.
    #[must_use]
    pub fn showing(self, kinds: impl IntoIterator<Item = Resource>) -> Self {
        self.with(kinds.into_iter().map(|kind| (Action::Show, kind, Target::Any(kind))), false)
    }

    /// The same of entities of a kind that are in those that are named ([`Scope::shows_in`](crate::Scope::shows_in)).
    #[must_use]
    pub fn showing_in(self, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.and_in(Action::Show, kind, targets)
    }

    /// Adds the needs that are not there yet, at most [`MAX_NAMED`] of them.
    fn with(mut self, needs: impl Iterator<Item = (Action, Resource, Target)>, only_if_looked_at: bool) -> Self {
        let mut seen: HashSet<Need> = self.needs.iter().cloned().collect();
        let before = self.needs.len();
        for (action, kind, target) in needs {
            let need = Need { action, kind, target, tells_of_absence: false, only_if_looked_at };
            if !seen.insert(need.clone()) {
                continue;
            }
            if self.needs.len() - before == MAX_NAMED {
                self.is_too_many = true;
                break;
            }
            self.needs.push(need);
        }
        self
    }

    /// These needs and others.
    #[must_use]
    pub fn and_all(mut self, others: Self) -> Self {
        self.needs.extend(others.needs);
        self.is_too_many |= others.is_too_many;
        self
    }

    /// These needs, or others where nothing is needed: a request may name no entity at all.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        if self.is_empty() { others } else { self }
    }

    /// Those that count for an authorizer that looks at guards, or does not.
    pub(crate) fn counting(&self, looks: bool) -> Self {
        let counts = |need: &&Need| looks || !need.only_if_looked_at;
        Self { needs: self.needs.iter().filter(counts).cloned().collect(), is_too_many: self.is_too_many }
    }

    /// Refuses a request that names too many entities.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE`, if it names more than [`MAX_NAMED`] for one action.
    pub(crate) fn check_number(&self) -> Result<()> {
        if self.is_too_many {
            return Err(Error::invalid(format!(
                "A request names at most {MAX_NAMED} entities. Send several requests."
            )));
        }
        Ok(())
    }

    /// The same needs of a request that tells everybody if there is no such entity, as MLflow does in few places.
    #[must_use]
    pub fn telling_of_absence(mut self) -> Self {
        for need in &mut self.needs {
            need.tells_of_absence = true;
        }
        self
    }

    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Need> {
        self.needs.iter()
    }

    /// Whether they hold at least the permission of a route, and nothing where nothing guards
    /// the route. If a route names an experiment, its requests may name anything that experiments
    /// guard.
    #[must_use]
    pub fn include(&self, permission: Permission) -> bool {
        let Some((action, kind)) = permission.action() else { return self.is_empty() };
        let is_named = |named: Resource| match permission {
            Permission::Share => true,
            Permission::ReadFiles => [named, named.guard()].contains(&kind) || named == Resource::ModelVersion,
            _ => [named, named.guard()].contains(&kind),
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
        let most = Needs::of(Action::Read, experiments(MAX_NAMED)).and(Action::List, experiments(MAX_NAMED));
        assert_eq!((most.iter().count(), most.check_number()), (2 * MAX_NAMED, Ok(())));
        for more in [
            Needs::of(Action::Read, experiments(MAX_NAMED + 1)),
            Needs::nothing().and_naming(Action::Read, experiments(3 * MAX_NAMED)),
            Needs::nothing().and_all(Needs::nothing().and_in(Action::Read, Resource::Run, experiments(MAX_NAMED + 1))),
        ] {
            assert_eq!(more.iter().count(), MAX_NAMED);
            let error = more.counting(true).check_number().unwrap_err();
            assert_eq!(error.message, "A request names at most 10000 entities. Send several requests.");
        }
    }
}
