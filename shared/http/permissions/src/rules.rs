//! The requirements of operations: MLflow's validators (`mlflow/server/auth/__init__.py`),
//! expressed for each [`AccessCheck`].

use access::{AccessCheck, Action, Guard, Resource};
use mlflow_api::ExperimentId;
use mlflow_api::auth::{ALL_RESOURCES, GrantType};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The action that a grant has to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAction {
    /// Any action, as long as the level is not a denial.
    NotDenied,
    /// Read the resource.
    Read,
    /// Use the resource.
    Use,
    /// Change the resource.
    Update,
    /// Delete the resource.
    Delete,
    /// Grant rights to the resource to other users.
    Manage,
}

/// A requirement of an operation. If there is no grant for its own key, the fallbacks are tried in
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub(crate) kind: GrantType,
    pub(crate) pattern: String,
    pub(crate) action: RequiredAction,
    fallbacks: Vec<(GrantType, String, RequiredAction)>,
}

impl Requirement {
    /// Creates a requirement for an action on a resource, or on all resources of a type.
    #[must_use]
    pub fn of(kind: GrantType, pattern: &str, action: RequiredAction) -> Self {
        Self { kind, pattern: pattern.to_owned(), action, fallbacks: Vec::new() }
    }

    /// Adds a fallback, which applies if there is no grant for any of the earlier keys.
    #[must_use]
    pub fn or(mut self, kind: GrantType, pattern: &str, action: RequiredAction) -> Self {
        self.fallbacks.push((kind, pattern.to_owned(), action));
        self
    }

    /// Iterates over the requirement's own key and the fallbacks, each with the action to allow.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (GrantType, &str, RequiredAction)> {
        let own = (self.kind, self.pattern.as_str(), self.action);
        std::iter::once(own).chain(self.fallbacks.iter().map(|(kind, pattern, act)| (*kind, pattern.as_str(), *act)))
    }
}

/// The rule that an operation is subject to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The caller has to be an administrator.
    Administrators,
    /// The caller has to administer the workspace.
    WorkspaceAdministrators,
    /// The caller has to satisfy all requirements in `all`, and at least one requirement in `any`
    /// unless `any` is empty.
    Needs {
        /// Requirements that all have to be satisfied.
        all: Vec<Requirement>,
        /// Requirements of which at least one has to be satisfied.
        any: Vec<Requirement>,
    },
}

impl Rule {
    /// Creates a rule that is satisfied if all of these requirements are.
    #[must_use]
    pub fn needs(all: impl IntoIterator<Item = Requirement>) -> Self {
        Self::Needs { all: all.into_iter().collect(), any: Vec::new() }
    }
}

/// The characters that Python's `urllib.parse.quote(…, safe="")` quotes.
const QUOTED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// Returns the pattern of a scorer.
#[must_use]
pub(crate) fn scorer_pattern(experiment: ExperimentId, name: &str) -> String {
    format!("{experiment}/{}", utf8_percent_encode(name, QUOTED_CHARACTERS))
}

/// Parses the pattern of a scorer into its experiment and name.
#[must_use]
pub fn scorer_of(pattern: &str) -> Option<(ExperimentId, String)> {
    let (experiment, name) = pattern.split_once('/')?;
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    Some((ExperimentId::parse(experiment).ok()?, name))
}

/// Returns the canonical form of a pattern, in which rules compare patterns. Ids and names can be
/// written in several ways.
#[must_use]
pub fn canonical(kind: GrantType, pattern: &str) -> String {
    let one = match kind {
        GrantType::Experiment => ExperimentId::parse(pattern).ok().map(|id| id.to_string()),
        GrantType::Scorer => scorer_of(pattern).map(|(experiment, name)| scorer_pattern(experiment, &name)),
        _ => None,
    };
    one.unwrap_or_else(|| pattern.to_owned())
}

