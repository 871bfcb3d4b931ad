//! Marks: the time order of an experiment's traces.
//!
//! A mark is put before its trace gets the time, and before the trace changes or gets spans; one that stands for nothing is passed over. So
//! every trace is found as it is, whatever was cut off. Only who packs traces takes marks away, of traces that have not changed for two minutes:
//! longer than a writer relies on a mark ([`RELIABLE`]) and a request lasts.

use std::cmp::Ordering;

use entities::attributes::{MARKED_AT, SHARDS};
use entities::{StoredTrace, now_ms};
use futures::future::try_join_all;
use key_schema::{Ascending, Descending, Key, Ordinal, Segment, fnv1a_128, halves, place, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};

use super::store::Store;

/// A day, in ms.
const DAY: i64 = 86_400_000;
/// How old a mark may be, in ms, on which a request relies that begins now.
const RELIABLE: i64 = 60_000;

/// The UTC day of a time, in days since 1970.
#[must_use]
pub fn day_of(time: i64) -> i64 {
    time.div_euclid(DAY)
}

/// A day that has traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDay {
    /// The day, in days since 1970.
    pub day: i64,
    /// Over how many partitions its marks are spread.
    pub shards: u32,
}

/// Marks put before this time are none that a request relies on.
pub(super) fn reliable_since() -> i64 {
    now_ms().saturating_sub(RELIABLE)
}

/// A place in the time order of an experiment's traces: newest first, equal times by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the trace began, in ms.
    pub time: i64,
    /// The trace.
    pub trace: TraceId,
    /// In which of its day's partitions it is.
    pub shard: u32,
}

/// A mark that a request has put.
#[derive(Clone, Debug)]
pub(super) struct PutMark {
    pub(super) experiment: ExperimentId,
    pub(super) mark: Mark,
    /// When, in ms.
    pub(super) at: i64,
}

impl Ord for Mark {
    /// Newest first, equal times by id.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.cmp(&self.time).then_with(|| self.trace.cmp(&other.trace)).then_with(|| self.shard.cmp(&other.shard))
    }
}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Mark {
    /// That of a trace.
    pub(super) fn of(trace: &StoredTrace) -> Self {
        Self { time: trace.request_time(), trace: trace.id().clone(), shard: trace.shard() }
    }

    /// Whether it stands for the trace, as a mark of this experiment.
    pub(super) fn stands_for(&self, trace: &StoredTrace, experiment: ExperimentId) -> bool {
        trace.experiment() == experiment && *self == Self::of(trace)
    }

    fn key(&self, experiment: ExperimentId) -> Key {
        let (day, shard) = (Ascending(day_of(self.time)), Ordinal(self.shard));
        rows::TraceMark::key(&experiment, &day, &shard, &Descending(self.time), &self.trace)
    }
}

impl PutMark {
    /// One that is to be put now.
    pub(super) fn now(experiment: ExperimentId, mark: Mark) -> Self {
        Self { experiment, mark, at: now_ms() }
    }

    /// Its item.
    pub(super) fn item(&self) -> Item {
        Item::new(self.mark.key(self.experiment)).with(MARKED_AT, number(self.at))
    }
}

/// The partition of a trace's mark among so many.
fn shard_of(trace: &TraceId, shards: u32) -> u32 {
    let [_, low] = halves(fnv1a_128(trace.as_str().as_bytes()));
    u32::try_from(low % u64::from(shards.max(1))).unwrap_or_default()
}

impl Store {
    /// Over how many partitions a day is spread; makes the day where there is none, of as many as the day before has: its load is likely to
    /// be the same. No request for a day that this process has read in the last seconds, one for any other, and one more where there was none.
    async fn trace_shards(&self, experiment: ExperimentId, day: i64) -> Result<u32> {
        if let Some(shards) = self.known.shards(experiment, day) {
            return Ok(shards);
        }
        let until = rows::TraceDay::all(&experiment).range().until(&Ascending(day).text());
        let page = self.table.query_page(&Query::of(until).backwards().limit(1)).await?;
        let shards = match page.items.first().and_then(day_of_row) {
            Some(latest) if latest.day == day => latest.shards,
            earlier => {
                let yesterday = earlier.filter(|earlier| earlier.day == day.saturating_sub(1));
                self.trace_day_make(experiment, day, yesterday.map_or(1, |yesterday| yesterday.shards)).await?
            }
        };
        self.known.keep_day(experiment, day, shards);
        Ok(shards)
    }

