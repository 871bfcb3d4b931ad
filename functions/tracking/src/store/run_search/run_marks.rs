//! Reads the marks of an experiment's changed runs, and the keys of individually deleted runs.

use std::collections::{HashMap, HashSet};

use entities::{RunLocation, read_all};
use key_schema::KeyRange;
use key_schema::index::{RunsByTime, RunsChanged};
use mlflow_api::Result;
use mlflow_api::tracking::ViewType;
use table::{Item, Query, Table};

use super::mark_budget::{MAX_MARKS, MarkBudget};
use super::searched_experiment::SearchedExperiment;

/// Maximum number of marks per experiment that a search reads up front if it examines only the runs
/// on its page. If an experiment has more marks, the search reads only the marks of its candidates.
const MAX_MARKS_UP_FRONT: usize = 256;
/// Maximum number of marks to read per candidate. A run has at most one mark, but the key range of
/// the candidates may also contain marks of other runs.
const MAX_MARKS_PER_RUN: usize = 4;

impl SearchedExperiment {
    /// Returns the runs that changed since they were indexed, or `None` if there are more than a
    /// few. Takes one request.
    pub(super) async fn few_changed_runs(&self, table: &Table) -> Result<Option<HashSet<RunLocation>>> {
        let range = RunsChanged::all(&self.id).into();
        let changed =
            self.parsed_keys(table, range, MAX_MARKS_UP_FRONT, &MarkBudget::default(), |key| self.run(key)).await?;
        Ok(changed.map(HashSet::from_iter))
    }

    /// Returns the runs that changed since they were indexed. Returns `None` if they have more
    /// marks than the optional bound, or than the search's remaining budget. Takes one request per
    /// 8,000 marks.
    pub(super) async fn changed_runs(
        &self,
        table: &Table,
        budget: &MarkBudget,
        bound: Option<usize>,
    ) -> Result<Option<HashSet<RunLocation>>> {
        let range = RunsChanged::all(&self.id).into();
        let parse = |key: &str| self.run(key);
        let changed = match bound {
            Some(bound) => {
                let changed = self.parsed_keys(table, range, bound, &MarkBudget::of(bound), parse).await?;
                budget.take(changed.as_ref().map_or(bound, Vec::len));
                changed
            }
            None => self.parsed_keys(table, range, MAX_MARKS, budget, parse).await?,
        };
        Ok(changed.map(HashSet::from_iter))
    }

    /// Returns the individually deleted runs that the view might show, with their start times in
    /// ms. Returns `None` if there are more than the search's remaining budget. Takes one request
    /// per 8,000 runs, or none if the view shows no such run.
    pub(super) async fn deleted_runs(
        &self,
        table: &Table,
        view: ViewType,
        budget: &MarkBudget,
    ) -> Result<Option<HashMap<RunLocation, i64>>> {
        let Some(range) = self.deleted_keys(view) else { return Ok(Some(HashMap::new())) };
        let deleted = self.parsed_keys(table, range, MAX_MARKS, budget, |key| self.started_and_run(key)).await?;
        Ok(deleted.map(HashMap::from_iter))
    }

    /// Returns which of these runs have changed, or might have changed, since they were indexed.
    /// Takes one request for the key range of all runs. The range is short, because ids start with
    /// the creation time, so that runs that are close to each other in a list also have similar
    /// ids.
    pub(super) async fn changed_among(&self, table: &Table, runs: &[&RunLocation]) -> Result<HashSet<RunLocation>> {
        let ids = || runs.iter().map(|at| at.run.as_str());
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return Ok(HashSet::new()) };
        let range = RunsChanged::all(&self.id).range().starting(first).until(last);
        let limit = MAX_MARKS_UP_FRONT.max(runs.len() * MAX_MARKS_PER_RUN);
        let page = table.query_page(&Query::of(range.clone()).limit(limit)).await?;
        let known = parse_keys(&page.items, &range, |key| self.run(key))?;
        // If not all marks of the range were read, a mark may exist for any run after the last mark
        // that was read.
        let known_until = page.next.and_then(|_| known.last().cloned());
        let known: HashSet<_> = known.into_iter().collect();
        let is_changed =
            |at: &RunLocation| known.contains(at) || known_until.as_ref().is_some_and(|until| at.run > until.run);
        Ok(runs.iter().copied().filter(|at| is_changed(at)).cloned().collect())
    }

    /// Checks whether the experiment has at most this many runs. Takes one request per 8,000 runs.
    pub(super) async fn has_at_most(&self, table: &Table, runs: usize) -> Result<bool> {
        let mut query = Query::of(RunsByTime::all(&self.id)).limit(runs);
        let mut left = runs;
        loop {
            let page = table.query_page(&query).await?;
            let Some(next) = page.next else { return Ok(true) };
            left = left.saturating_sub(page.items.len());
            if left == 0 {
                return Ok(false);
            }
            query = query.limit(left).starting_at(next);
        }
    }

    /// Returns the values that are parsed from the keys in a range, or `None` if the range has more
    /// than `max` items, or more than the search's remaining budget.
    async fn parsed_keys<T>(
        &self,
        table: &Table,
        range: KeyRange,
        max: usize,
        budget: &MarkBudget,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>> {
        let (mut values, mut left) = (Vec::new(), max.min(budget.left().max(MAX_MARKS_UP_FRONT)));
        let mut query = Query::of(range.clone()).limit(left);
        loop {
            let page = table.query_page(&query).await?;
            values.extend(parse_keys(&page.items, &range, &parse)?);
            budget.take(page.items.len());
            let Some(next) = page.next else { return Ok(Some(values)) };
            left = left.saturating_sub(page.items.len());
            if left == 0 || budget.left() == 0 {
                return Ok(None);
            }
            query = query.limit(left).starting_at(next);
        }
    }
}

/// Parses the values in the keys of items.
fn parse_keys<T>(items: &[Item], range: &KeyRange, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    read_all(items, "a place in a list of runs", |item| parse(item.sort_key(range)?))
}
