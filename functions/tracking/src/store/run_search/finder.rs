//! Reads candidates, checks and sorts them, until the page is full.

use std::collections::{HashMap, HashSet};

use entities::{RunCopy, RunItems, RunLocation, Searched, group_by_run, read_runs, run_whole};
use futures::future::try_join_all;
use futures::stream::TryStreamExt;
use key_schema::rows;
use listing::{Candidate, Pace, Reading, Source, Top};
use mlflow_api::answer_size::PAGE_JSON;
use mlflow_api::tracking;
use mlflow_api::{ExperimentId, Result};
use search::{AccessPath, FirstValue, RunPlan, SortKey};
use table::Query;

use super::asked::RunSearch;
use super::lists::RunLists;
use super::scope::{Scope, Unlisted};
use crate::store::Store;

/// Candidates read at a time at most: 16 requests at once.
const LARGEST_PORTION: usize = 1_600;

/// Runs looked at at a time of those that are looked at in any case: four requests at once, or eight.
const PORTION: usize = 400;

/// A run that was found: its place in the answer, the run, and about how many bytes it has.
pub(super) type Found = (SortKey, tracking::Run, usize);

/// One search under way.
pub(super) struct Finder<'a> {
    pub(super) store: &'a Store,
    pub(super) scopes: HashMap<ExperimentId, &'a Scope>,
    pub(super) plan: &'a RunPlan,
    pub(super) search: &'a RunSearch,
    /// Runs whose copies are not what they are.
    pub(super) unlisted: HashMap<ExperimentId, Unlisted>,
    /// Experiments with too many of them: which of the candidates are among them is found out when these are read.
    many_unlisted: HashSet<ExperimentId>,
    /// Runs that were looked at.
    seen: HashSet<RunLocation>,
    top: Top<SortKey, tracking::Run>,
    reading: Reading,
    /// Where the page ends because enough was read, or nothing more has room: behind it are runs that nobody looked at.
    end: Option<SortKey>,
    has_more: bool,
    pace: Pace,
}

/// What became of candidates.
#[derive(Default)]
struct Passed {
    /// How many passed.
    runs: usize,
    /// About how many bytes they have.
    bytes: usize,
    /// The last of them in the order of the search.
    last: Option<SortKey>,
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

/// How many candidates to read next, after so many of which so many passed: as many as will do if they are like those before, and a
/// few more where not all passed; twice as many as before, if hardly any passed.
fn next_portion(read: usize, passed: usize, wanted: usize) -> usize {
    let missing = wanted.saturating_sub(passed).max(1);
    let like_before = missing.saturating_mul(read).div_ceil(passed.max(1));
    let like_before = if passed < read { like_before.saturating_mul(5) / 4 + 1 } else { missing };
    like_before.min(read.saturating_mul(2)).clamp(missing.min(LARGEST_PORTION), LARGEST_PORTION)
}

impl<'a> Finder<'a> {
    /// A search of a page. Takes out what is unlisted in experiments where that is known.
    pub(super) fn new(
        store: &'a Store,
        scopes: &'a [Scope],
        plan: &'a RunPlan,
        search: &'a RunSearch,
        reading: Reading,
        unlisted: &mut HashMap<ExperimentId, Option<Unlisted>>,
    ) -> Self {
        let scopes = scopes.iter().map(|scope| (scope.id, scope)).collect();
        let many_unlisted = unlisted.iter().filter(|(_, unlisted)| unlisted.is_none()).map(|(id, _)| *id).collect();
        let unlisted = unlisted.drain().filter_map(|(id, unlisted)| Some((id, unlisted?))).collect();
        let (seen, top, pace) = (HashSet::new(), Top::new(search.page_size), Pace::default());
        let (end, has_more) = (None, false);
        Self { store, scopes, plan, search, unlisted, many_unlisted, seen, top, reading, end, has_more, pace }
    }

    /// What was found, in order, and whether there is more behind it.
    pub(super) fn finish(self) -> (Vec<Found>, bool) {
        let found = self.top.finish();
        let has_more = self.has_more || found.end.is_some();
        let mut runs = found.entities;
        if let Some(end) = self.end {
            runs.retain(|(key, ..)| *key <= end);
        }
        (runs, has_more)
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
        let mut passed = Passed::default();
        for portion in places.chunks(PORTION) {
            self.read(portion, &HashSet::new(), &mut passed).await?;
        }
        Ok(())
    }

