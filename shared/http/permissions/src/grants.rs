//! Evaluation of requirements against grants, like MLflow's (`mlflow/server/auth/requirements.py`).

use std::collections::HashMap;

use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};

use crate::rules::{RequiredAction, Requirement, Rule};

/// The effective grants of one user: the user's own and those of roles, limited to resources that
/// are still the ones the grants were made for.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    levels: HashMap<(GrantType, String), PermissionLevel>,
}

impl Grants {
    /// Adds a grant. If there are several for one pattern, a denial wins, and otherwise the highest
    /// level.
    pub fn add(&mut self, kind: GrantType, pattern: &str, level: PermissionLevel) {
        let kept = self.levels.entry((kind, pattern.to_owned())).or_insert(level);
        *kept = fold(*kept, level);
    }

    /// Checks whether there are no grants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Checks whether the user administers the workspace, and may therefore do everything in it.
    #[must_use]
    pub fn is_workspace_admin(&self) -> bool {
        self.levels.get(&(GrantType::Workspace, ALL_RESOURCES.to_owned())) == Some(&PermissionLevel::Manage)
    }

    /// Checks whether the user may use the workspace, which includes creating entities in it
    /// (`_can_create_in_workspace`).
    #[must_use]
    pub fn may_create(&self) -> bool {
        self.at(GrantType::Workspace, ALL_RESOURCES).is_some_and(|level| level >= PermissionLevel::Use)
    }

    /// Returns the level for a resource, or for all resources of a type (`*`). `None` if there is
    /// no grant.
    #[must_use]
    pub fn at(&self, kind: GrantType, pattern: &str) -> Option<PermissionLevel> {
        let of = |pattern: &str| self.levels.get(&(kind, pattern.to_owned())).copied();
        let own = of(pattern).filter(|_| pattern == ALL_RESOURCES || kind.has_ids());
        match (of(ALL_RESOURCES), own) {
            (Some(all), Some(own)) => Some(fold(all, own)),
            (all, own) => all.or(own),
        }
    }

    /// Iterates over the resources of a type that have grants of their own.
    pub fn ids(&self, kind: GrantType) -> impl Iterator<Item = &str> {
        self.levels
            .keys()
            .filter(move |(of, pattern)| *of == kind && pattern != ALL_RESOURCES)
            .map(|(_, id)| id.as_str())
    }

    /// Checks whether a rule is satisfied. `default` is the level of users without a grant.
    #[must_use]
    pub fn meet(&self, rule: &Rule, default: PermissionLevel) -> bool {
        let is_met = |requirement: &Requirement| self.satisfy(requirement, default);
        match rule {
            Rule::Administrators => false,
            Rule::WorkspaceAdministrators => self.is_workspace_admin(),
            Rule::Needs { .. } if self.is_workspace_admin() => true,
            Rule::Needs { all, any } => all.iter().all(is_met) && (any.is_empty() || any.iter().any(is_met)),
        }
    }

    /// Returns the effective level for a resource. A positive level is never lower than the
    /// default.
    #[must_use]
    pub fn effective(&self, kind: GrantType, pattern: &str, default: PermissionLevel) -> PermissionLevel {
        if self.is_workspace_admin() {
            return PermissionLevel::Manage;
        }
        self.at(kind, pattern).map_or(default, |level| floor(level, default))
    }

    /// Checks a requirement. The first of its keys that has a grant decides. If there are no
    /// grants, the default has to allow the last key's action.
    fn satisfy(&self, requirement: &Requirement, default: PermissionLevel) -> bool {
        let mut action = requirement.action;
        for (kind, pattern, of_key) in requirement.keys() {
            action = of_key;
            if let Some(level) = self.at(kind, pattern) {
                return allows(floor(level, default), action);
            }
        }
        allows(default, action)
    }
}

/// Raises a positive level to at least the default.
fn floor(level: PermissionLevel, default: PermissionLevel) -> PermissionLevel {
    if level > PermissionLevel::NoPermissions { level.max(default) } else { level }
}

/// Combines two grants for the same key.
fn fold(one: PermissionLevel, other: PermissionLevel) -> PermissionLevel {
    if one.min(other) == PermissionLevel::Deny { PermissionLevel::Deny } else { one.max(other) }
}