    /// Makes a day of so many partitions, unless it is there; how many it has.
    async fn trace_day_make(&self, experiment: ExperimentId, day: i64, shards: u32) -> Result<u32> {
        let row = Item::new(rows::TraceDay::key(&experiment, &Ascending(day))).with(SHARDS, number(shards));
        match self.table.put(row, &Condition::item_missing()).await {
            Ok(()) => Ok(shards),
            Err(Failure::Refused { item, .. }) => Ok(item.as_ref().and_then(day_of_row).map_or(1, |day| day.shards)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Puts items of which some are marks. A partition that gets too many of them becomes several: who was throttled looks how many there are now.
    pub(super) async fn put_with_marks(&self, items: Vec<Item>) -> Result<()> {
        let put = self.table.write_many(items, &[]).await;
        if let Err(Failure::Throttled(_)) = &put {
            self.known.forget_days();
        }
        Ok(put?)
    }

    /// The mark of a trace that gets this time, to be put. Costs what [`Store::trace_shards`] does.
    pub(super) async fn trace_mark(&self, experiment: ExperimentId, trace: &TraceId, time: i64) -> Result<PutMark> {
        let shard = shard_of(trace, self.trace_shards(experiment, day_of(time)).await?);
        Ok(PutMark::now(experiment, Mark { time, trace: trace.clone(), shard }))
    }

    /// Sees to it that nobody takes the mark of a trace away while it is changed; the mark, if it had to be put. One request, or none.
    pub(super) async fn trace_keep_mark(&self, trace: &StoredTrace) -> Result<Option<PutMark>> {
        if trace.marked_at() >= reliable_since() {
            return Ok(None);
        }
        let mark = PutMark::now(trace.experiment(), Mark::of(trace));
        self.table.put(mark.item(), &Condition::Always).await?;
        Ok(Some(mark))
    }

    /// The days that have traces, newest first; each may turn out to have none. One request, and one per 1 MB of days, which are about
    /// 15,000.
    pub async fn trace_days(&self, experiment: ExperimentId) -> Result<Vec<TraceDay>> {
        let items = self.table.query(Query::of(rows::TraceDay::all(&experiment)).backwards()).await?;
        Ok(items.iter().filter_map(day_of_row).collect())
    }

    /// Marks of a day, newest first: at most so many, those behind a place where one is given, and none that began later than `latest`.
    /// One request per partition of the day; a read unit per 4 KB, which are about 30 marks. A mark stands for its trace only if the
    /// trace's document has the same experiment and time.
    pub async fn trace_marks(
        &self,
        experiment: ExperimentId,
        day: TraceDay,
        latest: Option<i64>,
        behind: Option<&Mark>,
        most: usize,
    ) -> Result<Vec<Mark>> {
        let query = |shard| {
            let all = rows::TraceMark::all(&experiment, &Ascending(day.day), &Ordinal(shard)).range();
            let all = match latest {
                Some(latest) => all.starting(&place::time(latest)),
                None => all,
            };
            let query = Query::of(match behind {
                Some(mark) => all.after(&place::newest_first(mark.time, mark.trace.as_str())),
                None => all,
            });
            (shard, query)
        };
        self.trace_marks_merged((0..day.shards).map(query), most, Mark::cmp).await
    }

    /// The same from the other end: oldest first, of equal times the greatest id first, and those before a place where one is given.
    pub(super) async fn trace_marks_oldest(
        &self,
        experiment: ExperimentId,
        day: TraceDay,
        latest: i64,
        before: Option<&Mark>,
        most: usize,
    ) -> Result<Vec<Mark>> {
        let query = |shard| {
            let all = rows::TraceMark::all(&experiment, &Ascending(day.day), &Ordinal(shard)).range();
            let all = all.starting(&place::time(latest));
            let all = match before {
                Some(mark) => all.until(&place::newest_first(mark.time, mark.trace.as_str())),
                None => all,
            };
            (shard, Query::of(all).backwards())
        };
        // The place itself comes once more.
        let more = most.saturating_add(usize::from(before.is_some()));
        let mut marks = self.trace_marks_merged((0..day.shards).map(query), more, |one, other| other.cmp(one)).await?;
        marks.retain(|mark| Some(mark) != before);
        Ok(marks)
    }

    async fn trace_marks_merged(
        &self,
        queries: impl Iterator<Item = (u32, Query)>,
        most: usize,
        order: impl Fn(&Mark, &Mark) -> Ordering,
    ) -> Result<Vec<Mark>> {
        let pages = queries.map(|(shard, query)| self.trace_marks_of(shard, query, most));
        let mut marks: Vec<Mark> = try_join_all(pages).await?.into_iter().flatten().collect();
        marks.sort_by(order);
        marks.truncate(most);
        Ok(marks)
    }

    async fn trace_marks_of(&self, shard: u32, query: Query, most: usize) -> Result<Vec<Mark>> {
        let mut query = query.limit(most);
        let mut marks = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            marks.extend(page.items.iter().filter_map(Item::key).filter_map(|key| {
                let row = rows::TraceMark::parse(&key)?;
                Some(Mark { time: row.time.0, trace: row.trace, shard })
            }));
            match page.next {
                Some(next) if marks.len() < most => query = query.starting_at(next),
                _ => return Ok(marks),
            }
        }
    }
}

fn day_of_row(item: &Item) -> Option<TraceDay> {
    let row = item.key().as_ref().and_then(rows::TraceDay::parse)?;
    Some(TraceDay { day: row.day.0, shards: shards(item) })
}

fn shards(day: &Item) -> u32 {
    day.number(SHARDS).and_then(|shards| u32::try_from(shards).ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight() {
        for (time, day) in [(0, 0), (DAY - 1, 0), (DAY, 1), (-1, -1), (i64::MIN, -106_751_991_168)] {
            assert_eq!(day_of(time), day, "{time}");
        }
    }

    #[test]
    fn traces_are_spread_over_all_partitions_of_a_day() {
        let shards: Vec<_> = (0..100).map(|number| shard_of(&TraceId::new(number), 4)).collect();
        assert!((0..4).all(|shard| shards.iter().filter(|known| **known == shard).count() > 10));
        assert_eq!(shard_of(&TraceId::new(7), 0), 0);
    }
}
