//! Marks: the time order of an experiment's traces.
//!
//! A mark is put before its trace gets the time, and one that stands for nothing is passed over: so every trace is found, whatever was
//! cut off. It is taken away only when nobody can be about to rely on it: a minute after it was put, which is longer than any request.

use std::cmp::Ordering;

use entities::attributes::{MARKED_AT, SHARDS};
use entities::now_ms;
use futures::future::try_join_all;
use key_schema::{Ascending, Descending, Key, Ordinal, fnv1a_128, halves, place, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};

use super::store::Store;

/// A day, in ms.
const DAY: i64 = 86_400_000;
/// For how long a mark stays at least, in ms.
const STAYS: i64 = 60_000;

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

/// A place in the time order of an experiment's traces: newest first, equal times by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the trace began, in ms.
    pub time: i64,
    /// The trace.
    pub trace: TraceId,
}

impl Ord for Mark {
    /// Newest first, equal times by id.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.cmp(&self.time).then_with(|| self.trace.cmp(&other.trace))
    }
}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Mark {
    fn key(&self, experiment: ExperimentId, shards: u32) -> Key {
        let shard = shard_of(&self.trace, shards);
        rows::TraceMark::key(&experiment, &Ascending(day_of(self.time)), &shard, &Descending(self.time), &self.trace)
    }
}

/// The partition of a trace's mark among so many.
fn shard_of(trace: &TraceId, shards: u32) -> Ordinal {
    let [_, low] = halves(fnv1a_128(trace.as_str().as_bytes()));
    Ordinal(u32::try_from(low % u64::from(shards.max(1))).unwrap_or_default())
}

/// The partitions in which a mark may be: there were fewer, when it was put. Their number only ever doubles.
fn shards_until(now: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(now.max(1)), |shards| (*shards > 1).then_some(shards / 2))
}

impl Store {
    /// Over how many partitions a day is spread; makes the day where there is none. No request for a day that this process knows, one for
    /// any other.
    async fn trace_shards(&self, experiment: ExperimentId, day: i64) -> Result<u32> {
        if let Some(shards) = self.known.shards(experiment, day) {
            return Ok(shards);
        }
        let row = Item::new(rows::TraceDay::key(&experiment, &Ascending(day))).with(SHARDS, number(1));
        let shards = match self.table.put(row, &Condition::item_missing()).await {
            Ok(()) => 1,
            Err(Failure::Refused { item, .. }) => item.map_or(1, |row| shards(&row)),
            Err(failure) => return Err(failure.into()),
        };
        self.known.keep_day(experiment, day, shards);
        Ok(shards)
    }

    /// A mark's item, to be put. Costs what [`Store::trace_shards`] does.
    pub(super) async fn trace_mark(&self, experiment: ExperimentId, mark: &Mark) -> Result<Item> {
        let shards = self.trace_shards(experiment, day_of(mark.time)).await?;
        Ok(Item::new(mark.key(experiment, shards)).with(MARKED_AT, number(now_ms())))
    }

    /// Takes a mark away, unless somebody put it less than a minute ago. One request, and one for each doubling of its day's partitions.
    pub(super) async fn trace_unmark(&self, experiment: ExperimentId, mark: &Mark) -> Result<()> {
        let shards = self.trace_shards(experiment, day_of(mark.time)).await?;
        let is_old = Condition::Below(MARKED_AT.into(), number(now_ms() - STAYS));
        let mut keys: Vec<_> = shards_until(shards).map(|shards| mark.key(experiment, shards)).collect();
        keys.dedup();
        for key in keys {
            match self.table.delete(&key, &is_old).await {
                Ok(()) | Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }

    /// The days that have traces, newest first; each may turn out to have none. One request, and one per 1 MB of days, which are about
    /// 15,000.
    pub async fn trace_days(&self, experiment: ExperimentId) -> Result<Vec<TraceDay>> {
        let items = self.table.query(Query::of(rows::TraceDay::all(&experiment)).backwards()).await?;
        let day = |item: &Item| {
            let row = item.key().as_ref().and_then(rows::TraceDay::parse)?;
            Some(TraceDay { day: row.day.0, shards: shards(item) })
        };
        Ok(items.iter().filter_map(day).collect())
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
            Query::of(match behind {
                Some(mark) => all.after(&place::newest_first(mark.time, mark.trace.as_str())),
                None => all,
            })
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
            Query::of(all).backwards()
        };
        // The place itself comes once more.
        let more = most.saturating_add(usize::from(before.is_some()));
        let mut marks = self.trace_marks_merged((0..day.shards).map(query), more, |one, other| other.cmp(one)).await?;
        marks.retain(|mark| Some(mark) != before);
        Ok(marks)
    }

    async fn trace_marks_merged(
        &self,
        queries: impl Iterator<Item = Query>,
        most: usize,
        order: impl Fn(&Mark, &Mark) -> Ordering,
    ) -> Result<Vec<Mark>> {
        let pages = queries.map(|query| self.trace_marks_of(query, most));
        let mut marks: Vec<Mark> = try_join_all(pages).await?.into_iter().flatten().collect();
        marks.sort_by(order);
        marks.dedup();
        marks.truncate(most);
        Ok(marks)
    }

    async fn trace_marks_of(&self, query: Query, most: usize) -> Result<Vec<Mark>> {
        let mut query = query.limit(most);
        let mut marks = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            marks.extend(page.items.iter().filter_map(Item::key).filter_map(|key| {
                let row = rows::TraceMark::parse(&key)?;
                Some(Mark { time: row.time.0, trace: row.trace })
            }));
            match page.next {
                Some(next) if marks.len() < most => query = query.starting_at(next),
                _ => return Ok(marks),
            }
        }
    }
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
    fn marks_are_found_where_they_were_put_before_there_were_more_partitions() {
        assert_eq!(shards_until(8).collect::<Vec<_>>(), [8, 4, 2, 1]);
        assert_eq!(shards_until(0).collect::<Vec<_>>(), [1]);
        for number in 0..100 {
            let trace = TraceId::new(number);
            assert_eq!(shard_of(&trace, 4).0 % 2, shard_of(&trace, 2).0);
        }
    }
}
