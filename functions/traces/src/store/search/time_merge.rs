//! Merges the traces of several experiments by time, reading partitions that each contain one day's
//! traces.

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
use super::partition_reader::{OccupiedSpot, PartitionReader, ReadDepth};

/// Number of experiments whose days or partitions are read concurrently.
const CONCURRENCY: usize = 16;
/// Minimum number of positions per read of a partition, if there are many partitions.
const MIN_PLACES_PER_READ: usize = 10;

/// Maximum duration of reads in one request. The function's timeout is 29 seconds.
const MAX_DURATION: Duration = Duration::from_secs(20);

/// Iterator over one experiment's positions in all partitions that have the same number, day by
/// day, newest first.
struct PartitionCursor {
    experiment: ExperimentId,
    shard: u32,
    /// Days whose partitions have not been read yet.
    days: VecDeque<i64>,
    current: Option<(i64, PartitionReader)>,
    /// Positions that have been read but not returned.
    spots: VecDeque<OccupiedSpot>,
    last_returned: Option<TraceKey>,
    times: TimeRange,
    depth: ReadDepth,
}

/// Iterator over the positions of several experiments, newest first. Positions with equal times are
/// in ascending order of their ids.
pub(super) struct MergedPlaces {
    cursors: Vec<PartitionCursor>,
    /// The next position of each cursor that has one in memory.
    next_places: BinaryHeap<Reverse<(TraceKey, usize)>>,
    /// Cursors that have no positions in memory.
    empty_cursors: Vec<usize>,
    /// Positions that were found before the iteration, so that no partition has to be read for
    /// them.
    known_spots: VecDeque<OccupiedSpot>,
    /// Whether partitions are read before the iteration reaches them. Set if blocks are not needed,
    /// because most partitions then have almost nothing to read.
    reads_ahead: bool,
    begun: Moment,
}

impl MergedPlaces {
    /// Returns an iterator over the positions of unexpired traces in a time range that come after
    /// `behind`. Takes one request per experiment.
    pub(super) async fn of(
        store: &Store,
        experiments: &[ExperimentId],
        times: TimeRange,
        behind: Option<&TraceKey>,
        depth: ReadDepth,
    ) -> Result<Self> {
        let begun = Moment::now();
        let kept = store.retention_cache.since(experiments.iter().copied()).await?;
        let walks: Vec<_> = experiments
            .iter()
            .map(|experiment| {
                let times = TimeRange { from: times.from.max(kept.of(*experiment)), ..times };
                PartitionCursor::cursors_of(store, *experiment, times, behind.cloned(), depth)
            })
            .collect();
        let walks: Vec<Vec<PartitionCursor>> = stream::iter(walks).buffered(CONCURRENCY).try_collect().await?;
        let each: Vec<PartitionCursor> = walks.into_iter().flatten().collect();
        let dry = (0..each.len()).collect();
        let reads_ahead = depth == ReadDepth::Nothing;
        Ok(Self {
            cursors: each,
            next_places: BinaryHeap::new(),
            empty_cursors: dry,
            known_spots: VecDeque::new(),
            reads_ahead,
            begun,
        })
    }

    /// Returns an iterator over positions that have already been read, up to the end of the range.
    /// They are ordered newest first.
    pub(super) fn with_known_spots(self, found: Vec<OccupiedSpot>) -> Self {
        Self { known_spots: found.into(), ..self }
    }

    /// Returns the maximum number of partitions that the iteration reads, sequentially or
    /// concurrently.
    pub(super) fn partitions(&self) -> usize {
        self.cursors.iter().map(|walk| walk.days.len()).sum()
    }

    /// Checks whether the request has been reading for so long that it has to stop.
    pub(super) fn is_late(&self) -> bool {
        self.begun.age() > MAX_DURATION
    }

    /// Returns the next `wanted` positions, or fewer at the end. Takes two requests per partition,
    /// and two more per `wanted` positions in it.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the request has been reading for too long, because a
    /// partial result would be wrong.
    pub(super) async fn next(&mut self, store: &Store, wanted: usize) -> Result<Vec<OccupiedSpot>> {
        if self.is_late() {
            let seconds = MAX_DURATION.as_secs();
            return Err(Error::invalid(format!(
                "There are more traces than can be read in {seconds} seconds. Use a shorter time range."
            )));
        }
        let portion = (wanted / self.cursors.len().max(1)).max(MIN_PLACES_PER_READ.min(wanted));
        let mut next: Vec<_> = self.known_spots.drain(..wanted.min(self.known_spots.len())).collect();
        while next.len() < wanted {
            self.refill(store, portion).await?;
            let Some(Reverse((_, at))) = self.next_places.pop() else { break };
            if let Some(walk) = self.cursors.get_mut(at) {
                next.extend(walk.spots.pop_front());
                match walk.spots.front() {
                    Some(spot) => self.next_places.push(Reverse((spot.place.clone(), at))),
                    None => self.empty_cursors.push(at),
                }
            }
        }
        Ok(next)
    }

