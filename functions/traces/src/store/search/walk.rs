//! The traces of several experiments in the order of time, from their marks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use clock::Moment;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{Error, ExperimentId, Result};
use search::TimeRange;

use super::super::mark::{Mark, TraceDay, day_of};
use super::super::store::Store;

/// Experiments whose days or marks are read at a time.
const AT_ONCE: usize = 16;
/// Marks of an experiment that are read at least, where there are many experiments.
const LEAST: usize = 10;

/// For how long one request reads: a function has 29 seconds.
const LONGEST: Duration = Duration::from_secs(20);

/// The marks of an experiment, newest first.
struct Walk {
    experiment: ExperimentId,
    days: VecDeque<TraceDay>,
    marks: VecDeque<Mark>,
    behind: Option<Mark>,
    times: TimeRange,
}

/// Marks of experiments, newest first, of equal times the least id first.
pub(super) struct Walks {
    each: Vec<Walk>,
    /// The next mark of each that has one in memory.
    heads: BinaryHeap<Reverse<(Mark, usize)>>,
    /// Those that have none.
    dry: Vec<usize>,
    begun: Moment,
}

impl Walks {
    /// Those between these times and behind a place. One request for each experiment.
    pub(super) async fn of(
        store: &Store,
        experiments: &[ExperimentId],
        times: TimeRange,
        behind: Option<&Mark>,
    ) -> Result<Self> {
        let begun = Moment::now();
        let walks: Vec<_> =
            experiments.iter().map(|experiment| Walk::of(store, *experiment, times, behind.cloned())).collect();
        let walks: Vec<Walk> = stream::iter(walks).buffered(AT_ONCE).try_collect().await?;
        let dry = (0..walks.len()).collect();
        Ok(Self { each: walks, heads: BinaryHeap::new(), dry, begun })
    }

    /// Whether a request has read for so long that it has to end.
    pub(super) fn is_late(&self) -> bool {
        self.begun.age() > LONGEST
    }

    /// The next marks, as many as asked for unless there are no more. One request per day and experiment, and per that many marks.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` when it is late: half of what was asked for would be a wrong answer.
    pub(super) async fn next(&mut self, store: &Store, wanted: usize) -> Result<Vec<(ExperimentId, Mark)>> {
        if self.is_late() {
            let seconds = LONGEST.as_secs();
            return Err(Error::invalid(format!(
                "There are more traces than can be read in {seconds} seconds. Ask for a shorter range of time."
            )));
        }
        let portion = (wanted / self.each.len().max(1)).max(LEAST.min(wanted));
        let mut next = Vec::new();
        while next.len() < wanted {
            self.refill(store, portion).await?;
            let Some(Reverse((mark, place))) = self.heads.pop() else { break };
            if let Some(walk) = self.each.get_mut(place) {
                next.push((walk.experiment, mark));
                match walk.marks.pop_front() {
                    Some(mark) => self.heads.push(Reverse((mark, place))),
                    None => self.dry.push(place),
                }
            }
        }
        Ok(next)
    }

    /// Reads on where no mark is in memory.
    async fn refill(&mut self, store: &Store, portion: usize) -> Result<()> {
        if self.dry.is_empty() {
            return Ok(());
        }
        let mut dry = std::mem::take(&mut self.dry);
        dry.sort_unstable();
        let mut places = dry.iter().peekable();
        let walks = self.each.iter_mut().enumerate().filter(|(place, _)| places.next_if_eq(&place).is_some());
        let reads: Vec<_> = walks
            .map(|(place, walk)| async move { walk.next(store, portion).await.map(|mark| (place, mark)) })
            .collect();
        let read: Vec<(usize, Option<Mark>)> = stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
        self.heads.extend(read.into_iter().filter_map(|(place, mark)| Some(Reverse((mark?, place)))));
        Ok(())
    }
}

impl Walk {
    async fn of(store: &Store, experiment: ExperimentId, times: TimeRange, behind: Option<Mark>) -> Result<Self> {
        let latest = times.until.into_iter().chain(behind.as_ref().map(|mark| mark.time)).min();
        let days = store.trace_days(experiment).await?.into_iter().filter(|day| {
            latest.is_none_or(|latest| day.day <= day_of(latest))
                && times.from.is_none_or(|from| day.day >= day_of(from))
        });
        Ok(Self { experiment, days: days.collect(), marks: VecDeque::new(), behind, times })
    }

    /// The next mark, and others into memory.
    async fn next(&mut self, store: &Store, most: usize) -> Result<Option<Mark>> {
        while self.marks.is_empty() {
            let Some(day) = self.days.front().copied() else { break };
            let behind = self.behind.take().filter(|mark| day_of(mark.time) == day.day);
            let latest = self.times.until.filter(|latest| behind.is_none() && day_of(*latest) == day.day);
            let marks = store.trace_marks(self.experiment, day, latest, behind.as_ref(), most).await?;
            self.behind = marks.last().cloned();
            // Newest first: behind one that is too old there is none.
            let is_past = |mark: &Mark| self.times.from.is_some_and(|from| mark.time < from);
            if marks.len() < most || marks.last().is_some_and(is_past) {
                self.days.pop_front();
            }
            self.marks.extend(marks.into_iter().filter(|mark| self.times.contains(mark.time)));
        }
        Ok(self.marks.pop_front())
    }
}
