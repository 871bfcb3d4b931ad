//! What restricted credentials may do and see.

use std::sync::Arc;

use mlflow_api::ExperimentId;

use crate::authorizer::{Sight, Visible};
use crate::guard::{Ask, Guarded};
use crate::kind::{Action, Resource};
use crate::restriction::{Only, Restriction};

impl Restriction {
    /// Checks whether the restriction permits an action. Restricted credentials never change users,
    /// roles or grants, because otherwise they could lift their own restriction.
    #[must_use]
    pub fn admits(&self, ask: &Ask) -> bool {
        if self.is_none() {
            return true;
        }
        let is_in_reach = match (&self.experiment, &ask.guard) {
            (None, _) => true,
            (Some(experiment), Guarded::Experiment(other) | Guarded::Scorer(other, _)) => experiment == other,
            // A list leaves out entities that are out of reach.
            (Some(_), Guarded::Workspace(_)) => ask.action == Action::List,
            (Some(_), _) => false,
        };
        is_in_reach && self.allows(ask.action, ask.kind)
    }

    /// Checks whether the restriction permits an action on at least some entity of a kind.
    #[must_use]
    pub(crate) fn allows(&self, action: Action, kind: Resource) -> bool {
        let is_about_users = matches!(kind, Resource::User | Resource::Role) || action == Action::Share;
        match self.only {
            Only::Everything => self.experiment.is_none() || !(is_about_users && action.writes()),
            Only::Reading => matches!(action, Action::List | Action::Read | Action::Show),
            Only::Ingest => (action, kind) == (Action::Create, Resource::Trace),
        }
    }

    /// Narrows what the user may see to what the credentials may see.
    pub(crate) fn narrow(&self, visible: Visible) -> Visible {
        match (self.only, self.experiment) {
            (Only::Ingest, _) => Visible::nothing(),
            (_, None) => visible,
            (_, Some(experiment)) => Visible::Which(Arc::new(InReach { experiment, visible })),
        }
    }
}

/// The part of a list that belongs to one experiment.
#[derive(Debug)]
struct InReach {
    experiment: ExperimentId,
    visible: Visible,
}

impl InReach {
    fn has(&self, guarded: &Guarded) -> bool {
        matches!(guarded, Guarded::Experiment(other) | Guarded::Scorer(other, _) if *other == self.experiment)
    }
}

impl Sight for InReach {
    fn shows(&self, kind: Resource, guarded: &Guarded) -> bool {
        self.has(guarded) && self.visible.shows_as(kind, guarded)
    }

    fn all(&self, kind: Resource) -> Option<Vec<Guarded>> {
        let experiment = Guarded::Experiment(self.experiment);
        match kind {
            Resource::Experiment => Some(Some(experiment).filter(|it| self.visible.shows(it)).into_iter().collect()),
            Resource::Scorer => Some(vec![experiment]),
            Resource::RegisteredModel | Resource::Prompt => Some(Vec::new()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(action: Action, kind: Resource, guard: Guarded) -> Ask {
        Ask { action, kind, guard, stored: None }
    }

    fn experiment(number: u64) -> ExperimentId {
        ExperimentId::from_number(number).unwrap()
    }

    #[test]
    fn credentials_for_an_experiment_reach_nothing_else() {
        let narrow = Restriction { experiment: Some(experiment(7)), only: Only::Everything };
        let of = |number| Guarded::Experiment(experiment(number));
        assert!(narrow.admits(&ask(Action::Delete, Resource::Run, of(7))));
        assert!(narrow.admits(&ask(Action::List, Resource::Experiment, Guarded::Workspace(Resource::Experiment))));
        for refused in [
            ask(Action::Read, Resource::Run, of(8)),
            ask(Action::Create, Resource::Experiment, Guarded::Workspace(Resource::Experiment)),
            ask(Action::Share, Resource::Experiment, of(7)),
            ask(Action::Read, Resource::Run, Guarded::Absent(Resource::Run)),
        ] {
            assert!(!narrow.admits(&refused), "{refused:?}");
        }
        let visible = narrow.narrow(Visible::Everything);
        assert!(visible.shows(&of(7)) && !visible.shows(&of(8)));
        assert_eq!(visible.few(Resource::Experiment), Some(vec![of(7)]));
        assert_eq!(visible.few(Resource::RegisteredModel), Some(Vec::new()));
    }

    #[test]
    fn credentials_for_one_thing_do_nothing_else() {
        let guard = Guarded::Experiment(experiment(7));
        let only = |only| Restriction { experiment: None, only };
        for action in [Action::Create, Action::List, Action::Read, Action::Update, Action::Delete, Action::Share] {
            for kind in [Resource::Run, Resource::Trace] {
                let ask = ask(action, kind, guard.clone());
                assert!(Restriction::default().admits(&ask));
                assert_eq!(only(Only::Reading).admits(&ask), matches!(action, Action::List | Action::Read), "{ask:?}");
                let is_ingest = (action, kind) == (Action::Create, Resource::Trace);
                assert_eq!(only(Only::Ingest).admits(&ask), is_ingest, "{ask:?}");
            }
        }
        assert!(!only(Only::Ingest).narrow(Visible::Everything).shows(&guard));
    }
}
