//! The requirements of operations: MLflow's validators (`mlflow/server/auth/__init__.py`), for each
//! ask of the frame.

use access::{Action, Ask, Guarded, Resource};
use mlflow_api::ExperimentId;
use mlflow_api::auth::{EVERYTHING, GrantType};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The kind of act that a grant has to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing in particular: it may not be denied.
    NotDenied,
    /// To read it.
    Read,
    /// To use it.
    Use,
    /// To change it.
    Update,
    /// To delete it.
    Delete,
    /// To grant others rights to it.
    Manage,
}

/// One thing that an operation requires. Where nothing is granted for its own key, the fallbacks are asked in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub(crate) kind: GrantType,
    pub(crate) pattern: String,
    pub(crate) action: Act,
    fallbacks: Vec<(GrantType, String, Act)>,
}

impl Requirement {
    /// An action on a resource, or on all of a type.
    #[must_use]
    pub fn of(kind: GrantType, pattern: &str, action: Act) -> Self {
        Self { kind, pattern: pattern.to_owned(), action, fallbacks: Vec::new() }
    }

    /// The same; where nothing is granted so far, this counts.
    #[must_use]
    pub fn or(mut self, kind: GrantType, pattern: &str, action: Act) -> Self {
        self.fallbacks.push((kind, pattern.to_owned(), action));
        self
    }

    /// Its own key and the fallbacks, each with the action that a grant has to allow.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (GrantType, &str, Act)> {
        let own = (self.kind, self.pattern.as_str(), self.action);
        std::iter::once(own).chain(self.fallbacks.iter().map(|(kind, pattern, act)| (*kind, pattern.as_str(), *act)))
    }
}

/// The requirement of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// To be an administrator.
    Administrators,
    /// To administer the workspace.
    WorkspaceAdministrators,
    /// All of these, and, if there are any, one of those.
    Needs {
        /// All of these.
        all: Vec<Requirement>,
        /// One of these.
        any: Vec<Requirement>,
    },
}

impl Rule {
    /// All of these.
    #[must_use]
    pub fn needs(all: impl IntoIterator<Item = Requirement>) -> Self {
        Self::Needs { all: all.into_iter().collect(), any: Vec::new() }
    }
}

/// The characters that Python's `urllib.parse.quote(…, safe="")` quotes.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// The pattern of a scorer.
#[must_use]
pub(crate) fn scorer_pattern(experiment: ExperimentId, name: &str) -> String {
    format!("{experiment}/{}", utf8_percent_encode(name, QUOTED))
}

/// The experiment and the name of a scorer, as a pattern names it.
#[must_use]
pub fn scorer_of(pattern: &str) -> Option<(ExperimentId, String)> {
    let (experiment, name) = pattern.split_once('/')?;
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    Some((ExperimentId::parse(experiment).ok()?, name))
}

/// A pattern as rules ask for it: of an id or a name that is written in several ways, one.
#[must_use]
pub fn canonical(kind: GrantType, pattern: &str) -> String {
    let one = match kind {
        GrantType::Experiment => ExperimentId::parse(pattern).ok().map(|id| id.to_string()),
        GrantType::Scorer => scorer_of(pattern).map(|(experiment, name)| scorer_pattern(experiment, &name)),
        _ => None,
    };
    one.unwrap_or_else(|| pattern.to_owned())
}

/// Tiers whose entities are gone with their experiment (`_EXPERIMENT_CASCADE_TIERS`).
const IN_EXPERIMENT: [GrantType; 7] = [
    GrantType::Run,
    GrantType::Trace,
    GrantType::LoggedModel,
    GrantType::Assessment,
    GrantType::ReviewQueue,
    GrantType::Scorer,
    GrantType::ScorerVersion,
];

