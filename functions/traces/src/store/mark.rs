//! Marks: the time order of an experiment's traces.
//!
//! A mark is written before its trace gets the time, and before the trace changes or gets spans.
//! Readers pass over a mark without such a trace. So every trace is found as it is, whatever was
//! cut off.
//!
//! Only the packer and the removal of traces for good delete marks, three minutes after they were
//! written. That is longer than a writer relies on a mark ([`RELIABLE`]), and longer than a request
//! lasts. Where the whole experiment is removed, its marks are deleted at once: it is deleted, and
//! takes no traces.

use entities::attributes::{BYTES, MARKED_AT, SHARDS, TO_PACK};
use entities::{StoredTrace, now_ms};
use key_schema::{Ascending, KeyRange, Segment, fnv1a_128, halves, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};
use trace_blocks::{RELIABLE, TraceKey, TracePartition, day_of};

use super::store::Store;

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

/// A mark that a request has put.
#[derive(Clone, Debug)]
pub(super) struct PutMark {
    pub(super) partition: TracePartition,
    pub(super) place: TraceKey,
    /// When, in ms.
    pub(super) at: i64,
}

impl PutMark {
    /// One that is to be put now.
    fn now(partition: TracePartition, place: TraceKey) -> Self {
        Self { partition, place, at: now_ms() }
    }

    /// The same, of a trace.
    pub(super) fn of(trace: &StoredTrace) -> Self {
        Self::now(TracePartition::of(trace), TraceKey::of(trace))
    }

    /// Whether it is that of the trace.
    pub(super) fn is_of(&self, trace: &StoredTrace) -> bool {
        self.partition.holds(trace, &self.place)
    }

    /// Its item.
    pub(super) fn item(&self) -> Item {
        let item = Item::new(self.partition.mark_key(&self.place)).with(MARKED_AT, number(self.at));
        item.with(TO_PACK, number(1))
    }
}

impl PutMark {
    /// Its item, which says how many bytes of spans come with it, if they are counted.
    pub(super) fn item_with(&self, bytes: Option<usize>) -> Item {
        match bytes {
            Some(bytes) => self.item().with(BYTES, number(i64::try_from(bytes).unwrap_or(i64::MAX))),
            None => self.item(),
        }
    }
}

/// A mark that was read.
pub(super) struct ReadMark {
    pub(super) place: TraceKey,
    /// When it was put, in ms.
    pub(super) at: i64,
}

impl ReadMark {
    fn of(item: &Item) -> Option<Self> {
        Some(Self { place: TraceKey::of_key(&item.key()?)?, at: item.get(MARKED_AT).unwrap_or_default() })
    }
}

/// The partition of a trace's mark among so many. A hash that only spreads: clients who choose ids may fill one partition of their own
/// experiment, as they may with ids at all.
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

    /// Writes items with marks among them. A partition that gets too many of them is split. So a
    /// throttled request forgets how many partitions there are, and reads that again.
    pub(super) async fn put_with_marks(&self, items: Vec<Item>) -> Result<()> {
        let put = self.table.write_many(items, &[]).await;
        if let Err(Failure::Throttled(_)) = &put {
            self.known.forget_days();
        }
        Ok(put?)
    }

    /// The mark of a trace that gets this time, to be put. It costs as much as
    /// [`Store::trace_shards`].
    pub(super) async fn trace_mark(&self, experiment: ExperimentId, trace: &TraceId, time: i64) -> Result<PutMark> {
        let day = day_of(time);
        let shard = shard_of(trace, self.trace_shards(experiment, day).await?);
        Ok(PutMark::now(TracePartition { experiment, day, shard }, TraceKey { time, trace: trace.clone() }))
    }

    /// Sees to it that nobody takes the mark of a trace away while it is changed; the mark, if it had to be put. One request, or none.
    pub(super) async fn trace_keep_mark(&self, trace: &StoredTrace) -> Result<Option<PutMark>> {
        if trace.marked_at() >= reliable_since() {
            return Ok(None);
        }
        let mark = PutMark::of(trace);
        self.table.put(mark.item(), &Condition::Always).await?;
        Ok(Some(mark))
    }

    /// The days that have traces, newest first; each may turn out to have none. One request, and one per 1 MB of days, which are about
    /// 15,000.
    pub async fn trace_days(&self, experiment: ExperimentId) -> Result<Vec<TraceDay>> {
        let items = self.table.query(Query::of(rows::TraceDay::all(&experiment)).backwards()).await?;
        Ok(items.iter().filter_map(day_of_row).collect())
    }

    /// Marks of a range of a partition, from its end if backwards: at most so many; and whether there are more. One request, or
    /// one per 1 MB; a read unit per 4 KB, which are about 30 marks.
    pub(super) async fn trace_marks(
        &self,
        range: KeyRange,
        is_backwards: bool,
        most: usize,
    ) -> Result<(Vec<ReadMark>, bool)> {
        let query = Query::of(range).limit(most);
        let mut query = if is_backwards { query.backwards() } else { query };
        let mut marks = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            marks.extend(page.items.iter().filter_map(ReadMark::of));
            match page.next {
                Some(next) if marks.len() < most => query = query.starting_at(next),
                next => return Ok((marks, next.is_some())),
            }
        }
    }
}

fn day_of_row(item: &Item) -> Option<TraceDay> {
    let row = item.key().as_ref().and_then(rows::TraceDay::parse)?;
    Some(TraceDay { day: row.day.0, shards: shards(item) })
}

fn shards(day: &Item) -> u32 {
    day.get(SHARDS).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_spread_over_all_partitions_of_a_day() {
        let shards: Vec<_> = (0..100).map(|number| shard_of(&TraceId::new(number), 4)).collect();
        assert!((0..4).all(|shard| shards.iter().filter(|known| **known == shard).count() > 10));
        assert_eq!(shard_of(&TraceId::new(7), 0), 0);
    }
}
