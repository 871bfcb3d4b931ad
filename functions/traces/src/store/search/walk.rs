//! Merges the traces of several experiments by time, from partitions by day.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use runtime::clock::Moment;
use search::TimeRange;
use trace_blocks::{TraceKey, TracePartition, day_of};

use super::super::mark::TraceDay;
use super::super::store::Store;
use super::partition::{Depth, PartitionWalk, Spot};

/// Number of experiments whose days or partitions are read concurrently.
const AT_ONCE: usize = 16;
/// Minimum number of places per read of a partition, if there are many partitions.
const LEAST: usize = 10;

/// Maximum duration of reads in one request. The function's timeout is 29 seconds.
const LONGEST: Duration = Duration::from_secs(20);

/// Iterator over the places of one experiment in all partitions with the same number, day by day,
/// newest first.
struct Walk {
    experiment: ExperimentId,
    shard: u32,
    /// Days that have not been started.
    days: VecDeque<i64>,
    current: Option<(i64, PartitionWalk)>,
    /// Places that have been read but not returned.
    spots: VecDeque<Spot>,
    behind: Option<TraceKey>,
    times: TimeRange,
    depth: Depth,
}

/// Iterator over the places of several experiments, newest first. Places of the same time are in
/// ascending order of their ids.
pub(super) struct Walks {
    each: Vec<Walk>,
    /// The next place of each walk that has one in memory.
    heads: BinaryHeap<Reverse<(TraceKey, usize)>>,
    /// Walks that have no places in memory.
    dry: Vec<usize>,
    /// Places that are known without reading.
    known: VecDeque<Spot>,
    /// Whether partitions are read before they are reached. Without their blocks, most partitions
    /// have almost nothing to read.
    reads_ahead: bool,
    begun: Moment,
}

impl Walks {
    /// Returns an iterator over the places of unexpired traces in a time range, after `behind`. One
    /// request per experiment.
    pub(super) async fn of(
        store: &Store,
        experiments: &[ExperimentId],
        times: TimeRange,
        behind: Option<&TraceKey>,
        depth: Depth,
    ) -> Result<Self> {
        let begun = Moment::now();
        let kept = store.kept.since(experiments.iter().copied()).await?;
        let walks: Vec<_> = experiments
            .iter()
            .map(|experiment| {
                let times = TimeRange { from: times.from.max(kept.of(*experiment)), ..times };
                Walk::all_of(store, *experiment, times, behind.cloned(), depth)
            })
            .collect();
        let walks: Vec<Vec<Walk>> = stream::iter(walks).buffered(AT_ONCE).try_collect().await?;
        let each: Vec<Walk> = walks.into_iter().flatten().collect();
        let dry = (0..each.len()).collect();
        let reads_ahead = depth == Depth::Nothing;
        Ok(Self { each, heads: BinaryHeap::new(), dry, known: VecDeque::new(), reads_ahead, begun })
    }

    /// Returns the iterator over these places, which were found by reading it to its end. They are
    /// ordered newest first.
    pub(super) fn over(self, found: Vec<Spot>) -> Self {
        Self { known: found.into(), ..self }
    }

    /// Returns the maximum number of partitions to be read, sequentially or concurrently.
    pub(super) fn partitions(&self) -> usize {
        self.each.iter().map(|walk| walk.days.len()).sum()
    }

    /// Checks whether the request has been reading for so long that it has to stop.
    pub(super) fn is_late(&self) -> bool {
        self.begun.age() > LONGEST
    }

    /// Returns the next `wanted` places, or fewer at the end. Two requests per partition, and two
    /// more per `wanted` places in it.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` if the request has been reading for too long, because a partial
    /// result would be wrong.
    pub(super) async fn next(&mut self, store: &Store, wanted: usize) -> Result<Vec<Spot>> {
        if self.is_late() {
            let seconds = LONGEST.as_secs();
            return Err(Error::invalid(format!(
                "There are more traces than can be read in {seconds} seconds. Use a shorter time range."
            )));
        }
        let portion = (wanted / self.each.len().max(1)).max(LEAST.min(wanted));
        let mut next: Vec<_> = self.known.drain(..wanted.min(self.known.len())).collect();
        while next.len() < wanted {
            self.refill(store, portion).await?;
            let Some(Reverse((_, at))) = self.heads.pop() else { break };
            if let Some(walk) = self.each.get_mut(at) {
                next.extend(walk.spots.pop_front());
                match walk.spots.front() {
                    Some(spot) => self.heads.push(Reverse((spot.place.clone(), at))),
                    None => self.dry.push(at),
                }
            }
        }
        Ok(next)
    }