/// The rule for an ask of the frame.
#[must_use]
pub fn rule_of(ask: &Ask) -> Rule {
    match &ask.guard {
        // Only administrators are told what does not exist. The authorizer has already passed what
        // users may do with themselves.
        Guarded::Absent(_) | Guarded::EvaluationDataset(_) | Guarded::User(_) => Rule::Administrators,
        Guarded::Workspace(_) => in_workspace(ask.action, ask.kind),
        Guarded::Experiment(experiment) => in_experiment(ask.action, ask.kind, &experiment.to_string()),
        Guarded::Scorer(experiment, name) => {
            of_scorer(ask.action, ask.kind, &experiment.to_string(), &scorer_pattern(*experiment, name))
        }
        Guarded::RegisteredModel(name) => of_model(ask, name.as_str()),
    }
}

/// A user with a level for a type may create and list it, unless that is denied. Lists leave out
/// entities that he may not read.
fn in_workspace(action: Action, kind: Resource) -> Rule {
    match (action, kind) {
        // Everybody who is known may see who there is; of workspaces, their endpoints show those in which somebody has a role.
        (Action::Read, Resource::User) | (Action::List | Action::Read, Resource::Workspace) => Rule::needs([]),
        // Administrators of the workspace make users for it, give them roles, and grant levels for
        // all of a type.
        (Action::Create, Resource::User)
        | (_, Resource::Role)
        | (Action::Share | Action::Manage, Resource::Workspace) => Rule::WorkspaceAdministrators,
        (_, Resource::EvaluationDataset | Resource::User | Resource::Workspace) => Rule::Administrators,
        (Action::Create | Action::Show, kind) => {
            Rule::needs([Requirement::of(type_of(kind), EVERYTHING, Act::NotDenied)])
        }
        // Selecting other entities by their runs, whichever these are.
        (Action::Read, Resource::Run) => Rule::needs([Requirement::of(GrantType::Run, EVERYTHING, Act::NotDenied)]),
        (Action::List, _) => Rule::needs([]),
        _ => Rule::Administrators,
    }
}

fn in_experiment(action: Action, kind: Resource, experiment: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Experiment, experiment, action);
    match kind {
        Resource::Experiment if action == Action::Delete => {
            let tier = |tier| {
                Requirement::of(tier, EVERYTHING, Act::Delete).or(GrantType::Experiment, experiment, Act::Delete)
            };
            Rule::needs(std::iter::once(of(Act::Delete)).chain(IN_EXPERIMENT.map(tier)))
        }
        // Scorers are listed one by one: grants for the experiment say nothing about them.
        Resource::Scorer if action == Action::List => Rule::needs([]),
        // For scorers, settings of the experiment.
        Resource::Experiment | Resource::EvaluationDataset | Resource::Scorer => Rule::needs([of(act(action))]),
        Resource::Assessment => of_assessment(action, experiment),
        Resource::Run | Resource::LoggedModel | Resource::Trace => {
            let tier = type_of(kind);
            match action {
                Action::Create => Rule::needs([of(Act::Update), Requirement::of(tier, EVERYTHING, Act::NotDenied)]),
                _ => Rule::needs([of(Act::Read), in_tier(tier, experiment, act(action))]),
            }
        }
        _ => Rule::Administrators,
    }
}

/// The requirement of a grant for a tier, or else for the experiment.
fn in_tier(tier: GrantType, experiment: &str, action: Act) -> Requirement {
    Requirement::of(tier, EVERYTHING, action).or(GrantType::Experiment, experiment, action)
}

fn of_assessment(action: Action, experiment: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Experiment, experiment, action);
    let addressed = [of(Act::Read), in_tier(GrantType::Trace, experiment, Act::Read)];
    let then = |requirement| Rule::needs(addressed.clone().into_iter().chain([requirement]));
    match action {
        // The experiment allows the writing, or a grant for traces does; neither weakens the other.
        Action::Create => Rule::Needs {
            all: addressed
                .clone()
                .into_iter()
                .chain([Requirement::of(GrantType::Assessment, EVERYTHING, Act::NotDenied)])
                .collect(),
            any: vec![of(Act::Update), Requirement::of(GrantType::Trace, EVERYTHING, Act::Update)],
        },
        Action::Delete => then(Requirement::of(GrantType::Assessment, EVERYTHING, Act::Delete).or(
            GrantType::Experiment,
            experiment,
            Act::Update,
        )),
        _ => then(in_tier(GrantType::Assessment, experiment, act(action))),
    }
}

