//! Decides requirements by grants: MLflow's folds (`mlflow/server/auth/requirements.py`).

use std::collections::HashMap;

use mlflow_api::auth::{EVERYTHING, GrantType, Level};

use crate::rules::{Act, Requirement, Rule};

/// Everything that one user is granted, as far as it counts: by himself and by roles, for resources that are those it was granted for.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    levels: HashMap<(GrantType, String), Level>,
}

impl Grants {
    /// Adds a grant. Of several for one pattern a denial counts, else the highest.
    pub fn add(&mut self, kind: GrantType, pattern: &str, level: Level) {
        let kept = self.levels.entry((kind, pattern.to_owned())).or_insert(level);
        *kept = fold(*kept, level);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Whether the user administers the workspace: then nothing is refused to him.
    #[must_use]
    pub fn is_workspace_admin(&self) -> bool {
        self.levels.get(&(GrantType::Workspace, EVERYTHING.to_owned())) == Some(&Level::Manage)
    }

    /// Whether the user may use the workspace, and so create something in it (`_can_create_in_workspace`).
    #[must_use]
    pub fn may_create(&self) -> bool {
        self.at(GrantType::Workspace, EVERYTHING).is_some_and(|level| level >= Level::Use)
    }

    /// The level for a resource, or for all of a type (`*`); `None` where there is no grant.
    #[must_use]
    pub fn at(&self, kind: GrantType, pattern: &str) -> Option<Level> {
        let of = |pattern: &str| self.levels.get(&(kind, pattern.to_owned())).copied();
        let own = of(pattern).filter(|_| pattern == EVERYTHING || kind.has_ids());
        match (of(EVERYTHING), own) {
            (Some(all), Some(own)) => Some(fold(all, own)),
            (all, own) => all.or(own),
        }
    }

    /// The resources of a type for which something is granted one by one.
    pub fn ids(&self, kind: GrantType) -> impl Iterator<Item = &str> {
        self.levels.keys().filter(move |(of, pattern)| *of == kind && pattern != EVERYTHING).map(|(_, id)| id.as_str())
    }

    /// Whether a rule is met. `default` is the level of those who are granted nothing.
    #[must_use]
    pub fn meet(&self, rule: &Rule, default: Level) -> bool {
        let is_met = |requirement: &Requirement| self.satisfy(requirement, default);
        match rule {
            Rule::Administrators => false,
            Rule::WorkspaceAdministrators => self.is_workspace_admin(),
            Rule::Needs { .. } if self.is_workspace_admin() => true,
            Rule::Needs { all, any } => all.iter().all(is_met) && (any.is_empty() || any.iter().any(is_met)),
        }
    }

    /// The level that counts for a resource, and never less than the default where it is positive.
    #[must_use]
    pub fn effective(&self, kind: GrantType, pattern: &str, default: Level) -> Level {
        if self.is_workspace_admin() {
            return Level::Manage;
        }
        self.at(kind, pattern).map_or(default, |level| floor(level, default))
    }

    /// The first of its keys decides for which anything is granted. Where there is none, the last one's action has to be within the default.
    fn satisfy(&self, requirement: &Requirement, default: Level) -> bool {
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

/// A positive level is at least the default.
fn floor(level: Level, default: Level) -> Level {
    if level > Level::NoPermissions { level.max(default) } else { level }
}

/// Two grants for one key.
fn fold(one: Level, other: Level) -> Level {
    if one.min(other) == Level::Deny { Level::Deny } else { one.max(other) }
}

/// Whether a level allows an action.
#[must_use]
pub fn allows(level: Level, action: Act) -> bool {
    match action {
        Act::NotDenied => level != Level::Deny,
        Act::Read => level >= Level::Read,
        Act::Use => level >= Level::Use,
        Act::Update => level >= Level::Edit,
        Act::Delete | Act::Manage => level >= Level::Manage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(grants: &[(GrantType, &str, Level)]) -> Grants {
        let mut all = Grants::default();
        for (kind, pattern, level) in grants {
            all.add(*kind, pattern, *level);
        }
        all
    }

    #[test]
    fn a_denial_counts_and_else_the_highest() {
        let grants = of(&[
            (GrantType::Experiment, "7", Level::Read),
            (GrantType::Experiment, "7", Level::Edit),
            (GrantType::Experiment, "*", Level::Use),
            (GrantType::Experiment, "8", Level::Deny),
            (GrantType::Experiment, "8", Level::Manage),
        ]);
        assert_eq!(grants.at(GrantType::Experiment, "7"), Some(Level::Edit));
        assert_eq!(grants.at(GrantType::Experiment, "8"), Some(Level::Deny));
        assert_eq!(grants.at(GrantType::Experiment, "9"), Some(Level::Use));
        assert_eq!(grants.at(GrantType::Run, "*"), None);
    }

    #[test]
    fn the_first_tier_with_a_grant_decides() {
        let read_run = Requirement::of(GrantType::Run, "*", Act::Read).or(GrantType::Experiment, "7", Act::Read);
        let denied = of(&[(GrantType::Run, "*", Level::Deny), (GrantType::Experiment, "7", Level::Manage)]);
        assert!(!denied.satisfy(&read_run, Level::Manage));
        let inherited = of(&[(GrantType::Experiment, "7", Level::Read)]);
        assert!(inherited.satisfy(&read_run, Level::NoPermissions));
        assert!(!Grants::default().satisfy(&read_run, Level::NoPermissions));
        assert!(Grants::default().satisfy(&read_run, Level::Read));
    }

    #[test]
    fn without_any_grant_the_last_fallbacks_action_counts() {
        let delete =
            Requirement::of(GrantType::Assessment, "*", Act::Delete).or(GrantType::Experiment, "7", Act::Update);
        assert!(Grants::default().satisfy(&delete, Level::Edit));
        assert!(!of(&[(GrantType::Assessment, "*", Level::Edit)]).satisfy(&delete, Level::Edit));
    }

    #[test]
    fn what_is_positive_is_at_least_the_default() {
        let update = Requirement::of(GrantType::Experiment, "7", Act::Update);
        assert!(of(&[(GrantType::Experiment, "7", Level::Read)]).satisfy(&update, Level::Edit));
        assert!(!of(&[(GrantType::Experiment, "7", Level::Deny)]).satisfy(&update, Level::Edit));
    }

    #[test]
    fn who_administers_the_workspace_is_denied_nothing() {
        let rule = Rule::needs([Requirement::of(GrantType::Experiment, "7", Act::Manage)]);
        let grants = of(&[(GrantType::Workspace, "*", Level::Manage), (GrantType::Experiment, "7", Level::Deny)]);
        assert!(grants.meet(&rule, Level::NoPermissions));
        assert!(!of(&[(GrantType::Workspace, "*", Level::Use)]).meet(&rule, Level::NoPermissions));
        // But of all that is the server's, nothing is his.
        assert!(grants.meet(&Rule::WorkspaceAdministrators, Level::NoPermissions));
        assert!(!grants.meet(&Rule::Administrators, Level::Manage));
    }
}
