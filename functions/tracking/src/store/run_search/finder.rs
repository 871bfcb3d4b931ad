//! Reads candidates, checks and sorts them, until the page is full.

use std::collections::{HashMap, HashSet};

use entities::{RunCopy, RunItems, RunLocation, Searched, group_by_run, read_runs, run_whole};
use futures::future::try_join_all;
use key_schema::rows;
use mlflow_api::tracking;
use mlflow_api::{ExperimentId, Result};
use search::{FirstValue, RunPlan, SortKey};
use table::Query;

use super::scope::{Scope, Unlisted, uses_lists};
use super::source::{Candidate, Source};
use crate::store::Store;

/// Candidates read at a time at most: 16 requests at once.
const LARGEST_PORTION: usize = 1_600;

/// A run that was found, and its place in the answer.
pub(super) type Found = (SortKey, tracking::Run);

/// One search under way.
pub(super) struct Finder<'a> {
    pub(super) store: &'a Store,
    pub(super) scopes: HashMap<ExperimentId, &'a Scope>,
    pub(super) plan: &'a RunPlan,
    pub(super) after: Option<&'a SortKey>,
    page_size: usize,
    /// Runs whose copies are not what they are; of experiments with too many there is nothing here, and no copy is used.
    pub(super) unlisted: HashMap<ExperimentId, Unlisted>,
    /// Runs that were looked at.
    seen: HashSet<RunLocation>,
    best: Best,
    has_more: bool,
}

/// What is known of the runs that can pass, beside the candidates' own list.
#[derive(Default)]
struct Narrowing {
    /// How many entries of other lists were read at most.
    limit: usize,
    /// The runs that stand in all of them, if they had no more.
    runs: Option<HashSet<RunLocation>>,
}

impl Narrowing {
    /// Whether the other lists are to be read. What was too long once is tried again only where much more may be read.
    fn is_due(&mut self, limit: usize) -> bool {
        let is_due = self.runs.is_none() && limit > self.limit * 4;
        if is_due {
            self.limit = limit;
        }
        is_due
    }

    fn lets_pass(&self, at: &RunLocation) -> bool {
        self.runs.as_ref().is_none_or(|runs| runs.contains(at))
    }
}

/// The first runs of an order, found among many.
struct Best {
    found: Vec<Found>,
    count: usize,
}

impl Best {
    fn add(&mut self, found: Found) {
        self.found.push(found);
        if self.found.len() >= self.count.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.found.truncate(self.count);
    }
}

/// How many candidates to read next, after so many of which so many passed: as many as will do if they are like those before;
/// twice as many as before, if hardly any passed.
fn next_portion(read: usize, passed: usize, wanted: usize) -> usize {
    let missing = wanted.saturating_sub(passed).max(1);
    let like_before = missing.saturating_mul(read).div_ceil(passed.max(1)).saturating_mul(5) / 4 + 1;
    like_before.min(read.saturating_mul(2)).clamp(missing.min(LARGEST_PORTION), LARGEST_PORTION)
}

impl<'a> Finder<'a> {
    /// A search of a page. Takes out what is unlisted in experiments where that is known.
    pub(super) fn new(
        store: &'a Store,
        scopes: &'a [Scope],
        plan: &'a RunPlan,
        after: Option<&'a SortKey>,
        page_size: usize,
        unlisted: &mut HashMap<ExperimentId, Option<Unlisted>>,
    ) -> Self {
        let scopes = scopes.iter().map(|scope| (scope.id, scope)).collect();
        let unlisted = unlisted.drain().filter_map(|(id, unlisted)| Some((id, unlisted?))).collect();
        let best = Best { found: Vec::new(), count: page_size.saturating_add(1) };
        Self { store, scopes, plan, after, page_size, unlisted, seen: HashSet::new(), best, has_more: false }
    }

    /// What was found, in order, and whether there is more behind it than the page takes.
    pub(super) fn finish(mut self) -> (Vec<Found>, bool) {
        self.best.cut();
        let has_more = self.has_more || self.best.found.len() > self.page_size;
        (self.best.found, has_more)
    }

    /// Looks at the runs that no list tells of.
    pub(super) async fn look_at_unlisted(&mut self) -> Result<()> {
        let unlisted = self.unlisted.values().flat_map(|unlisted| unlisted.changed.iter().chain(&unlisted.deleted));
        let unlisted: HashSet<_> = unlisted.cloned().collect();
        self.look_at(&unlisted.into_iter().collect::<Vec<_>>()).await
    }

    /// Reads runs and keeps those that pass.
    pub(super) async fn look_at(&mut self, places: &[RunLocation]) -> Result<()> {
        self.seen.extend(places.iter().cloned());
        let runs = self.read(places).await?;
        for run in runs {
            self.consider(run);
        }
        Ok(())
    }

