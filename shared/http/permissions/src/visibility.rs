//! What lists show to a user.

use std::sync::Arc;

use access::{AccessCheck, Action, Guard, Resource, Visibility, VisibilityRules};
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};
use mlflow_api::{ExperimentId, McpServerName, RegisteredModelName, SkillName};

use crate::grants::{Grants, allows};
use crate::rules::{RequiredAction, Rule, rule_of, scorer_of, type_of};

/// Rules of visibility that follow from a user's grants.
#[derive(Debug)]
struct GrantedVisibility {
    grants: Grants,
    default: PermissionLevel,
}

/// Returns what lists may show to a user with these grants. `default` is the level without a grant.
pub(crate) fn visibility_of(grants: Grants, default: PermissionLevel) -> Visibility {
    let sees_all = grants.is_workspace_admin() || (grants.is_empty() && allows(default, RequiredAction::Read));
    if sees_all {
        Visibility::Everything
    } else {
        Visibility::Matching(Arc::new(GrantedVisibility { grants, default }))
    }
}

impl GrantedVisibility {
    fn meets(&self, rule: &Rule) -> bool {
        self.grants.meet(rule, self.default)
    }
}

impl VisibilityRules for GrantedVisibility {
    fn shows(&self, kind: Resource, guarded: &Guard) -> bool {
        let ask = AccessCheck { action: Action::List, kind, guard: guarded.clone(), stored: None };
        // The version's model exists, because a list has found it, so the model's own rule applies.
        let rule = match (kind, guarded) {
            (Resource::ModelVersion, _) => rule_of(&AccessCheck { kind: Resource::RegisteredModel, ..ask }),
            (Resource::PromptVersion, _) => rule_of(&AccessCheck { kind: Resource::Prompt, ..ask }),
            _ => rule_of(&ask),
        };
        self.meets(&rule)
            && (!is_version(kind) || self.grants.at(type_of(kind), ALL_RESOURCES) != Some(PermissionLevel::Deny))
    }

    fn allows(&self, action: Action, kind: Resource, guarded: &Guard) -> bool {
        self.meets(&rule_of(&AccessCheck { action, kind, guard: guarded.clone(), stored: None }))
    }

    fn all(&self, kind: Resource) -> Option<Vec<Guard>> {
        let of = type_of(kind);
        // If the user may read all entities of the type, the visible entities cannot be enumerated
        // from the grants for single entities.
        if !of.has_ids() || allows(self.grants.effective(of, ALL_RESOURCES, self.default), RequiredAction::Read) {
            return None;
        }
        let guard = |id: &str| match of {
            GrantType::Experiment => ExperimentId::parse(id).ok().map(Guard::Experiment),
            GrantType::RegisteredModel | GrantType::Prompt => {
                Some(Guard::RegisteredModel(RegisteredModelName::named(id)))
            }
            GrantType::McpServer => McpServerName::parse(id).ok().map(Guard::McpServer),
            GrantType::Skill => SkillName::parse(id).ok().map(Guard::Skill),
            GrantType::Scorer => scorer_of(id).map(|(experiment, name)| Guard::Scorer(experiment, name)),
            _ => None,
        };
        let all = self.grants.ids(of).filter_map(guard).filter(|guarded| self.shows(kind, guarded));
        Some(all.collect())
    }
}