/// Types of resources that are deleted together with their experiment
/// (`_EXPERIMENT_CASCADE_TIERS`).
const CASCADED_TYPES: [GrantType; 7] = [
    GrantType::Run,
    GrantType::Trace,
    GrantType::LoggedModel,
    GrantType::Assessment,
    GrantType::ReviewQueue,
    GrantType::Scorer,
    GrantType::ScorerVersion,
];

/// Returns the rule for an access check.
#[must_use]
pub fn rule_of(ask: &AccessCheck) -> Rule {
    match &ask.guard {
        // Only administrators may learn that an entity does not exist. What users may do with their
        // own account has already been allowed by the authorizer.
        Guard::Absent(_) | Guard::EvaluationDataset(_) | Guard::User(_) => Rule::Administrators,
        Guard::Workspace(_) => in_workspace(ask.action, ask.kind),
        Guard::Experiment(experiment) => in_experiment(ask.action, ask.kind, &experiment.to_string()),
        Guard::Scorer(experiment, name) => {
            of_scorer(ask.action, ask.kind, &experiment.to_string(), &scorer_pattern(*experiment, name))
        }
        Guard::RegisteredModel(name) => of_model(ask, name.as_str()),
        Guard::McpServer(name) => of_mcp_server(ask, name.as_str()),
        Guard::Skill(name) => of_skill(ask, &name.to_string()),
    }
}

/// Returns the rule for an action in a workspace. Users may create and list entities of a type
/// unless that is denied. Lists leave out entities that the user may not read.
fn in_workspace(action: Action, kind: Resource) -> Rule {
    match (action, kind) {
        // All users may see the list of users. The endpoints for workspaces show only those in
        // which the caller has a role.
        (Action::Read, Resource::User) | (Action::List | Action::Read, Resource::Workspace) => Rule::needs([]),
        // Administrators of the workspace create users for it, assign roles to them, and grant
        // levels for whole types.
        (Action::Create, Resource::User)
        | (_, Resource::Role)
        | (Action::Share | Action::Manage, Resource::Workspace) => Rule::WorkspaceAdministrators,
        (_, Resource::EvaluationDataset | Resource::User | Resource::Webhook | Resource::Workspace) => {
            Rule::Administrators
        }
        (Action::Create | Action::Show, kind) => {
            Rule::needs([Requirement::of(type_of(kind), ALL_RESOURCES, RequiredAction::NotDenied)])
        }
        // Reading runs of the whole workspace, which requests need if they select other entities by
        // arbitrary runs.
        (Action::Read, Resource::Run) => {
            Rule::needs([Requirement::of(GrantType::Run, ALL_RESOURCES, RequiredAction::NotDenied)])
        }
        (Action::List, _) => Rule::needs([]),
        _ => Rule::Administrators,
    }
}

fn in_experiment(action: Action, kind: Resource, experiment: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Experiment, experiment, action);
    match kind {
        Resource::Experiment if action == Action::Delete => {
            let tier = |tier| {
                Requirement::of(tier, ALL_RESOURCES, RequiredAction::Delete).or(
                    GrantType::Experiment,
                    experiment,
                    RequiredAction::Delete,
                )
            };
            Rule::needs(std::iter::once(of(RequiredAction::Delete)).chain(CASCADED_TYPES.map(tier)))
        }
        // Scorers are checked one by one, because grants for the experiment do not apply to them.
        Resource::Scorer if action == Action::List => Rule::needs([]),
        // For scorers, this arm decides about their online configurations, which are settings of
        // the experiment.
        Resource::Experiment | Resource::EvaluationDataset | Resource::Scorer | Resource::Issue => {
            Rule::needs([of(required_action(action))])
        }
        // The questions to reviewers are settings of the experiment.
        Resource::LabelSchema => match action {
            Action::List | Action::Read | Action::Show => Rule::needs([of(RequiredAction::Read)]),
            _ => Rule::needs([of(RequiredAction::Manage)]),
        },
        Resource::Assessment => of_assessment(action, experiment),
        Resource::Run | Resource::LoggedModel | Resource::Trace | Resource::ReviewQueue => {
            let tier = type_of(kind);
            match action {
                Action::Create => Rule::needs([
                    of(RequiredAction::Update),
                    Requirement::of(tier, ALL_RESOURCES, RequiredAction::NotDenied),
                ]),
                _ => Rule::needs([of(RequiredAction::Read), in_tier(tier, experiment, required_action(action))]),
            }
        }
        _ => Rule::Administrators,
    }
}

