//! Marks, which store the time order of an experiment's traces.
//!
//! A trace's mark is written before the trace is created, moved to another time, or changed, and
//! before or together with its spans. Readers skip a mark if no trace exists at the mark's time. Therefore every
//! trace is found in its current state, no matter where a request was interrupted.
//!
//! A mark is deleted three minutes after it was written at the earliest. That is longer than a writer
//! relies on a mark ([`MAX_RELIABLE_MARK_AGE`]), and longer than a request lasts. Only the packer and the
//! permanent removal of traces delete marks. A deletion and an archival of a trace also delete its mark
//! with spans, and leave a mark without spans. If a whole experiment is removed, its marks are deleted
//! immediately, because a deleted experiment accepts no traces.

use entities::attributes::{BYTES, MARKED_AT, SHARDS, TO_PACK, TRACE_EXISTS};
use entities::{StoredTrace, now_ms};
use key_schema::{Ascending, KeyRange, Segment, fnv1a_128, halves, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};
use trace_blocks::{MAX_RELIABLE_MARK_AGE, TraceKey, TracePartition, day_of};

use super::store::Store;

/// A day that has traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDay {
    /// Number of days since 1970-01-01.
    pub day: i64,
    /// Number of partitions over which the day's marks are spread.
    pub shards: u32,
}

/// Returns the time before which a mark is too old for a request to rely on.
pub(super) fn reliable_since() -> i64 {
    now_ms().saturating_sub(MAX_RELIABLE_MARK_AGE)
}

/// A mark that a request has written.
#[derive(Clone, Debug)]
pub(super) struct PutMark {
    pub(super) partition: TracePartition,
    pub(super) place: TraceKey,
    /// When it was written, in ms.
    pub(super) at: i64,
    /// Whether the trace existed before.
    pub(super) trace_exists: bool,
}

impl PutMark {
    /// Returns a mark to be written now.
    pub(super) fn now(partition: TracePartition, place: TraceKey) -> Self {
        Self { partition, place, at: now_ms(), trace_exists: false }
    }

    /// Returns a mark of an existing trace, to be written now.
    pub(super) fn of(trace: &StoredTrace) -> Self {
        Self::now(TracePartition::of(trace), TraceKey::of(trace)).of_existing()
    }

    /// Returns the mark as one of a trace that existed before.
    pub(super) fn of_existing(self) -> Self {
        Self { trace_exists: true, ..self }
    }

    /// Checks whether the mark is at the trace's current position in the time order.
    pub(super) fn is_of(&self, trace: &StoredTrace) -> bool {
        self.partition.holds(trace, &self.place)
    }

    /// Checks whether another mark is at the same place.
    pub(super) fn is_at(&self, other: &Self) -> bool {
        (self.partition, &self.place) == (other.partition, &other.place)
    }

    /// Returns the mark's item.
    pub(super) fn item(&self) -> Item {
        let item = Item::new(self.partition.mark_key(&self.place)).with(MARKED_AT, number(self.at));
        let item = item.with(TO_PACK, number(1));
        if self.trace_exists { item.with(TRACE_EXISTS, number(1)) } else { item }
    }
}

impl PutMark {
    /// Returns the item that stores the mark. `bytes` is the size of the spans that are written
    /// with it, if sizes are counted.
    pub(super) fn item_with(&self, bytes: Option<usize>) -> Item {
        match bytes {
            Some(bytes) => self.item().with(BYTES, number(i64::try_from(bytes).unwrap_or(i64::MAX))),
            None => self.item(),
        }
    }
}

/// A place with marks, as read from the table.
pub(super) struct ReadMark {
    pub(super) place: TraceKey,
    /// When the last of its marks was written, in ms, or later.
    pub(super) at: i64,
}

impl ReadMark {
    fn of(item: &Item) -> Option<Self> {
        Some(Self { place: TraceKey::of_key(&item.key()?)?, at: item.get(MARKED_AT).unwrap_or_default() })
    }
}

/// Returns the number of the partition that contains a trace's mark. The hash only spreads load and
/// is not collision-resistant. A client that chooses its trace ids can put all of its traces into
/// one partition, but this affects only the client's own experiment.
pub(super) fn shard_of(trace: &TraceId, shards: u32) -> u32 {
    let [_, low] = halves(fnv1a_128(trace.as_str().as_bytes()));
    u32::try_from(low % u64::from(shards.max(1))).unwrap_or_default()
}

