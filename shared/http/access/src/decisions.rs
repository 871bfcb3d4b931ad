//! Decides the needs of a request in batches, so that a refused request reads little.
//!
//! A request may name [`MAX_NAMED_ENTITIES`](crate::MAX_NAMED_ENTITIES) entities. The first
//! [`FIRST_BATCH`] of them are looked up and authorized before any other is read, and each further
//! batch is twice as large as the previous one. A request by a caller without any permissions is
//! therefore rejected after the first batch. If the caller has permission for some of the entities,
//! the number of reads is at most about twice the number of these entities. A request that names up
//! to [`FIRST_BATCH`] entities takes one batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use entities::WorkspaceIdentity;
use entities::attributes::WORKSPACE;
use mlflow_api::{Error, ExperimentId, McpServerName, RegisteredModelName, SkillName, Workspace};
use table::{Item, Table, TableKey};

use crate::action::{Action, Resource};
use crate::authorizer::{Authorizer, Visibility};
use crate::authorizer_writes::DecidedNames;
use crate::guard::{AccessCheck, AuthorizerItems, Guard, StoredGuard, workspace_key};
use crate::guard_lookup::{access_check, experiments_of_datasets, guards_of};
use crate::identity::Identity;
use crate::needs::{Need, Needs, Target};
use crate::target_resolution::{ResolvedEntity, resolve};
use crate::workspaces::check;

/// Size of the first batch, both of targets that are resolved and of guards that are authorized. On
/// a server with users, each guard takes two reads: its own item and the caller's grant.
const FIRST_BATCH: usize = 100;

/// The reason why a request is rejected.
#[derive(Debug)]
pub(crate) enum AccessRefusal {
    /// The caller lacks permission for this need.
    Denied(Box<(Identity, Need)>),
    /// An error occurred while the needs were being decided.
    Failed(Error),
}

impl From<Error> for AccessRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<table::Failure> for AccessRefusal {
    fn from(failure: table::Failure) -> Self {
        Self::Failed(failure.into())
    }
}

type Result<T> = std::result::Result<T, AccessRefusal>;

/// The decision about one need. A refusal is recorded only if the need is to list or to show
/// entities, because any other refusal ends the request.
#[derive(Debug)]
pub(crate) struct NeedDecision<'a> {
    pub(crate) need: &'a Need,
    /// The resolved entity. `None` if no such entity exists in the caller's workspace.
    pub(crate) resolved: Option<ResolvedEntity>,
    pub(crate) is_allowed: bool,
    /// Whether permission for one of the guards is enough. An evaluation dataset may be read by
    /// callers who may read at least one of its experiments.
    one_is_enough: bool,
    /// The experiments that the caller may read, if the need is to read an evaluation dataset.
    pub(crate) experiments: Option<HashSet<ExperimentId>>,
}

impl<'a> NeedDecision<'a> {
    fn new(need: &'a Need, resolved: Option<ResolvedEntity>) -> Self {
        let is_dataset = matches!(resolved, Some(ResolvedEntity::EvaluationDataset(_)));
        let one_is_enough = is_dataset && !need.action.writes();
        Self { need, resolved, is_allowed: !one_is_enough, one_is_enough, experiments: None }
    }

    /// Records the decision about one guard.
    fn record(&mut self, is_allowed: bool) {
        if self.one_is_enough {
            self.is_allowed |= is_allowed;
        } else {
            self.is_allowed &= is_allowed;
        }
    }

    fn is_of_dataset(&self) -> bool {
        matches!(self.resolved, Some(ResolvedEntity::EvaluationDataset(_)))
    }

    /// Checks whether the need was refused and the refusal fails the request.
    fn is_refused(&self) -> bool {
        !self.is_allowed && !is_optional(self.need)
    }
}

/// The decisions about the needs of one request, together with what was read for them.
pub(crate) struct Decisions<'a> {
    authorizer: &'a dyn Authorizer,
    table: &'a Table,
    needs: &'a Needs,
    /// Whether the items of guards are read.
    checks_guards: bool,
    /// Whether this is a follow-up check for a request that has already been authorized.
    is_follow_up: bool,
    /// The caller, as of the most recent read.
    pub(crate) identity: Identity,
    pub(crate) decided: Vec<NeedDecision<'a>>,
    /// The registered models, MCP servers and skills that the authorizer decided about, with their
    /// ids.
    pub(crate) names: DecidedNames,
    /// The identity of the request's workspace, if its item was read.
    pub(crate) workspace: Option<WorkspaceIdentity>,
    /// What lists may show to the caller, together with the identity that it was computed for.
    /// `None` unless a decision required it.
    visible: Option<(Identity, Visibility)>,
    /// Whether the workspace of the request is known to exist.
    is_workspace_known: bool,
    /// Size of the next batch.
    size: usize,
}

