//! What responses about skills contain: the actions that the caller may perform.

use access::{Action, Guard, Needs, Resource, Scope};
use mlflow_api::SkillName;
use mlflow_api::skills::{AllowedAction, Skill};

/// Adds the need that reports what the caller may do with skills. Takes one more request, and none
/// for administrators and on servers without users.
pub(crate) fn with_actions(needs: Needs) -> Needs {
    needs.and_all(Needs::list(Resource::Skill))
}

/// Adds what the caller may do with a skill, if the caller is a user.
pub(crate) fn add_actions(scope: &Scope, name: &SkillName, skill: &mut Skill) {
    if scope.caller().user().is_none() {
        return;
    }
    let guard = Guard::Skill(name.clone());
    let may = |action: &AllowedAction| {
        let action = match action {
            AllowedAction::Use => Action::Use,
            AllowedAction::Update => Action::Update,
            AllowedAction::Delete | AllowedAction::Manage => Action::Manage,
        };
        scope.allows_listed(action, Resource::Skill, &guard)
    };
    skill.allowed_actions = Some(AllowedAction::ALL.into_iter().filter(may).collect());
}
