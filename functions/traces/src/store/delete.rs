//! Deleting traces.
//!
//! A trace's document and its spans are deleted together, on condition that the document is what
//! was read. Of many spans, the first go with it, and the rest after it. Its mark stays: readers
//! who find the trace in a block learn from it that the trace is gone. The packer takes both away.
//! Spans that arrive meanwhile do not count.

use access::Granted;
use clock::Moment;
use entities::attributes::EDITS;
use entities::{StoredTrace, TraceItem, now_ms};
use futures::stream::{self, StreamExt};
use key_schema::{Key, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use table::{Condition, Failure, Query, Reason, Write, number};
use trace_blocks::day_of;

use super::oldest::{Oldest, Standing, There};
use super::store::Store;

/// Traces that are deleted at a time.
const AT_ONCE: usize = 8;
/// How long one request deletes: a function has 29 seconds.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(20);

impl Store {
    /// Deletes those of these traces that the experiment has; returns how many there were. One request per hundred, and two for each:
    /// its spans are read and deleted; one more per 25 of their items, and one for a mark where it was put more than a minute ago.
    pub async fn traces_delete(&self, experiment: &Granted<ExperimentId>, ids: &[TraceId]) -> Result<u64> {
        let mut heads = self.trace_heads(&ids.iter().collect::<Vec<_>>()).await?;
        heads.retain(|_, trace| trace.experiment() == **experiment);
        let id = **experiment;
        self.traces_remove(heads.into_values().collect(), |trace| trace.experiment() == id).await
    }

    /// Deletes traces of the experiment that began no later than a time, oldest first, and `most`
    /// at most; returns how many. It deletes for 20 seconds; the same request can be sent again for
    /// the rest. Two requests per hundred marks or block, and one for the traces of marks. Two or
    /// three more for each deleted trace.
    pub async fn traces_delete_until(
        &self,
        experiment: &Granted<ExperimentId>,
        latest: i64,
        most: Option<usize>,
    ) -> Result<u64> {
        let (begun, id) = (Moment::now(), **experiment);
        let mut left = most.unwrap_or(usize::MAX);
        let mut deleted = 0;
        // Traces that are kept no longer count as gone; `gc` removes them.
        let since = self.kept.since([id]).await?.of(id).unwrap_or(i64::MIN);
        let mut days = self.trace_days(id).await?;
        days.retain(|day| day.day <= day_of(latest) && day.day >= day_of(since));
        while let Some(day) = days.pop() {
            let mut oldest = Oldest::of(id, day, latest);
            while let Some(places) = oldest.next(self).await? {
                let is_wanted =
                    |trace: &StoredTrace| trace.experiment() == id && (since..=latest).contains(&trace.request_time());
                let there = self.traces_there(places).await?.into_iter();
                let traces: Vec<_> = there.filter(is_wanted).take(left).collect();
                left -= traces.len();
                deleted += self.traces_remove(traces, is_wanted).await?;
                if left == 0 || (begun.age() > LONGEST && deleted > 0) {
                    return Ok(deleted);
                }
                if begun.age() > LONGEST {
                    // An answer of none would say that there is nothing left.
                    return Err(Error::unavailable("so many traces were deleted lately that none was found in time"));
                }
            }
        }
        Ok(deleted)
    }

    /// The traces at these places. One request per hundred marks, but for those of traces that this process has deleted.
    async fn traces_there(&self, places: Vec<There>) -> Result<Vec<StoredTrace>> {
        let may_be_there = |there: &There| match there.standing {
            Standing::Mark(at) => !self.known.was_deleted(&there.partition, &there.place, at),
            Standing::Packed(_) => false,
        };
        let marked: Vec<_> =
            places.iter().filter(|there| may_be_there(there)).map(|there| &there.place.trace).collect();
        let heads = self.trace_heads(&marked).await?;
        let traces = places.into_iter().filter_map(|there| match there.standing {
            Standing::Mark(_) => {
                heads.get(&there.place.trace).filter(|head| there.partition.holds(head, &there.place)).cloned()
            }
            Standing::Packed(trace) => Some(trace),
        });
        Ok(traces.collect())
    }

    async fn traces_remove(
        &self,
        traces: Vec<StoredTrace>,
        is_wanted: impl Fn(&StoredTrace) -> bool + Sync,
    ) -> Result<u64> {
        let removals: Vec<_> = traces.into_iter().map(|trace| self.trace_remove(trace, &is_wanted)).collect();
        // All of them come to their end: one that is cut off leaves spans until the packer finds its mark.
        let removed: Vec<Result<bool>> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
        let removed = removed.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(removed.into_iter().filter(|is_removed| *is_removed).count() as u64)
    }

    /// The items of a trace's spans: those that are deleted with the document, and the rest. One request per MB.
    async fn keys_of_spans(&self, trace: &StoredTrace) -> Result<(Vec<Key>, Vec<Key>)> {
        let mut query = Query::of(rows::TraceSpans::all(&trace.experiment(), trace.id())).for_removal();
        let (mut together, mut rest, mut bytes) = (Vec::new(), Vec::new(), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            for item in &page.items {
                bytes += item.size();
                let is_with_it = together.len() < TOGETHER && bytes <= TOGETHER_BYTES;
                if is_with_it { &mut together } else { &mut rest }.extend(item.key());
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok((together, rest)),
            }
        }
    }

    /// Removes a trace, spans and all, unless it has become another that is not wanted; whether it did. Two requests, one more per 25
    /// items beyond the first hundred, per MB of spans, and for a mark.
    async fn trace_remove(
        &self,
        trace: StoredTrace,
        is_wanted: &(impl Fn(&StoredTrace) -> bool + Sync),
    ) -> Result<bool> {
        let mut trace = trace;
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            let (spans, rest) = self.keys_of_spans(&trace).await?;
            self.trace_keep_mark(&trace).await?;
            let is_same = Condition::Equals(EDITS.into(), number(trace.edits()));
            let head = Write::Delete(rows::Trace::key(trace.id()), is_same);
            let with_it = spans.into_iter().map(|key| Write::Delete(key, Condition::Always));
            let writes: Vec<_> = std::iter::once(head).chain(with_it).collect();
            let begun = now_ms();
            let outcome = self.table.transact(&writes).await;
            self.known.forget_trace(trace.id());
            match outcome {
                Ok(()) => {
                    self.known.keep_deleted(&trace, begun);
                    self.table.write_many(Vec::new(), &rest).await?;
                    if trace.judges_a_session() {
                        let row = rows::TraceOfSession::key(&trace.experiment(), trace.id());
                        self.table.write_many(Vec::new(), &[row]).await?;
                    }
                    return Ok(true);
                }
                Err(Failure::Cancelled(reasons)) => match reasons.into_iter().next() {
                    Some(Reason::Refused(Some(item))) => {
                        // Another request has deleted it, and it has been announced again since.
                        let Some(now) = TraceItem::of(item)?.trace() else { return Ok(false) };
                        trace = now;
                        if !is_wanted(&trace) {
                            return Ok(false);
                        }
                    }
                    // Somebody else was faster.
                    _ => return Ok(false),
                },
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

/// Items of spans that go with the document: a transaction has a hundred writes.
const TOGETHER: usize = 99;
/// And their bytes: it has room for 4 MB, and each KB takes two write units of the one partition.
const TOGETHER_BYTES: usize = 400 << 10;