    /// Takes candidates in their order until the page is full.
    pub(super) async fn take_from(&mut self, mut sources: Vec<Source<RunLists>>) -> Result<()> {
        let table = &self.store.table;
        self.reading.begins_here();
        let mut fronts = try_join_all(sources.iter_mut().map(|source| source.next(table))).await?;
        let backwards = matches!(&self.plan.path, AccessPath::Walk(walk) if walk.backwards);
        // Every candidate is in the answer: then one more need not be read to know that there is one.
        let all_pass = self.all_pass();
        let wanted = if all_pass { self.search.page_size } else { self.search.page_size.saturating_add(1) };
        let (mut passed, mut read) = (Passed::default(), 0);
        let mut portion_size = self.reading.portion(wanted.min(LARGEST_PORTION));
        let mut last: Option<Candidate<RunLocation>> = None;
        let mut narrowing = Narrowing::default();
        loop {
            if narrowing.is_due(self.plan.narrow_limit(read, passed.runs, wanted.saturating_sub(passed.runs))) {
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
            self.look_at_candidates(&portion, &mut passed).await?;
            self.reading.portion_was(portion.len());
            let next = fronts.iter().flatten().min_by(|a, b| a.order(b, backwards));
            let (Some(next), Some(last)) = (next, &last) else { return Ok(()) };
            if next.may_end_before(last) {
                if passed.runs >= wanted {
                    self.has_more |= all_pass;
                    return Ok(());
                }
                if passed.runs > 0 && (passed.bytes > PAGE_JSON || self.reading.is_used_up()) {
                    self.has_more = true;
                    self.end = passed.last;
                    return Ok(());
                }
            }
            portion_size = self.reading.portion(next_portion(read, passed.runs, wanted));
        }
    }

    /// Whether there is nothing to check: no filter, and a list that holds just what the view shows.
    fn all_pass(&self) -> bool {
        let exact = |scope: &&Scope| scope.index_is_exact(self.search.view);
        self.search.filter.predicates.is_empty() && !self.plan.reads_index() && self.scopes.values().all(exact)
    }

    /// Reads candidates and keeps those that pass.
    async fn look_at_candidates(&mut self, candidates: &[Candidate<RunLocation>], passed: &mut Passed) -> Result<()> {
        let places: Vec<_> = candidates.iter().map(|candidate| candidate.at.clone()).collect();
        let in_tail: HashSet<_> =
            candidates.iter().filter(|candidate| candidate.is_in_tail).map(|candidate| candidate.at.clone()).collect();
        self.read(&places, &in_tail, passed).await
    }

    fn lacks_first_value(&self, run: &tracking::Run) -> bool {
        self.search.order.key(&Searched(run)).first_value().is_none_or(|value| matches!(value, FirstValue::Missing))
    }

    /// Keeps a run if it passes and comes after the page before.
    fn consider(&mut self, run: tracking::Run, bytes: usize, passed: &mut Passed) {
        if !self.search.view.shows(run.info.lifecycle_stage) || !self.search.filter.matches(&Searched(&run)) {
            return;
        }
        let key = self.search.order.key(&Searched(&run));
        if self.search.after.as_ref().is_some_and(|after| key <= *after) {
            return;
        }
        passed.runs += 1;
        passed.bytes += bytes;
        if passed.last.as_ref().is_none_or(|last| key > *last) {
            passed.last = Some(key.clone());
        }
        self.top.add(key, run, bytes);
    }

    /// Reads runs and keeps those that pass: from the indexer's copies where these are what the runs are, else from their documents. A
    /// read unit a run and a request per 100, from documents two of each; where many runs have changed, one request more. Of those in the tail, a run that has what the search is
    /// ordered by has its place in the lists.
    async fn read(
        &mut self,
        places: &[RunLocation],
        in_tail: &HashSet<RunLocation>,
        passed: &mut Passed,
    ) -> Result<()> {
        let table = &self.store.table;
        let changed = self.changed_among(places).await?;
        let has_copy = |at: &&RunLocation| match self.unlisted.get(&at.experiment) {
            Some(unlisted) => !unlisted.changed.contains(at),
            None => self.many_unlisted.contains(&at.experiment) && !changed.contains(at),
        };
        let (indexed, mut others): (Vec<&RunLocation>, Vec<&RunLocation>) = places.iter().partition(has_copy);
        let mut copies = table.get_many(&indexed.iter().map(|at| RunCopy::key(at)).collect::<Vec<_>>()).await?;
        for at in indexed {
            match copies.remove(&RunCopy::key(at)).and_then(|copy| RunCopy(copy).into_values()) {
                Some(items) => {
                    self.pace.keep().await;
                    self.look_at_items(at, &items, in_tail, passed)?;
                }
                None => others.push(at),
            }
        }
        let others: Vec<_> = others.into_iter().cloned().collect();
        // Wide runs are long; they are looked at as they come.
        let mut read = std::pin::pin!(read_runs(table, &others));
        while let Some((at, items)) = read.try_next().await? {
            self.pace.keep().await;
            self.look_at_items(&at, &items, in_tail, passed)?;
        }
        Ok(())
    }

    /// Which of the runs are not what their copies say, in experiments of which that is not known. A request for each of these.
    async fn changed_among(&self, places: &[RunLocation]) -> Result<HashSet<RunLocation>> {
        let mut changed = HashSet::new();
        for scope in self.many_unlisted.iter().filter_map(|id| self.scopes.get(id)) {
            let runs: Vec<_> = places.iter().filter(|at| at.experiment == scope.id).collect();
            changed.extend(scope.changed_among(&self.store.table, &runs).await?);
        }
        Ok(changed)
    }

    fn look_at_items(
        &mut self,
        at: &RunLocation,
        items: &RunItems,
        in_tail: &HashSet<RunLocation>,
        passed: &mut Passed,
    ) -> Result<()> {
        let Some(scope) = self.scopes.get(&at.experiment) else { return Ok(()) };
        let run = run_whole(at, items, &scope.state)?;
        if !in_tail.contains(at) || self.lacks_first_value(&run) {
            self.consider(run, items.size(), passed);
        }
        Ok(())
    }

    /// Reads all runs of experiments and keeps those that pass. A request and 130 read units per MB of runs; in memory are
    /// never more than a few MB and twice the page.
    pub(super) async fn read_whole(&mut self, scopes: &[&Scope]) -> Result<()> {
        let mut passed = Passed::default();
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
                        self.pace.keep().await;
                        self.consider(run_whole(&at, &items, &scope.state)?, items.size(), &mut passed);
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