    /// Reads more positions for those cursors that have none in memory and whose next position may
    /// be newer than the positions in memory.
    async fn refill(&mut self, store: &Store, portion: usize) -> Result<()> {
        loop {
            let latest = |at: &usize| self.cursors.get(*at).and_then(PartitionCursor::latest);
            let Some(newest) = self.empty_cursors.iter().filter_map(latest).max() else {
                self.empty_cursors.clear();
                return Ok(());
            };
            let from = self.next_places.peek().map_or(newest, |Reverse((place, _))| place.time);
            let (mut due, mut dry): (Vec<usize>, Vec<usize>) =
                self.empty_cursors.iter().copied().partition(|at| latest(at).is_some_and(|latest| latest >= from));
            if due.is_empty() {
                return Ok(());
            }
            if self.reads_ahead {
                dry.sort_unstable_by_key(|at| Reverse(latest(at)));
                due.extend(dry.drain(..CONCURRENCY.saturating_sub(due.len()).min(dry.len())));
            }
            due.sort_unstable();
            let mut places = due.iter().peekable();
            let walks = self.cursors.iter_mut().enumerate().filter(|(at, _)| places.next_if_eq(&at).is_some());
            let reads: Vec<_> = walks
                .map(|(at, walk)| async move { walk.read(store, portion).await.map(|place| (at, place)) })
                .collect();
            let read: Vec<(usize, Option<TraceKey>)> =
                stream::iter(reads).buffer_unordered(CONCURRENCY).try_collect().await?;
            self.empty_cursors = dry;
            for (at, place) in read {
                match place {
                    Some(place) => self.next_places.push(Reverse((place, at))),
                    None => self.empty_cursors.push(at),
                }
            }
        }
    }
}

impl PartitionCursor {
    /// Returns the cursors of an experiment. There is one per partition number, so their count is
    /// the largest number of partitions that any day of the experiment has.
    async fn cursors_of(
        store: &Store,
        experiment: ExperimentId,
        times: TimeRange,
        behind: Option<TraceKey>,
        depth: ReadDepth,
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
            last_returned: behind.clone(),
            times,
            depth,
        };
        if depth == ReadDepth::Nothing {
            // Each partition gets a cursor, so that all partitions can be read concurrently.
            let all = days.iter().flat_map(|day| (0..day.shards).map(move |shard| (shard, VecDeque::from([day.day]))));
            return Ok(all.map(|(shard, days)| walk(shard, days)).collect());
        }
        let shards = days.iter().map(|day| day.shards).max().unwrap_or_default();
        let days_of = |shard| days.iter().filter(|day| day.shards > shard).map(|day| day.day).collect();
        Ok((0..shards).map(|shard| walk(shard, days_of(shard))).collect())
    }

    /// Returns the latest possible start time of the next trace, or `None` at the end.
    fn latest(&self) -> Option<i64> {
        let day = self.current.as_ref().map(|(day, _)| *day).or_else(|| self.days.front().copied())?;
        Some(end_of(day))
    }

    /// Reads on in the current partition. Returns the partition's next position, if it has one.
    async fn read(&mut self, store: &Store, most: usize) -> Result<Option<TraceKey>> {
        if self.current.is_none() {
            let Some(day) = self.days.pop_front() else { return Ok(None) };
            let partition = TracePartition { experiment: self.experiment, day, shard: self.shard };
            // The position that was returned last matters only if it belongs to this day. The end
            // of the time range is expressed as a position as well: all traces up to `until` come
            // after the first position of the next millisecond.
            let behind = self.last_returned.take().filter(|place| day_of(place.time) == day);
            let until = self.times.until.filter(|until| *until < end_of(day));
            let after_until = until.map(|until| TraceKey { time: until.saturating_add(1), trace: TraceId::new(0) });
            let behind = behind.into_iter().chain(after_until).max();
            self.current = Some((day, PartitionReader::of(partition, self.times, self.depth, behind)));
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