/// Checks whether a level allows an action.
#[must_use]
pub fn allows(level: PermissionLevel, action: RequiredAction) -> bool {
    match action {
        RequiredAction::NotDenied => level != PermissionLevel::Deny,
        RequiredAction::Read => level >= PermissionLevel::Read,
        RequiredAction::Use => level >= PermissionLevel::Use,
        RequiredAction::Update => level >= PermissionLevel::Edit,
        RequiredAction::Delete | RequiredAction::Manage => level >= PermissionLevel::Manage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(grants: &[(GrantType, &str, PermissionLevel)]) -> Grants {
        let mut all = Grants::default();
        for (kind, pattern, level) in grants {
            all.add(*kind, pattern, *level);
        }
        all
    }

    #[test]
    fn a_denial_counts_and_else_the_highest() {
        let grants = of(&[
            (GrantType::Experiment, "7", PermissionLevel::Read),
            (GrantType::Experiment, "7", PermissionLevel::Edit),
            (GrantType::Experiment, "*", PermissionLevel::Use),
            (GrantType::Experiment, "8", PermissionLevel::Deny),
            (GrantType::Experiment, "8", PermissionLevel::Manage),
        ]);
        assert_eq!(grants.at(GrantType::Experiment, "7"), Some(PermissionLevel::Edit));
        assert_eq!(grants.at(GrantType::Experiment, "8"), Some(PermissionLevel::Deny));
        assert_eq!(grants.at(GrantType::Experiment, "9"), Some(PermissionLevel::Use));
        assert_eq!(grants.at(GrantType::Run, "*"), None);
    }

    #[test]
    fn the_first_tier_with_a_grant_decides() {
        let read_run = Requirement::of(GrantType::Run, "*", RequiredAction::Read).or(
            GrantType::Experiment,
            "7",
            RequiredAction::Read,
        );
        let denied =
            of(&[(GrantType::Run, "*", PermissionLevel::Deny), (GrantType::Experiment, "7", PermissionLevel::Manage)]);
        assert!(!denied.satisfy(&read_run, PermissionLevel::Manage));
        let inherited = of(&[(GrantType::Experiment, "7", PermissionLevel::Read)]);
        assert!(inherited.satisfy(&read_run, PermissionLevel::NoPermissions));
        assert!(!Grants::default().satisfy(&read_run, PermissionLevel::NoPermissions));
        assert!(Grants::default().satisfy(&read_run, PermissionLevel::Read));
    }

    #[test]
    fn without_any_grant_the_last_fallbacks_action_counts() {
        let delete = Requirement::of(GrantType::Assessment, "*", RequiredAction::Delete).or(
            GrantType::Experiment,
            "7",
            RequiredAction::Update,
        );
        assert!(Grants::default().satisfy(&delete, PermissionLevel::Edit));
        assert!(!of(&[(GrantType::Assessment, "*", PermissionLevel::Edit)]).satisfy(&delete, PermissionLevel::Edit));
    }

    #[test]
    fn what_is_positive_is_at_least_the_default() {
        let update = Requirement::of(GrantType::Experiment, "7", RequiredAction::Update);
        assert!(of(&[(GrantType::Experiment, "7", PermissionLevel::Read)]).satisfy(&update, PermissionLevel::Edit));
        assert!(!of(&[(GrantType::Experiment, "7", PermissionLevel::Deny)]).satisfy(&update, PermissionLevel::Edit));
    }

    #[test]
    fn who_administers_the_workspace_is_denied_nothing() {
        let rule = Rule::needs([Requirement::of(GrantType::Experiment, "7", RequiredAction::Manage)]);
        let grants = of(&[
            (GrantType::Workspace, "*", PermissionLevel::Manage),
            (GrantType::Experiment, "7", PermissionLevel::Deny),
        ]);
        assert!(grants.meet(&rule, PermissionLevel::NoPermissions));
        assert!(!of(&[(GrantType::Workspace, "*", PermissionLevel::Use)]).meet(&rule, PermissionLevel::NoPermissions));
        // An administrator of a workspace has no rights to operations of the whole server.
        assert!(grants.meet(&Rule::WorkspaceAdministrators, PermissionLevel::NoPermissions));
        assert!(!grants.meet(&Rule::Administrators, PermissionLevel::Manage));
    }
}
