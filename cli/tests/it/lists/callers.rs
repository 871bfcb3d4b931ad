//! Callers: users with grants of every level for every type, and narrowed tokens.

use access::{AllowedActions, Restriction};
use mlflow_api::ExperimentId;
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};
use serde_json::json;
use test_site::all_troubles;

use super::test_servers::{ADMIN, Asked, Ids, World};

/// The levels of grants. Servers do not grant `NO_PERMISSIONS`.
const LEVELS: [PermissionLevel; 5] = [
    PermissionLevel::Read,
    PermissionLevel::Use,
    PermissionLevel::Edit,
    PermissionLevel::Manage,
    PermissionLevel::Deny,
];

/// Types that can be granted for a single resource, each with such a resource.
const RESOURCES: [(GrantType, &str); 6] = [
    (GrantType::Experiment, "e1"),
    (GrantType::Scorer, "e1/s"),
    (GrantType::RegisteredModel, "m1"),
    (GrantType::Prompt, "p1"),
    (GrantType::McpServer, "com.example/s1"),
    (GrantType::Skill, "@acme/k1"),
];

/// Types that can be granted for all resources.
const TYPES: [GrantType; 15] = [
    GrantType::Experiment,
    GrantType::Run,
    GrantType::LoggedModel,
    GrantType::Trace,
    GrantType::Assessment,
    GrantType::Scorer,
    GrantType::ScorerVersion,
    GrantType::RegisteredModel,
    GrantType::RegisteredModelVersion,
    GrantType::Prompt,
    GrantType::PromptVersion,
    GrantType::McpServer,
    GrantType::McpServerVersion,
    GrantType::Skill,
    GrantType::Workspace,
];

/// Types whose grants together cover all entities.
const CONTAINERS: [GrantType; 6] = [
    GrantType::Experiment,
    GrantType::Scorer,
    GrantType::RegisteredModel,
    GrantType::Prompt,
    GrantType::McpServer,
    GrantType::Skill,
];

/// A grant: the type, the test's name of the resource, and the level.
pub(super) type Grant = (GrantType, &'static str, PermissionLevel);

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The description of the caller in failures.
    pub(super) told: String,
    /// The value of the header that identifies the caller.
    pub(super) sender: String,
    /// The workspace of the caller's requests.
    pub(super) workspace: &'static str,
    /// Whether the credentials belong to an administrator.
    pub(super) is_admin: bool,
    /// Whether the credentials are a narrowed token.
    pub(super) is_narrowed: bool,
}

/// A user to be created: the workspace of the grants, the grants, and the workspace of the
/// requests.
struct User {
    granted_in: &'static str,
    grants: Vec<Grant>,
    asks_in: &'static str,
}

/// Returns every resource and type.
fn targets() -> impl Iterator<Item = (GrantType, &'static str)> {
    RESOURCES.into_iter().chain(TYPES.map(|kind| (kind, ALL_RESOURCES)))
}

fn is_grantable((kind, _, level): &Grant) -> bool {
    match kind {
        GrantType::Workspace => matches!(level, PermissionLevel::Use | PermissionLevel::Manage),
        GrantType::Skill => *level != PermissionLevel::Use,
        _ => true,
    }
}

fn reading_everything() -> Vec<Grant> {
    CONTAINERS.map(|kind| (kind, ALL_RESOURCES, PermissionLevel::Read)).to_vec()
}

/// Returns users with one grant each. For each grant, one user has only this grant, and another one
/// also has grants to read everything. The reduced set has one of the two for each grant.
fn singles(workspace: &'static str) -> impl Iterator<Item = User> {
    let grants = targets().flat_map(|(kind, of)| LEVELS.map(|level| (kind, of, level))).filter(is_grantable);
    let user = move |grants: Vec<Grant>| User { granted_in: workspace, grants, asks_in: workspace };
    grants.enumerate().flat_map(move |(number, grant)| {
        let with_all = reading_everything().into_iter().chain([grant]).collect();
        // A denial has the most effect on a user who can otherwise read everything.
        let means_less = usize::from((grant.2 == PermissionLevel::Deny) == number.is_multiple_of(9));
        let mut users = vec![user(vec![grant]), user(with_all)];
        if !all_troubles() {
            users.swap_remove(means_less);
        }
        users
    })
}

/// Returns users with pseudorandom combinations of grants, which are the same in each run.
fn drawn(workspace: &'static str) -> impl Iterator<Item = User> {
    let users = if all_troubles() { 300 } else { 25 };
    let all: Vec<_> = targets().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    (0..users).map(move |_| {
        let grants = (0..2 + draw(4)).map(|_| {
            let (kind, of) = all[draw(all.len())];
            (kind, of, LEVELS[draw(LEVELS.len())])
        });
        User { granted_in: workspace, grants: grants.filter(is_grantable).collect(), asks_in: workspace }
    })
}

/// Returns users whose roles are in a different workspace from their requests.
fn of_another_workspace() -> Vec<User> {
    let on_workspace = |level| vec![(GrantType::Workspace, ALL_RESOURCES, level)];
    let all = [reading_everything(), on_workspace(PermissionLevel::Use), on_workspace(PermissionLevel::Manage)];
    all.map(|grants| User { granted_in: "other", grants, asks_in: "team" }).into()
}

