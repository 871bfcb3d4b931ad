//! Checks that lists show exactly what single reads allow. For every caller, each list, search,
//! query and lookup must show those of its entities that the caller can also read individually.
//!
//! The callers have grants of each level for each resource and type, alone and in combinations, by
//! roles and by direct grants, in the default workspace and in another one. Some have narrowed
//! tokens ([`callers`]). The complete contents of a list are what it shows to an administrator.
//! [`routes`] fails if a route is neither one of the lists, nor known to only return entities that
//! the request identifies.

mod callers;
mod entity;
mod list_requests;
mod routes;
mod single_reads;
mod test_servers;

use std::collections::{BTreeMap, BTreeSet};

use mlflow_api::auth::PermissionLevel;
use runtime::clock::SimulatedClock;

use self::callers::{Caller, request_of};
use self::entity::{Entity, Kind, entities};
use self::list_requests::{List, Scope};
use self::single_reads::singles;
use self::test_servers::{Asked, Process, World};

/// A workspace as shown by a process.
struct View {
    process: Process,
    singles: Vec<(Entity, Asked)>,
    /// The lists, each with the entities that it shows to an administrator.
    lists: Vec<(List, BTreeSet<Entity>)>,
    /// For each list, the number of responses that showed some of its entities, and the number of
    /// responses that did not show all of them.
    shown: BTreeMap<String, (usize, usize)>,
}

impl View {
    async fn new(world: &World, process: Process, workspace: &'static str, with_workspaces: bool) -> Self {
        let foreign = &world.ids["other"]["e1"];
        let (mut singles, mut lists) = (
            singles(workspace, &world.ids[workspace]),
            list_requests::lists(workspace, &world.ids[workspace], foreign),
        );
        if with_workspaces {
            singles.extend(single_reads::workspaces());
            lists.push(list_requests::of_workspaces());
        }
        let known: BTreeSet<_> = singles.iter().map(|(entity, _)| entity.clone()).collect();
        let admin = callers::administrator(workspace);
        let mut view = Self { process, singles, lists: Vec::new(), shown: BTreeMap::new() };
        let readable = view.readable(&admin).await;
        assert_eq!(readable, known, "an administrator reads everything");
        for list in lists {
            let (status, whole) = view.shown(&admin, &list).await;
            assert!(status == 200 && !whole.is_empty(), "{}: {status} {whole:?}", request_of(&admin, &list.asked));
            let unknown: Vec<_> = whole.difference(&known).collect();
            assert_eq!(unknown, Vec::<&Entity>::new(), "no single read of these is known: {:?}", list.asked);
            view.lists.push((list, whole));
        }
        view
    }

    /// Returns the entities that the caller can read individually.
    async fn readable(&self, caller: &Caller) -> BTreeSet<Entity> {
        let mut readable = BTreeSet::new();
        for (entity, asked) in &self.singles {
            let answer = self.process.ask(&caller.sender, caller.workspace, asked).await;
            // Callers who may not learn whether an entity exists get the same refusal for missing
            // entities.
            assert!(matches!(answer.status, 200 | 403), "{}: {answer:?}", request_of(caller, asked));
            if answer.status == 200 {
                readable.insert(entity.clone());
            }
        }
        readable
    }

    /// Returns the status of the response to a list, and the entities that it shows.
    async fn shown(&self, caller: &Caller, list: &List) -> (u16, BTreeSet<Entity>) {
        let answer = self.process.ask(&caller.sender, caller.workspace, &list.asked).await;
        let mut shown = entities(&answer.body, &list.shows);
        // The list may also contain the roles of the callers.
        shown.retain(|entity| entity.0 != Kind::Role || self.singles.iter().any(|(known, _)| known == entity));
        (answer.status, shown)
    }

    /// Returns the differences between the entities that lists show to a caller and the entities
    /// that the caller can read individually.
    async fn differences(&mut self, caller: &Caller) -> Vec<String> {
        let readable = self.readable(caller).await;
        let mut differences = Vec::new();
        for (list, whole) in &self.lists {
            // With a narrowed token, the list of workspaces shows those of the token's user.
            if caller.is_narrowed && list.shows.iter().any(|(kind, _)| *kind == Kind::Workspace) {
                continue;
            }
            let (status, shown) = self.shown(caller, list).await;
            let is_admitted = match &list.scope {
                Scope::Anybody => true,
                Scope::Readers(named) => named.iter().all(|entity| readable.contains(entity)),
                Scope::Administrators => caller.is_admin && (!caller.is_narrowed || status == 200),
                Scope::Selector => status == 200,
            };
            let expected: BTreeSet<_> =
                whole.iter().filter(|entity| is_admitted && readable.contains(entity)).collect();
            let found: BTreeSet<_> = shown.iter().collect();
            // A refusal is equivalent to an empty list.
            if found != expected || !matches!(status, 200 | 403) {
                let more: Vec<_> = found.difference(&expected).collect();
                let fewer: Vec<_> = expected.difference(&found).collect();
                let request = request_of(caller, &list.asked);
                differences.push(format!("{request}: {status}, shows more {more:?}, hides {fewer:?}"));
            }
            let counted = self.shown.entry(format!("{:?}", list.asked)).or_default();
            counted.0 += usize::from(!shown.is_empty());
            counted.1 += usize::from(shown.len() < whole.len());
        }
        differences
    }

    /// Compares the lists for all callers.
    async fn check(mut self, callers: &[Caller]) {
        let mut differences = Vec::new();
        for caller in callers {
            differences.extend(self.differences(caller).await);
        }
        assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
        // Every list must show something to some caller, and hide something from some caller.
        let constant: Vec<_> = self.shown.iter().filter(|(_, (some, fewer))| *some == 0 || *fewer == 0).collect();
        assert!(constant.is_empty(), "{constant:?}");
    }
}

/// Runs a test on a simulated clock, because requests that change grants do not respond before a
/// lease has expired.
async fn without_waiting(test: impl Future<Output = ()>) {
    let clock = SimulatedClock::begin();
    tokio::select! { () = test => {}, () = clock.drive() => {} }
}

/// Compares the lists for all callers of a workspace, in one process.
async fn compared(workspace: &'static str, default: PermissionLevel, with_workspaces: bool) {
    let world = World::new().await;
    let mut all = vec![callers::administrator(workspace)];
    all.extend(callers::users(&world, workspace, default == PermissionLevel::NoPermissions).await);
    all.extend(callers::tokens(&world, workspace).await);
    let process = world.process(default, with_workspaces).await;
    View::new(&world, process, workspace, with_workspaces).await.check(&all).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow() {
    without_waiting(Box::pin(compared("default", PermissionLevel::NoPermissions, false))).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow_where_the_default_is_to_read() {
    without_waiting(Box::pin(compared("default", PermissionLevel::Read, false))).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow_in_a_workspace() {
    without_waiting(Box::pin(compared("team", PermissionLevel::Read, true))).await;
}
