//! Adds the actions that the caller may perform on a skill to responses.

use access::{Action, Guard, Needs, Resource, Scope};
use mlflow_api::SkillName;
use mlflow_api::skills::{AllowedAction, Skill};

/// Adds a need that loads the caller's permissions for skills, which [`add_actions`] depends on.
/// Takes one more request, except for administrators and on servers without users.
pub(crate) fn with_actions(needs: Needs) -> Needs {
    needs.and_all(Needs::list(Resource::Skill))
}

/// Adds the actions that the caller may perform on a skill. If the caller is not a user, for
/// example on a server without users, the response does not list actions.
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
