//! What restricted credentials may do and see.

use std::sync::Arc;

use mlflow_api::ExperimentId;

use crate::action::{Action, Resource};
use crate::authorizer::{Visibility, VisibilityRules};
use crate::guard::{AccessCheck, Guard};
use crate::restriction::{AllowedActions, Restriction};

impl Restriction {
    /// Checks whether the restriction permits an action. Restricted credentials never change users,
    /// roles or grants, because otherwise they could lift their own restriction.
    #[must_use]
    pub fn admits(&self, ask: &AccessCheck) -> bool {
        if self.is_none() {
            return true;
        }
        let is_in_reach = match (&self.experiment, &ask.guard) {
            (None, _) => true,
            (Some(experiment), Guard::Experiment(other) | Guard::Scorer(other, _)) => experiment == other,
            // Credentials for one experiment may list entities of the workspace, because lists
            // leave out entities of other experiments.
            (Some(_), Guard::Workspace(_)) => ask.action == Action::List,
            (Some(_), _) => false,
        };
        is_in_reach && self.allows(ask.action, ask.kind)
    }

    /// Checks whether the restriction permits an action on at least some entity of a kind.
    #[must_use]
    pub(crate) fn allows(&self, action: Action, kind: Resource) -> bool {
        let is_about_users = matches!(kind, Resource::User | Resource::Role) || action == Action::Share;
        match self.actions {
            AllowedActions::All => self.experiment.is_none() || !(is_about_users && action.writes()),
            AllowedActions::Read => matches!(action, Action::List | Action::Read | Action::Show),
            AllowedActions::Ingest => (action, kind) == (Action::Create, Resource::Trace),
        }
    }

    /// Narrows what the user may see to what the credentials may see.
    pub(crate) fn narrow(&self, visible: Visibility) -> Visibility {
        match (self.actions, self.experiment) {
            (AllowedActions::Ingest, _) => Visibility::nothing(),
            (_, None) => visible,
            (_, Some(experiment)) => Visibility::Matching(Arc::new(ExperimentVisibility { experiment, visible })),
        }
    }
}

/// What lists may show to credentials that are restricted to one experiment.
#[derive(Debug)]
struct ExperimentVisibility {
    experiment: ExperimentId,
    visible: Visibility,
}

impl ExperimentVisibility {
    fn has(&self, guarded: &Guard) -> bool {
        matches!(guarded, Guard::Experiment(other) | Guard::Scorer(other, _) if *other == self.experiment)
    }
}

impl VisibilityRules for ExperimentVisibility {
    fn shows(&self, kind: Resource, guarded: &Guard) -> bool {
        self.has(guarded) && self.visible.shows_as(kind, guarded)
    }

    fn allows(&self, action: Action, kind: Resource, guarded: &Guard) -> bool {
        self.has(guarded) && self.visible.allows(action, kind, guarded)
    }

    fn all(&self, kind: Resource) -> Option<Vec<Guard>> {
        let experiment = Guard::Experiment(self.experiment);
        match kind {
            Resource::Experiment => Some(Some(experiment).filter(|it| self.visible.shows(it)).into_iter().collect()),
            Resource::Scorer => Some(vec![experiment]),
            Resource::RegisteredModel | Resource::Prompt | Resource::McpServer | Resource::Skill => Some(Vec::new()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(action: Action, kind: Resource, guard: Guard) -> AccessCheck {
        AccessCheck { action, kind, guard, stored: None }
    }

    fn experiment(number: u64) -> ExperimentId {
        ExperimentId::from_number(number).unwrap()
    }

    #[test]
    fn credentials_for_an_experiment_reach_nothing_else() {
        let narrow = Restriction { experiment: Some(experiment(7)), actions: AllowedActions::All };
        let of = |number| Guard::Experiment(experiment(number));
        assert!(narrow.admits(&ask(Action::Delete, Resource::Run, of(7))));
        assert!(narrow.admits(&ask(Action::List, Resource::Experiment, Guard::Workspace(Resource::Experiment))));
        for refused in [
            ask(Action::Read, Resource::Run, of(8)),
            ask(Action::Create, Resource::Experiment, Guard::Workspace(Resource::Experiment)),
            ask(Action::Share, Resource::Experiment, of(7)),
            ask(Action::Read, Resource::Run, Guard::Absent(Resource::Run)),
        ] {
            assert!(!narrow.admits(&refused), "{refused:?}");
        }
        let visible = narrow.narrow(Visibility::Everything);
        assert!(visible.shows(&of(7)) && !visible.shows(&of(8)));
        assert_eq!(visible.enumerate_guards(Resource::Experiment), Some(vec![of(7)]));
        assert_eq!(visible.enumerate_guards(Resource::RegisteredModel), Some(Vec::new()));
    }

    #[test]
    fn credentials_for_one_thing_do_nothing_else() {
        let guard = Guard::Experiment(experiment(7));
        let only = |only| Restriction { experiment: None, actions: only };
        for action in [Action::Create, Action::List, Action::Read, Action::Update, Action::Delete, Action::Share] {
            for kind in [Resource::Run, Resource::Trace] {
                let ask = ask(action, kind, guard.clone());
                assert!(Restriction::default().admits(&ask));
                assert_eq!(
                    only(AllowedActions::Read).admits(&ask),
                    matches!(action, Action::List | Action::Read),
                    "{ask:?}"
                );
                let is_ingest = (action, kind) == (Action::Create, Resource::Trace);
                assert_eq!(only(AllowedActions::Ingest).admits(&ask), is_ingest, "{ask:?}");
            }
        }
        assert!(!only(AllowedActions::Ingest).narrow(Visibility::Everything).shows(&guard));
    }
}