/// Returns the requirement of a grant for a type, with the experiment as fallback.
fn in_tier(tier: GrantType, experiment: &str, action: RequiredAction) -> Requirement {
    Requirement::of(tier, ALL_RESOURCES, action).or(GrantType::Experiment, experiment, action)
}

fn of_assessment(action: Action, experiment: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Experiment, experiment, action);
    let addressed = [of(RequiredAction::Read), in_tier(GrantType::Trace, experiment, RequiredAction::Read)];
    let then = |requirement| Rule::needs(addressed.clone().into_iter().chain([requirement]));
    match action {
        // Either a grant for the experiment or one for traces has to allow writing. A lower level
        // of one grant does not weaken the other.
        Action::Create => Rule::Needs {
            all: addressed
                .clone()
                .into_iter()
                .chain([Requirement::of(GrantType::Assessment, ALL_RESOURCES, RequiredAction::NotDenied)])
                .collect(),
            any: vec![
                of(RequiredAction::Update),
                Requirement::of(GrantType::Trace, ALL_RESOURCES, RequiredAction::Update),
            ],
        },
        Action::Delete => then(Requirement::of(GrantType::Assessment, ALL_RESOURCES, RequiredAction::Delete).or(
            GrantType::Experiment,
            experiment,
            RequiredAction::Update,
        )),
        _ => then(in_tier(GrantType::Assessment, experiment, required_action(action))),
    }
}

fn of_scorer(action: Action, kind: Resource, experiment: &str, scorer: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Scorer, scorer, action);
    let version =
        |action| Requirement::of(GrantType::ScorerVersion, ALL_RESOURCES, action).or(GrantType::Scorer, scorer, action);
    match (action, kind) {
        (Action::Create, _) => Rule::needs([
            Requirement::of(GrantType::Experiment, experiment, RequiredAction::Update),
            of(RequiredAction::NotDenied),
            Requirement::of(GrantType::ScorerVersion, ALL_RESOURCES, RequiredAction::NotDenied),
        ]),
        (Action::List | Action::Read, _) => Rule::needs([of(RequiredAction::Read), version(RequiredAction::NotDenied)]),
        (Action::Delete, Resource::ScorerVersion) => {
            Rule::needs([of(RequiredAction::Read), version(RequiredAction::Delete)])
        }
        (Action::Delete, _) => Rule::needs([of(RequiredAction::Delete), version(RequiredAction::Delete)]),
        _ => Rule::needs([of(required_action(action))]),
    }
}

fn of_model(ask: &AccessCheck, name: &str) -> Rule {
    let is_prompt = matches!(ask.kind, Resource::Prompt | Resource::PromptVersion)
        || ask.stored.as_ref().is_some_and(|stored| stored.is_prompt);
    let (container, tier) = if is_prompt {
        (GrantType::Prompt, GrantType::PromptVersion)
    } else {
        (GrantType::RegisteredModel, GrantType::RegisteredModelVersion)
    };
    let of = |action| Requirement::of(container, name, action);
    let not_denied = Requirement::of(tier, ALL_RESOURCES, RequiredAction::NotDenied);
    let version = |action| Requirement::of(tier, ALL_RESOURCES, action).or(container, name, action);
    match (ask.kind, ask.action) {
        (Resource::ModelVersion | Resource::PromptVersion, _) if ask.stored.is_none() => Rule::Administrators,
        (Resource::ModelVersion | Resource::PromptVersion, action) => match action {
            Action::Create => Rule::needs([of(RequiredAction::Update), not_denied]),
            Action::List | Action::Read | Action::Show => Rule::needs([of(RequiredAction::Read), not_denied]),
            _ => Rule::needs([of(RequiredAction::Read), version(required_action(action))]),
        },
        (_, Action::Delete) => Rule::needs([of(RequiredAction::Delete), version(RequiredAction::Delete)]),
        (_, Action::Create) => Rule::needs([of(RequiredAction::NotDenied)]),
        (_, action) => Rule::needs([of(required_action(action))]),
    }
}