fn of_scorer(action: Action, kind: Resource, experiment: &str, scorer: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Scorer, scorer, action);
    let version =
        |action| Requirement::of(GrantType::ScorerVersion, EVERYTHING, action).or(GrantType::Scorer, scorer, action);
    match (action, kind) {
        (Action::Create, _) => Rule::needs([
            Requirement::of(GrantType::Experiment, experiment, Act::Update),
            of(Act::NotDenied),
            Requirement::of(GrantType::ScorerVersion, EVERYTHING, Act::NotDenied),
        ]),
        (Action::List | Action::Read, _) => Rule::needs([of(Act::Read), version(Act::NotDenied)]),
        (Action::Delete, Resource::ScorerVersion) => Rule::needs([of(Act::Read), version(Act::Delete)]),
        (Action::Delete, _) => Rule::needs([of(Act::Delete), version(Act::Delete)]),
        _ => Rule::needs([of(act(action))]),
    }
}

fn of_model(ask: &Ask, name: &str) -> Rule {
    let is_prompt = matches!(ask.kind, Resource::Prompt | Resource::PromptVersion)
        || ask.stored.as_ref().is_some_and(|stored| stored.is_prompt);
    let (container, tier) = if is_prompt {
        (GrantType::Prompt, GrantType::PromptVersion)
    } else {
        (GrantType::RegisteredModel, GrantType::RegisteredModelVersion)
    };
    let of = |action| Requirement::of(container, name, action);
    let not_denied = Requirement::of(tier, EVERYTHING, Act::NotDenied);
    let version = |action| Requirement::of(tier, EVERYTHING, action).or(container, name, action);
    match (ask.kind, ask.action) {
        (Resource::ModelVersion | Resource::PromptVersion, _) if ask.stored.is_none() => Rule::Administrators,
        (Resource::ModelVersion | Resource::PromptVersion, action) => match action {
            Action::Create => Rule::needs([of(Act::Update), not_denied]),
            Action::List | Action::Read | Action::Show => Rule::needs([of(Act::Read), not_denied]),
            _ => Rule::needs([of(Act::Read), version(act(action))]),
        },
        (_, Action::Delete) => Rule::needs([of(Act::Delete), version(Act::Delete)]),
        (_, Action::Create) => Rule::needs([of(Act::NotDenied)]),
        (_, action) => Rule::needs([of(act(action))]),
    }
}

const fn act(action: Action) -> Act {
    match action {
        Action::List | Action::Read | Action::Show => Act::Read,
        Action::Use => Act::Use,
        Action::Create | Action::Update => Act::Update,
        Action::Delete => Act::Delete,
        Action::Manage | Action::Share => Act::Manage,
    }
}