/// The index of a need and one of its target's guards; `None` if the target does not exist.
type NeedGuard = (usize, Option<Guard>);

impl<'a> Decisions<'a> {
    /// Decides all needs of a request.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if a need other than to list or to show is refused. Other errors if the
    /// workspace does not exist or is being deleted.
    pub(crate) async fn of(
        authorizer: &'a Arc<dyn Authorizer>,
        identity: Identity,
        table: &'a Table,
        needs: &'a Needs,
        (looks, further): (bool, bool),
    ) -> Result<Self> {
        let mut decisions = Self {
            authorizer: authorizer.as_ref(),
            table,
            needs,
            checks_guards: looks,
            is_follow_up: further,
            identity,
            decided: Vec::new(),
            names: DecidedNames::default(),
            workspace: None,
            visible: None,
            is_workspace_known: false,
            size: FIRST_BATCH,
        };
        decisions.check_restriction().await?;
        let groups = decisions.without_unlisted(by_target(needs)).await?;
        let mut rest = groups.as_slice();
        loop {
            let (batch, later) = rest.split_at(rest.len().min(decisions.size));
            decisions.decide(batch.concat()).await?;
            if later.is_empty() {
                return Ok(decisions);
            }
            rest = later;
            decisions.size *= 2;
        }
    }

    /// Returns what lists may show to the caller.
    pub(crate) async fn visible(&self) -> mlflow_api::Result<Visibility> {
        match &self.visible {
            Some((identity, visible)) if *identity == self.identity => Ok(visible.clone()),
            _ => Ok(self.identity.restriction.narrow(self.authorizer.visibility(&self.identity).await?)),
        }
    }

    /// Refuses needs that the caller's credentials cannot satisfy for any entity. No entities are
    /// read.
    async fn check_restriction(&mut self) -> Result<()> {
        let needs = self.needs;
        let refused = |identity: &Identity| {
            let allows = |need: &&Need| identity.restriction.allows(need.action, need.kind);
            needs.iter().find(|need| !is_optional(need) && !allows(need))
        };
        if refused(&self.identity).is_none() {
            return Ok(());
        }
        // Invalid credentials have to result in 401 instead of 403, so the credentials are verified
        // before a need is refused.
        self.identity = self.authorizer.confirm(self.identity.clone()).await?;
        refused(&self.identity).map_or(Ok(()), |need| Err(self.denied(need)))
    }

    /// Removes the needs for experiments that the caller's grants do not include, so that these
    /// experiments are not read. Applies only to requests that list more experiments than one batch
    /// holds.
    async fn without_unlisted(&mut self, groups: Vec<Vec<&'a Need>>) -> Result<Vec<Vec<&'a Need>>> {
        let listed = groups.iter().filter(|group| listed_experiment(group).is_some()).count();
        if !self.checks_guards || listed <= FIRST_BATCH {
            return Ok(groups);
        }
        self.identity = self.authorizer.confirm(self.identity.clone()).await?;
        let visible = self.visible().await?;
        self.visible = Some((self.identity.clone(), visible.clone()));
        let is_hidden = |group: &Vec<&Need>| {
            listed_experiment(group).is_some_and(|guard| {
                let mut listed = group.iter().filter(|need| need.action == Action::List);
                !listed.any(|need| visible.shows_as(need.kind, &guard))
            })
        };
        let (hidden, shown) = groups.into_iter().partition::<Vec<_>, _>(is_hidden);
        let hidden = hidden.into_iter().flatten();
        self.decided.extend(hidden.map(|need| NeedDecision { is_allowed: false, ..NeedDecision::new(need, None) }));
        Ok(shown)
    }

    async fn decide(&mut self, batch: Vec<&'a Need>) -> Result<()> {
        let targets: Vec<_> = batch.iter().map(|need| &need.target).collect();
        let mut targets = resolve(self.table, &self.identity.workspace, &targets).await?;
        let listed = if self.checks_guards {
            experiments_of_datasets(self.table, &self.identity.workspace, &mut targets).await?
        } else {
            HashMap::new()
        };
        let guards: Vec<_> =
            batch.iter().zip(&targets).map(|(need, resolved)| guards_of(need, resolved.as_ref(), &listed)).collect();
        let mut decided: Vec<_> =
            batch.into_iter().zip(targets).map(|(need, resolved)| NeedDecision::new(need, resolved)).collect();
        let mut guarding = Vec::new();
        for (place, (decided, guards)) in decided.iter_mut().zip(guards).enumerate() {
            let guards = self.without_hidden(decided, guards).await?;
            if guards.is_empty() {
                guarding.push((place, None));
            }
            guarding.extend(guards.into_iter().map(|guard| (place, Some(guard))));
        }
        // One target may have many guards, for example an evaluation dataset with many experiments.
        let mut rest = guarding.as_slice();
        loop {
            let (part, later) = self.split(rest);
            self.decide_part(&mut decided, part).await?;
            if later.is_empty() {
                break;
            }
            rest = later;
            self.size *= 2;
        }
        if let Some(refused) = decided.iter().find(|decided| decided.is_refused()) {
            return Err(self.denied(refused.need));
        }
        self.decided.extend(decided);
        Ok(())
    }

    /// Returns the guards to read for a need, given all guards of its target. For an evaluation
    /// dataset with many experiments, returns only the first ones that the caller's grants include,
    /// because a right to one experiment is enough to read the dataset.
    async fn without_hidden(&mut self, decided: &mut NeedDecision<'a>, guards: Vec<Guard>) -> Result<Vec<Guard>> {
        if !decided.one_is_enough || !self.checks_guards {
            return Ok(guards);
        }
        if guards.len() <= FIRST_BATCH {
            decided.experiments = Some(HashSet::new());
            return Ok(guards);
        }
        self.identity = self.authorizer.confirm(self.identity.clone()).await?;
        let visible = self.visible().await?;
        self.visible = Some((self.identity.clone(), visible.clone()));
        let mut shown: Vec<_> = guards.into_iter().filter(|guard| visible.shows(guard)).collect();
        decided.experiments = Some(shown.iter().filter_map(Guard::experiment).collect());
        shown.truncate(FIRST_BATCH);
        Ok(shown)
    }

    /// Splits off the guards of the next batch.
    fn split<'b>(&self, guarding: &'b [NeedGuard]) -> (&'b [NeedGuard], &'b [NeedGuard]) {
        let mut guards = HashSet::new();
        let mut end = guarding.len();
        for (place, (_, guard)) in guarding.iter().enumerate().filter(|_| self.checks_guards) {
            guards.extend(guard);
            if guards.len() > self.size {
                end = place;
                break;
            }
        }
        guarding.split_at(end)
    }