/// Creates the users of a workspace, and returns them as callers. `has_singles` adds users with
/// single grants. Without it, only the full set has them, because another test covers the same
/// decisions.
pub(super) async fn users(world: &World, workspace: &'static str, has_singles: bool) -> Vec<Caller> {
    let user = |grants| User { granted_in: workspace, grants, asks_in: workspace };
    let on_workspace = |level| user(vec![(GrantType::Workspace, ALL_RESOURCES, level)]);
    let mut all = vec![
        user(Vec::new()),
        user(reading_everything()),
        on_workspace(PermissionLevel::Use),
        on_workspace(PermissionLevel::Manage),
    ];
    if has_singles || all_troubles() {
        all.extend(singles(workspace));
    }
    all.extend(drawn(workspace));
    if workspace == "team" {
        all.extend(of_another_workspace());
    }
    let mut callers = Vec::new();
    for (number, user) in all.into_iter().enumerate() {
        callers.push(made(world, &format!("{workspace}{number}"), number, &user).await);
    }
    callers
}

/// Creates a user with these grants. A user with an odd number gets all grants by a role. Other
/// users get only the grants for workspaces by a role.
async fn made(world: &World, name: &str, number: usize, user: &User) -> Caller {
    let User { granted_in, grants, asks_in } = user;
    world.user(name).await;
    let (direct, of_role): (Vec<_>, Vec<_>) =
        grants.iter().partition(|(kind, ..)| *kind != GrantType::Workspace && number.is_multiple_of(2));
    let pattern = |of: &str| filled(&world.ids[*granted_in], of);
    let v3 = "/api/3.0/mlflow";
    let mut given = std::collections::BTreeSet::new();
    for (kind, of, level) in direct {
        // A user can have only one direct grant for a resource.
        if given.insert((kind, of)) {
            let body = json!({
                "username": name, "resource_type": kind.name(), "resource_id": pattern(of), "permission": level.name(),
            });
            world.make(granted_in, &format!("{v3}/users/permissions/grant"), body).await;
        }
    }
    if !of_role.is_empty() {
        let role = json!({ "name": name, "workspace": granted_in });
        let role = world.make(granted_in, &format!("{v3}/roles/create"), role).await["role"]["id"].clone();
        for (kind, of, level) in of_role {
            if !given.insert((kind, of)) {
                continue;
            }
            let body = json!({
                "role_id": role, "resource_type": kind.name(), "resource_pattern": pattern(of), "permission": level.name(),
            });
            world.make(granted_in, &format!("{v3}/roles/permissions/add"), body).await;
        }
        world.make(granted_in, &format!("{v3}/roles/assign"), json!({ "username": name, "role_id": role })).await;
    }
    let told = grants.iter().map(|(kind, of, level)| format!("{} {of} {level}", kind.name())).collect::<Vec<_>>();
    let told = format!("[{}] of {granted_in}, in {asks_in}", told.join(", "));
    Caller { told, sender: name.to_owned(), workspace: asks_in, is_admin: false, is_narrowed: false }
}

fn filled(ids: &Ids, of: &str) -> String {
    match of.split_once('/') {
        // The name of an MCP server or of a skill.
        Some(("com.example" | "@acme", _)) => of.to_owned(),
        Some((experiment, name)) => format!("{}/{name}", ids[experiment]),
        None if of.starts_with('e') => ids[of].clone(),
        None => of.to_owned(),
    }
}

/// Creates narrowed tokens of some users, and of an administrator.
pub(super) async fn tokens(world: &World, workspace: &'static str) -> Vec<Caller> {
    let on = |kind, of, level| vec![(kind, of, level)];
    let mut but_runs = reading_everything();
    but_runs.push((GrantType::Run, ALL_RESOURCES, PermissionLevel::Deny));
    let owners = [
        but_runs,
        on(GrantType::Experiment, "e1", PermissionLevel::Manage),
        on(GrantType::Workspace, ALL_RESOURCES, PermissionLevel::Manage),
    ];
    let mut users = vec![(ADMIN.to_owned(), "administrator".to_owned())];
    for (number, grants) in owners.into_iter().enumerate() {
        let user = User { granted_in: workspace, grants, asks_in: workspace };
        let caller = made(world, &format!("{workspace}-holder{number}"), number, &user).await;
        users.push((caller.sender, caller.told));
    }
    let experiment = |workspace: &str, name: &str| Some(ExperimentId::parse(&world.ids[workspace][name]).unwrap());
    let restrictions = [
        Restriction { experiment: experiment(workspace, "e1"), actions: AllowedActions::All },
        Restriction { experiment: experiment(workspace, "e1"), actions: AllowedActions::Read },
        Restriction { experiment: experiment("other", "e1"), actions: AllowedActions::All },
        Restriction { experiment: None, actions: AllowedActions::Read },
        Restriction { experiment: None, actions: AllowedActions::Ingest },
    ];
    let mut callers = Vec::new();
    for (user, told) in &users {
        for restriction in restrictions {
            let sender = format!("{workspace}-token{}", callers.len());
            world.know(&sender, user, restriction);
            let told = format!("{told}, token {restriction:?}");
            callers.push(Caller { told, sender, workspace, is_admin: user == ADMIN, is_narrowed: true });
        }
    }
    callers
}

/// Returns an administrator of the server.
pub(super) fn administrator(workspace: &'static str) -> Caller {
    let told = format!("administrator in {workspace}");
    Caller { told, sender: ADMIN.to_owned(), workspace, is_admin: true, is_narrowed: false }
}

/// Describes a caller's request in failures.
pub(super) fn request_of(caller: &Caller, asked: &Asked) -> String {
    format!("{}: {} {} {}", caller.told, asked.method, asked.path, asked.body)
}