    /// Reads more places for walks that have none in memory and may have newer ones than those that
    /// do.
    async fn refill(&mut self, store: &Store, portion: usize) -> Result<()> {
        loop {
            let latest = |at: &usize| self.each.get(*at).and_then(Walk::latest);
            let Some(newest) = self.dry.iter().filter_map(latest).max() else {
                self.dry.clear();
                return Ok(());
            };
            let from = self.heads.peek().map_or(newest, |Reverse((place, _))| place.time);
            let (mut due, mut dry): (Vec<usize>, Vec<usize>) =
                self.dry.iter().copied().partition(|at| latest(at).is_some_and(|latest| latest >= from));
            if due.is_empty() {
                return Ok(());
            }
            if self.reads_ahead {
                dry.sort_unstable_by_key(|at| Reverse(latest(at)));
                due.extend(dry.drain(..AT_ONCE.saturating_sub(due.len()).min(dry.len())));
            }
            due.sort_unstable();
            let mut places = due.iter().peekable();
            let walks = self.each.iter_mut().enumerate().filter(|(at, _)| places.next_if_eq(&at).is_some());
            let reads: Vec<_> = walks
                .map(|(at, walk)| async move { walk.read(store, portion).await.map(|place| (at, place)) })
                .collect();
            let read: Vec<(usize, Option<TraceKey>)> =
                stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
            self.dry = dry;
            for (at, place) in read {
                match place {
                    Some(place) => self.heads.push(Reverse((place, at))),
                    None => self.dry.push(at),
                }
            }
        }
    }
}

impl Walk {
    /// Returns the walks of an experiment: one per partition number, up to the largest number of
    /// partitions that any of its days has.
    async fn all_of(
        store: &Store,
        experiment: ExperimentId,
        times: TimeRange,
        behind: Option<TraceKey>,
        depth: Depth,
    ) -> Result<Vec<Self>> {
        let latest = times.until.into_iter().chain(behind.as_ref().map(|place| place.time)).min();
        let days = store.trace_days(experiment).await?.into_iter().filter(|day| {
            latest.is_none_or(|latest| day.day <= day_of(latest))
                && times.from.is_none_or(|from| day.day >= day_of(from))
        });
        let days: Vec<TraceDay> = days.collect();
        let walk = |shard, days| Self {
            experiment,
            shard,
            days,
            current: None,
            spots: VecDeque::new(),
            behind: behind.clone(),
            times,
            depth,
        };
        if depth == Depth::Nothing {
            // One walk per partition, so that all partitions can be read concurrently.
            let all = days.iter().flat_map(|day| (0..day.shards).map(move |shard| (shard, VecDeque::from([day.day]))));
            return Ok(all.map(|(shard, days)| walk(shard, days)).collect());
        }
        let shards = days.iter().map(|day| day.shards).max().unwrap_or_default();
        let days_of = |shard| days.iter().filter(|day| day.shards > shard).map(|day| day.day).collect();
        Ok((0..shards).map(|shard| walk(shard, days_of(shard))).collect())
    }

    /// Returns the latest time at which the next trace can have begun, or `None` at the end.
    fn latest(&self) -> Option<i64> {
        let day = self.current.as_ref().map(|(day, _)| *day).or_else(|| self.days.front().copied())?;
        Some(end_of(day))
    }

    /// Reads on in the current partition. Returns its next place, if it has one.
    async fn read(&mut self, store: &Store, most: usize) -> Result<Option<TraceKey>> {
        if self.current.is_none() {
            let Some(day) = self.days.pop_front() else { return Ok(None) };
            let partition = TracePartition { experiment: self.experiment, day, shard: self.shard };
            // A place belongs to one day. Places up to `until` come after the first place of the
            // next millisecond.
            let behind = self.behind.take().filter(|place| day_of(place.time) == day);
            let until = self.times.until.filter(|until| *until < end_of(day));
            let after_until = until.map(|until| TraceKey { time: until.saturating_add(1), trace: TraceId::new(0) });
            let behind = behind.into_iter().chain(after_until).max();
            self.current = Some((day, PartitionWalk::of(partition, self.times, self.depth, behind)));
        }
        if let Some((_, walk)) = &mut self.current {
            self.spots.extend(walk.next(store, most).await?);
        }
        if self.spots.is_empty() {
            self.current = None;
        }
        Ok(self.spots.front().map(|spot| spot.place.clone()))
    }
}

/// Returns the last millisecond of a day.
fn end_of(day: i64) -> i64 {
    const DAY: i64 = 86_400_000;
    day.saturating_add(1).saturating_mul(DAY).saturating_sub(1)
}