    async fn decide_part(&mut self, decided: &mut [NeedDecision<'a>], part: &[NeedGuard]) -> Result<()> {
        let read = if self.checks_guards { self.read(part).await? } else { AuthorizerItems::new() };
        let mut stored = Vec::new();
        for (place, guard) in part {
            let found = guard.as_ref().map(|guard| self.stored(guard, &read)).transpose()?.flatten();
            let is_foreign = found.as_ref().is_some_and(|found| found.workspace != self.identity.workspace);
            // The entity belongs to another workspace, so it does not exist in this one. A dataset
            // is an exception: it belongs to this workspace even if one of its experiments belongs
            // to another workspace.
            if let Some(decided) = decided.get_mut(*place).filter(|decided| is_foreign && !decided.is_of_dataset()) {
                decided.resolved = None;
            }
            stored.push((found, is_foreign));
        }
        let (mut places, mut asks) = (Vec::new(), Vec::new());
        for ((place, guard), (stored, is_foreign)) in part.iter().zip(stored) {
            let Some(NeedDecision { need, resolved, .. }) = decided.get(*place) else { continue };
            let ask = match (resolved, guard) {
                (Some(_), Some(_)) if is_foreign => access_check(need, Guard::Absent(need.kind), None),
                (Some(_), Some(guard)) => access_check(need, guard.clone(), stored),
                _ if need.reveals_absence || places.last() == Some(place) => continue,
                _ => access_check(need, Guard::Absent(need.kind), None),
            };
            places.push(*place);
            asks.push(ask);
        }
        let allowed = if self.is_follow_up {
            self.authorizer.authorize_further(&self.identity, &asks, &read).await?
        } else {
            self.authorizer.authorize(&self.identity, &asks, &read).await?
        };
        // An access check without a decision is refused.
        let allowed = allowed.into_iter().chain(std::iter::repeat(false));
        for ((place, ask), is_allowed) in places.into_iter().zip(&asks).zip(allowed) {
            let Some(decided) = decided.get_mut(place) else { continue };
            let is_allowed = is_allowed && self.identity.restriction.admits(ask);
            decided.record(is_allowed);
            if let (true, Some(experiments)) = (is_allowed, &mut decided.experiments) {
                experiments.extend(ask.guard.experiment());
            }
            // Every guard has to allow the action, so further guards cannot turn the refusal into a
            // permission.
            if !decided.one_is_enough && decided.is_refused() {
                return Err(self.denied(decided.need));
            }
        }
        self.names.models.extend(asks.iter().filter_map(model));
        self.names.servers.extend(asks.iter().filter_map(server));
        self.names.skills.extend(asks.iter().filter_map(skill));
        Ok(())
    }

    fn denied(&self, need: &Need) -> AccessRefusal {
        AccessRefusal::Denied(Box::new((self.identity.clone(), need.clone())))
    }

    fn stored(&self, guard: &Guard, read: &AuthorizerItems) -> mlflow_api::Result<Option<StoredGuard>> {
        let key = guard.key(&self.identity.workspace).filter(|_| !matches!(guard, Guard::Workspace(_)));
        let item = key.and_then(|key| read.get(&TableKey::here(key)));
        item.map(StoredGuard::of).transpose()
    }

    /// Reads the caller and the guards. Also makes sure, once per request, that the workspace
    /// exists: a guard that belongs to it proves that, and otherwise the workspace's own item is
    /// read.
    async fn read(&mut self, part: &[NeedGuard]) -> Result<AuthorizerItems> {
        let mut wanted: HashSet<_> = part.iter().filter_map(|(_, guard)| guard.clone()).collect();
        // The default workspace always exists.
        let is_elsewhere = self.identity.workspace != Workspace::default() && !self.needs.is_empty();
        let here = Guard::Workspace(Resource::Workspace);
        let is_writing = self.needs.iter().any(|need| need.action.writes());
        let says_nothing = |guard: &Guard| guard.key(&self.identity.workspace).is_none();
        let is_asked = is_writing || part.iter().any(|(_, guard)| guard.is_none()) || wanted.iter().any(says_nothing);
        if is_elsewhere && is_asked && !self.is_workspace_known {
            wanted.insert(here.clone());
        }
        let is_looked_at = wanted.iter().any(|guard| matches!(guard, Guard::Workspace(_)));
        let mut read = self.read_guards(&wanted.into_iter().collect::<Vec<_>>()).await?;
        if is_elsewhere && is_looked_at {
            check(&self.identity.workspace, &read, self.needs)?;
        } else if is_elsewhere && !self.is_workspace_known && !holds_any_of(&read, &self.identity.workspace)? {
            // None of the items that were read proves that the workspace exists, so its own item is
            // read.
            read.extend(self.read_guards(&[here]).await?);
            check(&self.identity.workspace, &read, self.needs)?;
        }
        self.is_workspace_known = true;
        Ok(read)
    }

    async fn read_guards(&mut self, guards: &[Guard]) -> Result<AuthorizerItems> {
        let (identity, read) = self.authorizer.read(self.identity.clone(), self.table, guards).await?;
        self.identity = identity;
        let workspace = read.get(&TableKey::here(workspace_key(&self.identity.workspace)));
        self.workspace = workspace.and_then(WorkspaceIdentity::of).or(self.workspace.take());
        Ok(read)
    }
}

/// Checks whether a refusal of the need does not fail the request.
fn is_optional(need: &Need) -> bool {
    matches!(need.action, Action::List | Action::Show)
}

/// Groups needs by target, in the order in which targets first appear.
fn by_target(needs: &Needs) -> Vec<Vec<&Need>> {
    let mut places: HashMap<&Target, usize> = HashMap::new();
    let mut groups: Vec<Vec<&Need>> = Vec::new();
    for need in needs.iter() {
        let place = *places.entry(&need.target).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(need),
            None => groups.push(vec![need]),
        }
    }
    groups
}

