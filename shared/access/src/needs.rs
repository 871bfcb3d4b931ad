//! The needs of an endpoint.

use mlflow_api::{EvaluationDatasetId, ExperimentId, ModelId, RegisteredModelName, RunId, TraceId, UserName};

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

/// All that an endpoint needs for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(Vec<Need>);

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
        self.with(targets.into_iter().map(|target| (action, target.resource(), target)))
    }

    /// These needs and others, of entities of a kind in those that are named.
    #[must_use]
    pub fn and_in(self, action: Action, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.with(targets.into_iter().map(|target| (action, kind, target)))
    }

    /// These needs and others of entities that are only named: nothing of them is read or changed, so that a scope does not hold them. They
    /// are needed where the authorizer looks at guards, and cost nothing where it does not.
    #[must_use]
    pub fn and_naming(mut self, action: Action, targets: impl IntoIterator<Item = Target>) -> Self {
        let needs = targets.into_iter().map(|target| Need {
            action,
            kind: target.resource(),
            target,
            tells_of_absence: false,
            only_if_looked_at: true,
        });
        self.0.extend(needs);
        self
    }

    /// These needs, and to show entities of some kinds in the answer, or their ids, whatever is in it: the scope says which it may
    /// ([`Scope::shows`](crate::Scope::shows)). A refusal of that fails no request.
    #[must_use]
    pub fn showing(self, kinds: impl IntoIterator<Item = Resource>) -> Self {
        self.with(kinds.into_iter().map(|kind| (Action::Show, kind, Target::Any(kind))))
    }

    /// The same of entities of a kind that are in those that are named ([`Scope::shows_in`](crate::Scope::shows_in)).
    #[must_use]
    pub fn showing_in(self, kind: Resource, targets: impl IntoIterator<Item = Target>) -> Self {
        self.and_in(Action::Show, kind, targets)
    }

    fn with(mut self, needs: impl Iterator<Item = (Action, Resource, Target)>) -> Self {
        let mut seen: std::collections::HashSet<Need> = self.0.iter().cloned().collect();
        let needs = needs.map(|(action, kind, target)| Need {
            action,
            kind,
            target,
            tells_of_absence: false,
            only_if_looked_at: false,
        });
        self.0.extend(needs.filter(|need| seen.insert(need.clone())));
        self
    }

    /// These needs and others.
    #[must_use]
    pub fn and_all(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// These needs, or others where nothing is needed: a request may name no entity at all.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        if self.is_empty() { others } else { self }
    }

    /// Those that count for an authorizer that looks at guards, or does not.
    pub(crate) fn counting(&self, looks: bool) -> Self {
        Self(self.0.iter().filter(|need| looks || !need.only_if_looked_at).cloned().collect())
    }

    /// The same needs of a request that tells everybody if there is no such entity, as MLflow does in few places.
    #[must_use]
    pub fn telling_of_absence(mut self) -> Self {
        for need in &mut self.0 {
            need.tells_of_absence = true;
        }
        self
    }

    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Need> {
        self.0.iter()
    }

    /// Whether they hold at least the permission of a route, and nothing where nothing guards
    /// the route. If a route names an experiment, its requests may name anything that experiments
    /// guard.
    #[must_use]
    pub fn include(&self, permission: Permission) -> bool {
        match permission.action() {
            _ if permission == Permission::Share => self.iter().any(|need| need.action == Action::Share),
            Some((action, kind)) => {
                self.iter().any(|need| need.action == action && (need.kind == kind || need.kind.guard() == kind))
            }
            None => self.is_empty(),
        }
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
}