fn is_version(kind: Resource) -> bool {
    matches!(kind, Resource::ModelVersion | Resource::PromptVersion | Resource::McpServerVersion)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(number: u64) -> Guard {
        Guard::Experiment(ExperimentId::from_number(number).unwrap())
    }

    fn scorer(name: &str) -> Guard {
        Guard::Scorer(ExperimentId::from_number(8).unwrap(), name.to_owned())
    }

    fn seeing(grants: &[(GrantType, &str, PermissionLevel)], default: PermissionLevel) -> Visibility {
        let mut all = Grants::default();
        for (kind, pattern, level) in grants {
            all.add(*kind, pattern, *level);
        }
        visibility_of(all, default)
    }

    #[test]
    fn lists_show_what_may_be_read() {
        let some = seeing(&[(GrantType::Experiment, "7", PermissionLevel::Read)], PermissionLevel::NoPermissions);
        assert!(some.shows(&experiment(7)) && !some.shows(&experiment(8)));
        assert_eq!(some.enumerate_guards(Resource::Experiment), Some(vec![experiment(7)]));
        let but = seeing(&[(GrantType::Experiment, "7", PermissionLevel::Deny)], PermissionLevel::Read);
        assert!(!but.shows(&experiment(7)) && but.shows(&experiment(8)));
        assert_eq!(but.enumerate_guards(Resource::Experiment), None);
        assert!(matches!(seeing(&[], PermissionLevel::Read), Visibility::Everything));
        assert_eq!(
            seeing(&[], PermissionLevel::NoPermissions).enumerate_guards(Resource::Experiment),
            Some(Vec::new())
        );
    }

    #[test]
    fn a_grant_to_use_the_workspace_shows_nothing() {
        let member = (GrantType::Workspace, ALL_RESOURCES, PermissionLevel::Use);
        let some =
            seeing(&[member, (GrantType::Experiment, "7", PermissionLevel::Read)], PermissionLevel::NoPermissions);
        assert!(some.shows(&experiment(7)) && !some.shows(&experiment(8)));
        assert_eq!(some.enumerate_guards(Resource::Experiment), Some(vec![experiment(7)]));
        let named = Guard::RegisteredModel(RegisteredModelName::named("m"));
        assert!(!some.shows(&named) && !some.shows_as(Resource::ModelVersion, &named));
        assert!(!some.shows(&scorer("s")));
    }

    #[test]
    fn scorers_are_shown_by_grants_of_their_own() {
        let some = seeing(&[(GrantType::Scorer, "8/a%20b", PermissionLevel::Read)], PermissionLevel::NoPermissions);
        assert!(some.shows(&scorer("a b")) && !some.shows(&scorer("s")) && !some.shows(&experiment(8)));
        assert_eq!(some.enumerate_guards(Resource::Scorer), Some(vec![scorer("a b")]));
        let of_experiment =
            seeing(&[(GrantType::Experiment, "8", PermissionLevel::Manage)], PermissionLevel::NoPermissions);
        assert!(!of_experiment.shows(&scorer("s")));
        assert_eq!(
            seeing(&[(GrantType::Scorer, ALL_RESOURCES, PermissionLevel::Read)], PermissionLevel::NoPermissions)
                .enumerate_guards(Resource::Scorer),
            None
        );
        let denied = [
            (GrantType::Scorer, "8/s", PermissionLevel::Read),
            (GrantType::ScorerVersion, ALL_RESOURCES, PermissionLevel::Deny),
        ];
        assert_eq!(
            seeing(&denied, PermissionLevel::NoPermissions).enumerate_guards(Resource::Scorer),
            Some(Vec::new())
        );
    }

    #[test]
    fn versions_that_are_denied_are_not_shown_with_their_models() {
        let some =
            seeing(&[(GrantType::RegisteredModelVersion, ALL_RESOURCES, PermissionLevel::Deny)], PermissionLevel::Read);
        let named = Guard::RegisteredModel(RegisteredModelName::named("m"));
        assert!(some.shows(&named) && !some.shows_as(Resource::ModelVersion, &named));
        assert!(some.shows_as(Resource::PromptVersion, &named));
    }

    #[test]
    fn prompts_and_models_are_seen_by_grants_of_their_own() {
        let some = seeing(&[(GrantType::Prompt, "p", PermissionLevel::Read)], PermissionLevel::NoPermissions);
        let named = Guard::RegisteredModel(RegisteredModelName::named("p"));
        assert!(some.shows_as(Resource::Prompt, &named) && !some.shows_as(Resource::RegisteredModel, &named));
    }
}