/// Returns the experiment as a guard if the needs of its group only list it or show it. Returns
/// `None` for all other groups.
fn listed_experiment(group: &[&Need]) -> Option<Guard> {
    let is_listed = group.iter().all(|need| is_optional(need)) && group.iter().any(|need| need.action == Action::List);
    match group.first()?.target {
        Target::Experiment(experiment) if is_listed => Some(Guard::Experiment(experiment)),
        _ => None,
    }
}

/// Checks whether any of the items that were read belongs to this workspace.
fn holds_any_of(read: &AuthorizerItems, workspace: &Workspace) -> mlflow_api::Result<bool> {
    let is_here = |item: &Item| Ok(item.has(WORKSPACE) && StoredGuard::of(item)?.workspace == *workspace);
    read.values().map(is_here).find(|found| !matches!(found, Ok(false))).unwrap_or(Ok(false))
}

fn model(ask: &AccessCheck) -> Option<(RegisteredModelName, Option<String>)> {
    match &ask.guard {
        Guard::RegisteredModel(name) => Some((name.clone(), ask.stored.as_ref().and_then(|stored| stored.id.clone()))),
        _ => None,
    }
}

fn server(ask: &AccessCheck) -> Option<(McpServerName, Option<String>)> {
    match &ask.guard {
        Guard::McpServer(name) => Some((name.clone(), ask.stored.as_ref().and_then(|stored| stored.id.clone()))),
        _ => None,
    }
}

fn skill(ask: &AccessCheck) -> Option<(SkillName, Option<String>)> {
    match &ask.guard {
        Guard::Skill(name) => Some((name.clone(), ask.stored.as_ref().and_then(|stored| stored.id.clone()))),
        _ => None,
    }
}
