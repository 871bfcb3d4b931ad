//! Removing histories of metrics that are kept no longer: the segments of runs that ended long ago.
//!
//! Documents of runs are not touched, so the latest point of each metric stays. Chart rows stay,
//! too, so a long history can still be drawn. A reader of a history reads the segments that are in
//! the table, and needs none in particular. A pass of the indexer does the same.
//!
//! A look goes on where the last one ended. The experiment's document says with `forgotten` how far
//! that is, by the end of the runs. Some runs come later: imported ones, those that are indexed
//! late, or those that get points after their end. So a process that is always there looks at all
//! runs once a month, and `looked` says when it did.

use entities::attributes::{Attribute, END_TIME, FORGOTTEN, LOOKED, Number, STATUS};
use entities::{MetricsPlace, RUN, RunLocation, place_of_metrics, read_segment};
use futures::stream::{self, StreamExt};
use key_schema::index::RunsByEnd;
use key_schema::{Ascending, Key, OwnStage, Segment, rows};
use mlflow_api::tracking::RunStatus;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Condition, Failure, Item, Query, Update, number};

use crate::failures::Failures;
use crate::looks::Looks;
use crate::policy::Policy;
use crate::report::Report;
use crate::store::Retention;

/// Runs that are listed in one request.
const PORTION: usize = 100;
/// Runs whose histories are removed at a time.
const AT_ONCE: usize = 8;
/// After this time, in ms, all runs of an experiment are looked at: 30 days.
const ALL_AGAIN: i64 = 30 * 24 * 3_600_000;

/// A look at the runs of an experiment. Times are in ms.
struct Look {
    experiment: ExperimentId,
    /// How far earlier looks have come.
    forgotten: Option<i64>,
    /// When it began, if that is to be noted: it looks at all runs.
    looked: Option<i64>,
    /// Whether it says how far it has come.
    notes: bool,
}

impl Retention {
    /// Removes the histories of runs that ended before the time for which the policy keeps them.
    /// Runs that were deleted by themselves keep theirs: they are removed whole. `now` is in ms. It
    /// may be stopped anywhere, and be repeated.
    ///
    /// One request where there is no policy. Else one for the list of experiments, and two for each
    /// that has a turn: its document and its runs. Two more per hundred runs, and one or two for
    /// each run, with the requests of [`Retention::remove_history`].
    ///
    /// # Errors
    /// Those of the table, after the other experiments were tried. What failed is tried again by
    /// the next look.
    pub async fn remove_old_histories(&self, workspace: &Workspace, now: i64, report: &dyn Report) -> Result<()> {
        let Some(age) = Policy::Histories.read(&self.table).await? else { return Ok(()) };
        let mut failures = Failures::default();
        for experiment in self.index.experiments(workspace).await? {
            if self.looks.has_turn(experiment, now) {
                let outcome = self.remove_histories_of(experiment, now, age.before(), report).await;
                failures.note(format_args!("histories of experiment {experiment}"), outcome)?;
            }
        }
        failures.finish()
    }

    async fn remove_histories_of(
        &self,
        experiment: ExperimentId,
        now: i64,
        before: i64,
        report: &dyn Report,
    ) -> Result<()> {
        let mut look = self.look(experiment, now).await?;
        let since = look.forgotten.filter(|_| look.notes && look.looked.is_none()).unwrap_or(i64::MIN);
        let mut failures = Failures::default();
        let mut page = ended(experiment, since, before);
        while let Some(query) = page {
            let (runs, through, next) = self.ended(experiment, query).await?;
            let removed: Vec<_> = runs.iter().map(|at| self.remove_history(at, before)).collect();
            let removed: Vec<_> = stream::iter(removed).buffered(AT_ONCE).collect().await;
            let count = removed.iter().filter(|outcome| outcome.as_ref().is_ok_and(|segments| *segments > 0)).count();
            if let Ok(count @ 1..) = u64::try_from(count) {
                report.removed_histories(experiment, count);
            }
            for (at, outcome) in runs.iter().zip(removed) {
                // The next look begins before it.
                look.notes &= outcome.is_ok();
                failures.note(format_args!("history of run {}", at.run), outcome.map(drop))?;
            }
            if let Some(through) = through {
                self.note(&mut look, through).await?;
            }
            page = next;
        }
        failures.finish()
    }

    async fn look(&self, experiment: ExperimentId, now: i64) -> Result<Look> {
        let mut look = Look { experiment, forgotten: None, looked: None, notes: self.looks != Looks::AtAll };
        if look.notes {
            let document = self.table.get(&rows::Experiment::key(&experiment)).await?;
            let number = |attribute: Attribute<Number>| document.as_ref().and_then(|document| document.get(attribute));
            look.forgotten = number(FORGOTTEN);
            let is_of_all = number(LOOKED).is_none_or(|looked| now.saturating_sub(looked) >= ALL_AGAIN);
            look.looked = is_of_all.then_some(now);
        }
        Ok(look)
    }

    /// A page of runs, the end of the last one in ms, and the query for the next page.
    async fn ended(
        &self,
        experiment: ExperimentId,
        query: Query,
    ) -> Result<(Vec<RunLocation>, Option<i64>, Option<Query>)> {
        let page = self.table.query_page(&query).await?;
        let entries: Vec<_> = page.items.iter().filter_map(Item::entry::<RunsByEnd>).collect();
        let through = entries.last().map(|entry| entry.ended.0);
        let runs = entries.into_iter().map(|entry| RunLocation { experiment, run: entry.run }).collect();
        Ok((runs, through, page.next.map(|next| query.starting_at(next))))
    }