/// Returns the rule for an MCP server or its versions (`_get_mcp_server_validator`).
fn of_mcp_server(ask: &AccessCheck, name: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::McpServer, name, action);
    let version = |action| {
        Requirement::of(GrantType::McpServerVersion, ALL_RESOURCES, action).or(GrantType::McpServer, name, action)
    };
    let not_denied = Requirement::of(GrantType::McpServerVersion, ALL_RESOURCES, RequiredAction::NotDenied);
    match (ask.kind, ask.action) {
        // The first version of a server creates the server.
        (Resource::McpServerVersion, Action::Create) if ask.stored.is_none() => {
            Rule::needs([of(RequiredAction::NotDenied), not_denied])
        }
        (Resource::McpServerVersion, Action::Create) => Rule::needs([of(RequiredAction::Update), not_denied]),
        // Requests that name a version of a server without reading or changing the version.
        (Resource::McpServerVersion, Action::Use) => {
            Rule::needs([of(RequiredAction::Read), version(RequiredAction::NotDenied)])
        }
        (Resource::McpServerVersion, action) => {
            Rule::needs([of(RequiredAction::Read), version(required_action(action))])
        }
        (_, Action::Create) => Rule::needs([of(RequiredAction::NotDenied)]),
        (_, Action::Delete) => Rule::needs([of(RequiredAction::Delete), version(RequiredAction::Delete)]),
        (_, action) => Rule::needs([of(required_action(action))]),
    }
}

/// Returns the rule for a skill or its versions (`_get_skill_registry_validator`). Versions have no
/// grants of their own.
fn of_skill(ask: &AccessCheck, name: &str) -> Rule {
    let of = |action| Requirement::of(GrantType::Skill, name, action);
    match (ask.kind, ask.action) {
        // The first version of a skill creates the skill.
        (Resource::SkillVersion, Action::Create) if ask.stored.is_none() => {
            Rule::needs([of(RequiredAction::NotDenied)])
        }
        (Resource::SkillVersion, Action::Create) => Rule::needs([of(RequiredAction::Update)]),
        (_, Action::Create) => Rule::needs([of(RequiredAction::NotDenied)]),
        // As in MLflow, deleting a skill, a version, or a tag of a version requires the right to
        // manage the skill.
        (_, Action::Delete) => Rule::needs([of(RequiredAction::Manage)]),
        (_, action) => Rule::needs([of(required_action(action))]),
    }
}

const fn required_action(action: Action) -> RequiredAction {
    match action {
        Action::List | Action::Read | Action::Show => RequiredAction::Read,
        Action::Use => RequiredAction::Use,
        Action::Create | Action::Update => RequiredAction::Update,
        Action::Delete => RequiredAction::Delete,
        Action::Manage | Action::Share => RequiredAction::Manage,
    }
}

