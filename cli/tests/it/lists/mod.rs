//! A list shows exactly what single reads allow: for every caller, the entities that each list, search, query and lookup shows are those of
//! its entities that a single read of each allows.
//!
//! The callers have each level of a grant for each resource and type, alone and together with others, by roles and by grants of their own,
//! in the default workspace and in another one; some have tokens that are narrowed ([`callers`]). What a list would show to somebody who may
//! read everything is what it shows to an administrator. [`routes`] fails if a route is neither among the lists nor known to hold what the
//! request names.

mod callers;
mod entity;
mod listed;
mod routes;
mod single;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use clock::Simulation;
use mlflow_api::auth::Level;

use self::callers::{Caller, request_of};
use self::entity::{Entity, Kind, entities};
use self::listed::{List, Scope};
use self::single::singles;
use self::world::{Asked, Process, World};

/// A workspace as a process shows it.
struct View {
    process: Process,
    singles: Vec<(Entity, Asked)>,
    /// The lists, each with what it shows to an administrator.
    lists: Vec<(List, BTreeSet<Entity>)>,
    /// How many answers to a list showed some of what it has, and how many not all of it.
    shown: BTreeMap<String, (usize, usize)>,
}

impl View {
    async fn new(world: &World, process: Process, workspace: &'static str, with_workspaces: bool) -> Self {
        let foreign = &world.ids["other"]["e1"];
        let (mut singles, mut lists) =
            (singles(workspace, &world.ids[workspace]), listed::lists(workspace, &world.ids[workspace], foreign));
        if with_workspaces {
            singles.extend(single::workspaces());
            lists.push(listed::of_workspaces());
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

    /// The entities that single reads allow.
    async fn readable(&self, caller: &Caller) -> BTreeSet<Entity> {
        let mut readable = BTreeSet::new();
        for (entity, asked) in &self.singles {
            let answer = self.process.ask(&caller.sender, caller.workspace, asked).await;
            // Without the right to know, what is not there is refused as well.
            assert!(matches!(answer.status, 200 | 403), "{}: {answer:?}", request_of(caller, asked));
            if answer.status == 200 {
                readable.insert(entity.clone());
            }
        }
        readable
    }

    /// The status of the answer to a list, and what it shows.
    async fn shown(&self, caller: &Caller, list: &List) -> (u16, BTreeSet<Entity>) {
        let answer = self.process.ask(&caller.sender, caller.workspace, &list.asked).await;
        let mut shown = entities(&answer.body, &list.shows);
        // Callers have roles, too.
        shown.retain(|entity| entity.0 != Kind::Role || self.singles.iter().any(|(known, _)| known == entity));
        (answer.status, shown)
    }

    /// What lists show to a caller, and single reads do not allow, and the other way round.
    async fn differences(&mut self, caller: &Caller) -> Vec<String> {
        let readable = self.readable(caller).await;
        let mut differences = Vec::new();
        for (list, whole) in &self.lists {
            // A narrowed token sees the workspaces of its user.
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
            // A refusal says that nothing may be seen.
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

    /// Compares for all callers.
    async fn check(mut self, callers: &[Caller]) {
        let mut differences = Vec::new();
        for caller in callers {
            differences.extend(self.differences(caller).await);
        }
        assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
        // No list shows nothing, or everything, to all.
        let constant: Vec<_> = self.shown.iter().filter(|(_, (some, fewer))| *some == 0 || *fewer == 0).collect();
        assert!(constant.is_empty(), "{constant:?}");
    }
}

/// Runs a test on a clock on which nobody waits: changes of grants are answered after the lease.
async fn without_waiting(test: impl Future<Output = ()>) {
    let clock = Simulation::begin();
    tokio::select! { () = test => {}, () = clock.drive() => {} }
}

/// The callers of a workspace, in a process.
async fn compared(workspace: &'static str, default: Level, with_workspaces: bool) {
    let world = World::new().await;
    let mut all = vec![callers::administrator(workspace)];
    all.extend(callers::users(&world, workspace, default == Level::NoPermissions).await);
    all.extend(callers::tokens(&world, workspace).await);
    let process = world.process(default, with_workspaces).await;
    View::new(&world, process, workspace, with_workspaces).await.check(&all).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow() {
    without_waiting(Box::pin(compared("default", Level::NoPermissions, false))).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow_where_the_default_is_to_read() {
    without_waiting(Box::pin(compared("default", Level::Read, false))).await;
}

#[tokio::test]
async fn lists_show_what_single_reads_allow_in_a_workspace() {
    without_waiting(Box::pin(compared("team", Level::Read, true))).await;
}