/// MLflow's type of a kind.
#[must_use]
pub(crate) fn type_of(kind: Resource) -> GrantType {
    match kind {
        // Evaluation datasets are no type of grants: their experiments are.
        Resource::Experiment | Resource::EvaluationDataset => GrantType::Experiment,
        Resource::Run => GrantType::Run,
        Resource::Trace => GrantType::Trace,
        Resource::Assessment => GrantType::Assessment,
        Resource::LoggedModel => GrantType::LoggedModel,
        Resource::Scorer => GrantType::Scorer,
        Resource::ScorerVersion => GrantType::ScorerVersion,
        Resource::RegisteredModel => GrantType::RegisteredModel,
        Resource::Prompt => GrantType::Prompt,
        Resource::ModelVersion => GrantType::RegisteredModelVersion,
        Resource::PromptVersion => GrantType::PromptVersion,
        Resource::Workspace | Resource::User | Resource::Role => GrantType::Workspace,
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::RegisteredModelName;
    use mlflow_api::auth::Level;

    use super::*;
    use crate::grants::Grants;

    /// Whether somebody with these grants may do this, where nothing granted is `READ`.
    fn may(grants: &[(GrantType, &str, Level)], action: Action, kind: Resource, guard: Guarded) -> bool {
        let mut all = Grants::default();
        for (kind, pattern, level) in grants {
            all.add(*kind, pattern, *level);
        }
        let stored = access::Stored {
            workspace: mlflow_api::Workspace::default(),
            is_prompt: false,
            owner: None,
            id: None,
            home: None,
        };
        all.meet(&rule_of(&Ask { action, kind, guard, stored: Some(stored) }), Level::Read)
    }

    fn seven() -> Guarded {
        Guarded::Experiment(ExperimentId::from_number(7).unwrap())
    }

    #[test]
    fn what_is_denied_may_not_be_shown_nor_looked_for() {
        let denied = [(GrantType::Run, EVERYTHING, Level::Deny)];
        let (run, model) = (Resource::Run, Resource::LoggedModel);
        for action in [Action::Show, Action::Read] {
            assert!(!may(&denied, action, run, Guarded::Workspace(run)), "{action:?}");
            assert!(may(&[], action, run, Guarded::Workspace(run)), "{action:?}");
        }
        assert!(may(&denied, Action::Show, model, Guarded::Workspace(model)));
        // All traces at once are for administrators.
        assert!(!may(&[], Action::Read, Resource::Trace, Guarded::Workspace(Resource::Trace)));
    }

    #[test]
    fn assessments_are_shown_to_those_who_may_read_them() {
        let shows = |grants: &[(GrantType, &str, Level)]| may(grants, Action::Show, Resource::Assessment, seven());
        assert!(shows(&[]));
        assert!(!shows(&[(GrantType::Assessment, EVERYTHING, Level::Deny)]));
        assert!(!shows(&[(GrantType::Experiment, "7", Level::Deny)]));
        assert!(!shows(&[(GrantType::Trace, EVERYTHING, Level::Deny)]));
    }

    #[test]
    fn versions_are_shown_to_those_who_are_not_denied_them() {
        let name = Guarded::RegisteredModel(RegisteredModelName::named("m"));
        let shows =
            |grants: &[(GrantType, &str, Level)]| may(grants, Action::Show, Resource::ModelVersion, name.clone());
        assert!(shows(&[]) && shows(&[(GrantType::PromptVersion, EVERYTHING, Level::Deny)]));
        assert!(!shows(&[(GrantType::RegisteredModelVersion, EVERYTHING, Level::Deny)]));
    }

    #[test]
    fn an_assessment_is_made_by_who_may_change_the_experiment_or_traces() {
        let makes = |grants: &[(GrantType, &str, Level)]| may(grants, Action::Create, Resource::Assessment, seven());
        let (experiment, traces) = ((GrantType::Experiment, "7"), (GrantType::Trace, EVERYTHING));
        let of = |(kind, pattern): (GrantType, &'static str), level| (kind, pattern, level);
        assert!(!makes(&[]));
        assert!(makes(&[of(experiment, Level::Edit)]) && makes(&[of(traces, Level::Edit)]));
        // A grant for traces does not weaken that of the experiment, unless it denies.
        assert!(makes(&[of(experiment, Level::Edit), of(traces, Level::Read)]));
        assert!(!makes(&[of(experiment, Level::Edit), of(traces, Level::Deny)]));
        assert!(!makes(&[of(experiment, Level::Deny), of(traces, Level::Edit)]));
        let denied = (GrantType::Assessment, EVERYTHING, Level::Deny);
        assert!(!makes(&[of(experiment, Level::Manage), denied]));
    }
}