/// Returns MLflow's grant type for a kind of entity.
#[must_use]
pub(crate) fn type_of(kind: Resource) -> GrantType {
    match kind {
        // Evaluation datasets, label schemas and issues have no grant types of their own, so grants
        // for their experiments apply.
        Resource::Experiment | Resource::EvaluationDataset | Resource::LabelSchema | Resource::Issue => {
            GrantType::Experiment
        }
        Resource::ReviewQueue => GrantType::ReviewQueue,
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
        Resource::McpServer => GrantType::McpServer,
        Resource::McpServerVersion => GrantType::McpServerVersion,
        Resource::Skill | Resource::SkillVersion => GrantType::Skill,
        Resource::Workspace | Resource::User | Resource::Role | Resource::Webhook => GrantType::Workspace,
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::RegisteredModelName;
    use mlflow_api::auth::PermissionLevel;

    use super::*;
    use crate::grants::Grants;

    /// Checks whether a user with these grants may perform an action, if the default level is
    /// `READ`.
    fn may(grants: &[(GrantType, &str, PermissionLevel)], action: Action, kind: Resource, guard: Guard) -> bool {
        let mut all = Grants::default();
        for (kind, pattern, level) in grants {
            all.add(*kind, pattern, *level);
        }
        let stored = access::StoredGuard {
            workspace: mlflow_api::Workspace::default(),
            is_prompt: false,
            owner: None,
            id: None,
            home: None,
        };
        all.meet(&rule_of(&AccessCheck { action, kind, guard, stored: Some(stored) }), PermissionLevel::Read)
    }

    fn seven() -> Guard {
        Guard::Experiment(ExperimentId::from_number(7).unwrap())
    }

    #[test]
    fn what_is_denied_may_not_be_shown_nor_looked_for() {
        let denied = [(GrantType::Run, ALL_RESOURCES, PermissionLevel::Deny)];
        let (run, model) = (Resource::Run, Resource::LoggedModel);
        for action in [Action::Show, Action::Read] {
            assert!(!may(&denied, action, run, Guard::Workspace(run)), "{action:?}");
            assert!(may(&[], action, run, Guard::Workspace(run)), "{action:?}");
        }
        assert!(may(&denied, Action::Show, model, Guard::Workspace(model)));
        // Reading all traces at once is reserved to administrators.
        assert!(!may(&[], Action::Read, Resource::Trace, Guard::Workspace(Resource::Trace)));
    }

    #[test]
    fn assessments_are_shown_to_those_who_may_read_them() {
        let shows =
            |grants: &[(GrantType, &str, PermissionLevel)]| may(grants, Action::Show, Resource::Assessment, seven());
        assert!(shows(&[]));
        assert!(!shows(&[(GrantType::Assessment, ALL_RESOURCES, PermissionLevel::Deny)]));
        assert!(!shows(&[(GrantType::Experiment, "7", PermissionLevel::Deny)]));
        assert!(!shows(&[(GrantType::Trace, ALL_RESOURCES, PermissionLevel::Deny)]));
    }

    #[test]
    fn versions_are_shown_to_those_who_are_not_denied_them() {
        let name = Guard::RegisteredModel(RegisteredModelName::named("m"));
        let shows = |grants: &[(GrantType, &str, PermissionLevel)]| {
            may(grants, Action::Show, Resource::ModelVersion, name.clone())
        };
        assert!(shows(&[]) && shows(&[(GrantType::PromptVersion, ALL_RESOURCES, PermissionLevel::Deny)]));
        assert!(!shows(&[(GrantType::RegisteredModelVersion, ALL_RESOURCES, PermissionLevel::Deny)]));
    }

    #[test]
    fn an_assessment_is_made_by_who_may_change_the_experiment_or_traces() {
        let makes =
            |grants: &[(GrantType, &str, PermissionLevel)]| may(grants, Action::Create, Resource::Assessment, seven());
        let (experiment, traces) = ((GrantType::Experiment, "7"), (GrantType::Trace, ALL_RESOURCES));
        let of = |(kind, pattern): (GrantType, &'static str), level| (kind, pattern, level);
        assert!(!makes(&[]));
        assert!(makes(&[of(experiment, PermissionLevel::Edit)]) && makes(&[of(traces, PermissionLevel::Edit)]));
        // A grant for traces does not weaken a grant for the experiment, unless it is a denial.
        assert!(makes(&[of(experiment, PermissionLevel::Edit), of(traces, PermissionLevel::Read)]));
        assert!(!makes(&[of(experiment, PermissionLevel::Edit), of(traces, PermissionLevel::Deny)]));
        assert!(!makes(&[of(experiment, PermissionLevel::Deny), of(traces, PermissionLevel::Edit)]));
        let denied = (GrantType::Assessment, ALL_RESOURCES, PermissionLevel::Deny);
        assert!(!makes(&[of(experiment, PermissionLevel::Manage), denied]));
    }
}