    /// Notes how far a look has come, where that is news.
    async fn note(&self, look: &mut Look, through: i64) -> Result<()> {
        let looked = look.looked.take_if(|_| look.notes);
        if !look.notes || (looked.is_none() && look.forgotten == Some(through)) {
            return Ok(());
        }
        look.forgotten = Some(through);
        let update = Update::new(rows::Experiment::key(&look.experiment)).set(FORGOTTEN, number(through));
        let update = looked.into_iter().fold(update, |update, looked| update.set(LOOKED, number(looked)));
        match self.table.apply(&update.only_if(Condition::item_exists())).await {
            // It was removed meanwhile.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Removes the segments of a run whose points are all from before this time, in ms. A run that
    /// goes on keeps its history, and so does one whose points wait to be packed. Returns how many
    /// segments were removed.
    ///
    /// One request for a run without segments. Else two per MB of segments, and one per 25 that are
    /// removed: a write unit for each KB of these.
    ///
    /// # Errors
    /// Those of the table. An internal one where a segment cannot be read: it stays, as it may have
    /// later points.
    pub(crate) async fn remove_history(&self, at: &RunLocation, before: i64) -> Result<usize> {
        let (mut count, mut outcome) = (0, Ok(()));
        let mut page = Some(Query::of(rows::MetricSegment::all(&at.run).range()));
        while let Some(query) = page {
            let (old, unread, next) = self.old_segments(at, query, before).await?;
            self.table.write_many(Vec::new(), &old).await?;
            count += old.len();
            outcome = outcome.and(unread);
            page = next;
        }
        outcome.map(|()| count)
    }

    /// Of a page of segments those that are kept no longer, and an error if one cannot be read. The
    /// query for the next page comes with them, if the run is over.
    ///
    /// The run is read after its segments. So a segment that a client wrote because the run goes on
    /// is never among them.
    async fn old_segments(
        &self,
        at: &RunLocation,
        query: Query,
        before: i64,
    ) -> Result<(Vec<Key>, Result<()>, Option<Query>)> {
        let found = self.table.query_page(&query).await?;
        let (mut old, mut unread) = (Vec::new(), Ok(()));
        if found.items.is_empty() {
            return Ok((old, unread, None));
        }
        let Some(run) = self.table.get(&at.key()).await? else { return Ok((old, unread, None)) };
        if !is_over(&run, before) {
            return Ok((old, unread, None));
        }
        for segment in &found.items {
            match read_segment(segment) {
                Ok((points, _)) if points.iter().all(|point| point.timestamp < before) => old.extend(segment.key()),
                Ok(_) => {}
                Err(error) => unread = unread.and(Err(error)),
            }
        }
        Ok((old, unread, found.next.map(|next| query.starting_at(next))))
    }

    /// The experiments of a workspace with runs whose histories are kept no longer, and how many
    /// runs these are. It takes the requests of a removal of all, and removes nothing.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn old_histories(&self, workspace: &Workspace) -> Result<Vec<(ExperimentId, usize)>> {
        let Some(age) = Policy::Histories.read(&self.table).await? else { return Ok(Vec::new()) };
        let mut old = Vec::new();
        for experiment in self.index.experiments(workspace).await? {
            let (mut count, mut page) = (0, ended(experiment, i64::MIN, age.before()));
            while let Some(query) = page {
                let (runs, _, next) = self.ended(experiment, query).await?;
                let there: Vec<_> = runs.iter().map(|at| self.has_old_history(at, age.before())).collect();
                let there: Vec<_> = stream::iter(there).buffered(AT_ONCE).collect().await;
                for is_there in there {
                    count += usize::from(is_there?);
                }
                page = next;
            }
            if count > 0 {
                old.push((experiment, count));
            }
        }
        Ok(old)
    }

    async fn has_old_history(&self, at: &RunLocation, before: i64) -> Result<bool> {
        let mut page = Some(Query::of(rows::MetricSegment::all(&at.run).range()));
        while let Some(query) = page {
            let (old, _, next) = self.old_segments(at, query, before).await?;
            if !old.is_empty() {
                return Ok(true);
            }
            page = next;
        }
        Ok(false)
    }
}

/// The runs of an experiment that ended since one time and before another, both in ms, in this
/// order. `None` if there can be none: somebody has set a longer time.
fn ended(experiment: ExperimentId, since: i64, before: i64) -> Option<Query> {
    let ended = RunsByEnd::all(&experiment, &OwnStage::Active, &RUN.into()).range();
    let ended = ended.starting(&Ascending(since).text()).until(&Ascending(before).text());
    (since < before).then(|| Query::of(ended).limit(PORTION))
}

/// Whether a run ended before this time, in ms, goes on no more, and has no points to be packed.
/// A run that goes on again keeps the time of its end.
fn is_over(run: &Item, before: i64) -> bool {
    run.get(STATUS).is_some_and(RunStatus::has_ended)
        && run.get(END_TIME).is_some_and(|ended| ended < before)
        && place_of_metrics(run) != MetricsPlace::Journal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_range_ends_before_it_begins() {
        let experiment = ExperimentId::from_number(49).unwrap();
        assert!(ended(experiment, 5, 5).is_none() && ended(experiment, 6, 5).is_none());
        assert!(ended(experiment, i64::MIN, 5).is_some());
    }
}