impl Store {
    /// Returns the number of partitions of a day. If the day does not exist, creates it with as
    /// many partitions as the previous day, because the load is likely to be similar, or with one
    /// if the previous day has no traces. Takes no request if this process has read the day
    /// recently. Otherwise, it takes one, and one more to create the day.
    async fn trace_shards(&self, experiment: ExperimentId, day: i64) -> Result<u32> {
        if let Some(shards) = self.trace_cache.shards(experiment, day) {
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
        self.trace_cache.keep_day(experiment, day, shards);
        Ok(shards)
    }

    /// Creates a day with the given number of partitions, unless the day exists. Returns the day's
    /// actual number of partitions.
    async fn trace_day_make(&self, experiment: ExperimentId, day: i64, shards: u32) -> Result<u32> {
        match self.table.put(day_row(experiment, day, shards), &Condition::item_missing()).await {
            Ok(()) => Ok(shards),
            Err(Failure::Refused { item, .. }) => Ok(item.as_ref().and_then(day_of_row).map_or(1, |day| day.shards)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Writes items that include marks. If a write is throttled, the cached numbers of partitions
    /// are dropped and read again, because a day with an overloaded partition gets more partitions.
    pub(super) async fn put_with_marks(&self, items: Vec<Item>) -> Result<()> {
        let put = self.table.write_many(items, &[]).await;
        if let Err(Failure::Throttled(_)) = &put {
            self.trace_cache.forget_days();
        }
        Ok(put?)
    }

    /// Returns the mark of a trace at this time, to be written. Costs as much as
    /// [`Store::trace_shards`].
    pub(super) async fn trace_mark(&self, experiment: ExperimentId, trace: &TraceId, time: i64) -> Result<PutMark> {
        let day = day_of(time);
        let shard = shard_of(trace, self.trace_shards(experiment, day).await?);
        Ok(PutMark::now(TracePartition { experiment, day, shard }, TraceKey { time, trace: trace.clone() }))
    }

    /// Makes sure that a mark at a trace's place remains when the trace is deleted. Takes at most one
    /// request. A mark with spans is deleted with the trace.
    pub(super) async fn trace_mark_for_deletion(&self, trace: &StoredTrace) -> Result<()> {
        if trace.in_mark().is_none() {
            return self.trace_keep_mark(trace).await.map(drop);
        }
        Ok(self.table.put(PutMark::of(trace).item(), &Condition::Always).await?)
    }

    /// Makes sure that a trace's mark is not deleted while the trace is changed. Returns the mark
    /// if it had to be written. Takes at most one request.
    pub(super) async fn trace_keep_mark(&self, trace: &StoredTrace) -> Result<Option<PutMark>> {
        if trace.marked_at() >= reliable_since() {
            return Ok(None);
        }
        let mark = PutMark::of(trace);
        self.table.put(mark.item(), &Condition::Always).await?;
        Ok(Some(mark))
    }

    /// Returns the days that have traces, newest first. All traces of a day may have been removed.
    /// Takes one request, and one more per 1 MB of days (about 15,000).
    pub async fn trace_days(&self, experiment: ExperimentId) -> Result<Vec<TraceDay>> {
        let items = self.table.query(Query::of(rows::TraceDay::all(&experiment)).backwards()).await?;
        Ok(items.iter().filter_map(day_of_row).collect())
    }

    /// Reads the places of about `most` marks in a range of a partition, starting at the range's end if
    /// `is_backwards` is set. A place with several marks is returned once. Also returns whether there
    /// are more marks, which may be at the last place. Takes one request per MB, and a read unit per
    /// 4 KB (about 30 marks without spans).
    pub(super) async fn trace_marks(
        &self,
        range: KeyRange,
        is_backwards: bool,
        most: usize,
    ) -> Result<(Vec<ReadMark>, bool)> {
        let query = Query::of(range).limit(most);
        let mut query = if is_backwards { query.backwards() } else { query };
        let mut marks: Vec<ReadMark> = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            for mark in page.items.iter().filter_map(ReadMark::of) {
                match marks.last_mut().filter(|last| last.place == mark.place) {
                    Some(last) => last.at = last.at.max(mark.at),
                    None => marks.push(mark),
                }
            }
            match page.next {
                Some(next) if marks.len() < most => query = query.starting_at(next),
                next => {
                    // The last place may have further marks, which may be newer.
                    if let Some(last) = marks.last_mut().filter(|_| next.is_some()) {
                        last.at = i64::MAX;
                    }
                    return Ok((marks, next.is_some()));
                }
            }
        }
    }
}

/// Returns the row of a day with this number of partitions. It must only be written if the day does
/// not exist.
#[must_use]
pub fn day_row(experiment: ExperimentId, day: i64, shards: u32) -> Item {
    Item::new(rows::TraceDay::key(&experiment, &Ascending(day))).with(SHARDS, number(shards))
}

/// Returns the number of partitions of a day, given its row.
#[must_use]
pub fn shards_of_day(row: &Item) -> u32 {
    row.get(SHARDS).unwrap_or(1).max(1)
}

fn day_of_row(item: &Item) -> Option<TraceDay> {
    let row = item.key().as_ref().and_then(rows::TraceDay::parse)?;
    Some(TraceDay { day: row.day.0, shards: shards_of_day(item) })
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