    /// Takes candidates in their order until the page is full.
    pub(super) async fn take_from(&mut self, mut sources: Vec<Source>) -> Result<()> {
        let table = &self.store.table;
        let fronts = try_join_all(sources.iter_mut().map(|source| source.next(table))).await?;
        let mut fronts: Vec<Option<Candidate>> = fronts;
        let backwards = matches!(&self.plan.path, search::AccessPath::Walk(walk) if walk.backwards);
        // Every candidate is in the answer: then one more need not be read to know that there is one.
        let all_pass = self.all_pass();
        let wanted = if all_pass { self.page_size } else { self.page_size.saturating_add(1) };
        let (mut passed, mut read) = (0, 0);
        let mut portion_size = wanted.min(LARGEST_PORTION);
        let mut last: Option<Candidate> = None;
        let mut narrowing = Narrowing::default();
        loop {
            if narrowing.is_due(self.plan.narrow_limit(read, passed, wanted.saturating_sub(passed))) {
                narrowing.runs = self.runs_in_all(&self.plan.narrow_by, narrowing.limit).await?;
                if let Some(runs) = narrowing.runs.as_ref().filter(|runs| runs.len() <= wanted.saturating_mul(2)) {
                    // So few that their order is found faster by reading them than in the lists.
                    let runs: Vec<_> = runs.iter().filter(|at| !self.seen.contains(at)).cloned().collect();
                    return self.look_at(&runs).await;
                }
            }
            let mut portion = Vec::new();
            while portion.len() < portion_size {
                let first = fronts.iter().enumerate().filter_map(|(place, front)| Some((place, front.as_ref()?)));
                let first = first.min_by(|(_, a), (_, b)| a.order(b, backwards)).map(|(place, _)| place);
                let Some(place) = first else { break };
                let next = sources[place].next(table).await?;
                let Some(candidate) = std::mem::replace(&mut fronts[place], next) else { break };
                let may_pass = narrowing.lets_pass(&candidate.at) && self.plan.started.contains(candidate.started);
                if may_pass && self.seen.insert(candidate.at.clone()) {
                    portion.push(candidate.clone());
                }
                last = Some(candidate);
            }
            read += portion.len();
            passed += self.look_at_candidates(&portion).await?;
            let next = fronts.iter().flatten().min_by(|a, b| a.order(b, backwards));
            let (Some(next), Some(last)) = (next, &last) else { return Ok(()) };
            if passed >= wanted && next.may_end_before(last) {
                self.has_more |= all_pass;
                return Ok(());
            }
            portion_size = next_portion(read, passed, wanted);
        }
    }

    /// Whether there is nothing to check: no filter, and a list that holds just what the view shows.
    fn all_pass(&self) -> bool {
        let exact = |scope: &&Scope| scope.index_is_exact(self.plan.view);
        self.plan.filter.predicates.is_empty() && !uses_lists(self.plan) && self.scopes.values().all(exact)
    }

    /// Reads candidates and keeps those that pass; how many did.
    async fn look_at_candidates(&mut self, candidates: &[Candidate]) -> Result<usize> {
        let places: Vec<_> = candidates.iter().map(|candidate| candidate.at.clone()).collect();
        let in_tail: HashSet<_> = candidates
            .iter()
            .filter(|candidate| candidate.is_in_tail)
            .map(|candidate| candidate.at.run.to_string())
            .collect();
        let mut passed = 0;
        for run in self.read(&places).await? {
            if in_tail.contains(&run.info.run_id) && !self.lacks_first_value(&run) {
                // It has its place in the lists.
                continue;
            }
            passed += usize::from(self.consider(run));
        }
        Ok(passed)
    }

    fn lacks_first_value(&self, run: &tracking::Run) -> bool {
        self.plan.order.key(&Searched(run)).first_value().is_none_or(|value| matches!(value, FirstValue::Missing))
    }

    /// Keeps a run if it passes and comes after the page before; whether it did.
    fn consider(&mut self, run: tracking::Run) -> bool {
        if !self.plan.view.shows(run.info.lifecycle_stage) || !self.plan.filter.matches(&Searched(&run)) {
            return false;
        }
        let key = self.plan.order.key(&Searched(&run));
        if self.after.is_some_and(|after| key <= *after) {
            return false;
        }
        self.best.add((key, run));
        true
    }

    /// Reads runs: from the indexer's copies where these are what the runs are, else from their documents. A read unit a run
    /// and a request per 100, from documents two of each.
    async fn read(&self, places: &[RunLocation]) -> Result<Vec<tracking::Run>> {
        let table = &self.store.table;
        let has_copy = |at: &&RunLocation| {
            self.unlisted.get(&at.experiment).is_some_and(|unlisted| !unlisted.changed.contains(at))
        };
        let (indexed, mut others): (Vec<&RunLocation>, Vec<&RunLocation>) = places.iter().partition(has_copy);
        let mut copies = table.get_many(&indexed.iter().map(|at| RunCopy::key(at)).collect::<Vec<_>>()).await?;
        let mut runs = Vec::with_capacity(places.len());
        for at in indexed {
            match copies.remove(&RunCopy::key(at)).and_then(|copy| RunCopy(copy).into_values()) {
                Some(items) => runs.extend(self.run(at, &items)?),
                None => others.push(at),
            }
        }
        let others: Vec<_> = others.into_iter().cloned().collect();
        let read = read_runs(table, &others).await?;
        for (at, items) in &read {
            runs.extend(self.run(at, items)?);
        }
        Ok(runs)
    }

    /// A run from its items; `None` if the search is not about its experiment.
    fn run(&self, at: &RunLocation, items: &RunItems) -> Result<Option<tracking::Run>> {
        self.scopes.get(&at.experiment).map(|scope| run_whole(at, items, &scope.state)).transpose()
    }

    /// Reads all runs of experiments and keeps those that pass. A request and 130 read units per MB of runs; in memory are
    /// never more than a few MB and twice the page.
    pub(super) async fn read_whole(&mut self, scopes: &[&Scope]) -> Result<()> {
        for scope in scopes {
            let mut query = Query::of(rows::Run::all(&scope.id));
            let mut unfinished = None;
            loop {
                let page = self.store.table.query_page(&query).await?;
                let mut groups = group_by_run(scope.id, unfinished.take(), page.items)?;
                // The rest of the last run may stand on the next page.
                unfinished = page.next.as_ref().and_then(|_| groups.pop());
                for (at, items) in groups {
                    if !self.seen.contains(&at) {
                        self.consider(run_whole(&at, &items, &scope.state)?);
                    }
                }
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        Ok(())
    }
}
