//! Forgetting the history of a run's metrics: its segments and chart rows. The latest point of each
//! metric stays, and so do points that wait for a segment.
//!
//! First the metrics documents are written without what they told of the history, so readers ask
//! for no chart row any more. The first of them remembers with `forgets` that rows and segments are
//! left. Then these are deleted, and `forgets` at last. This may stop at any request: whoever finds
//! `forgets` goes on.
//!
//! A pass that packs the run at the same time is noticed by `packed`, like any two passes. Chart
//! rows that a later pass makes have a greater `packed`, and stay.

use entities::attributes::{CHARTED, END_TIME, FORGETS, PACKED, WIDE};
use entities::{MetricsPlace, RunLocation, packed, place_of_metrics, read_run_metrics};
use futures::stream::{self, StreamExt};
use key_schema::{Key, rows};
use table::{Condition, Failure, Item, Query, Result, Update, number};

use crate::Indexer;
use crate::pack::put;

/// Chart rows that are deleted at a time.
const AT_ONCE: usize = 16;

impl Indexer {
    /// Whether a run may have segments, or chart rows, by its first metrics document.
    #[must_use]
    pub fn has_history(document: &Item) -> bool {
        [CHARTED, FORGETS, WIDE].iter().any(|name| document.has(name))
    }

    /// Removes the history of a run that ended before that time, in ms: chart rows, and the
    /// segments that begin before it. Returns whether there was one, and it is gone. A run that has
    /// not ended, or has points to be packed, keeps its history for now.
    ///
    /// A short run may have segments without a metrics document: calls wrote these.
    ///
    /// Two requests for a run without a history. Else one per metrics document, per 25 segments
    /// and per chart row as well: a write unit for each KB that is deleted.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub async fn forget_history(&self, at: &RunLocation, before: i64) -> Result<bool> {
        let mut items = self.table.get_many(&[at.key(), at.metrics_key()]).await?;
        let Some(run) = items.remove(&at.key()) else { return Ok(false) };
        let first = items.remove(&at.metrics_key());
        if run.number(END_TIME).is_none_or(|ended| ended >= before) {
            return Ok(false);
        }
        match place_of_metrics(&run) {
            MetricsPlace::Documents => {}
            MetricsPlace::Nowhere if first.is_none() => return self.delete_segments(at, before).await,
            _ => return Ok(false),
        }
        let metrics = read_run_metrics(&self.table, at, &run, first).await?;
        let (first, further): (Vec<_>, Vec<_>) =
            metrics.documents.iter().partition(|document| document.key() == Some(at.metrics_key()));
        let Some(first) = first.first() else { return Ok(false) };
        let told = metrics.documents.iter().any(|document| document.has(CHARTED));
        let times = metrics.packed() + 1;
        let forgets = match first.number(FORGETS) {
            _ if told => times,
            Some(forgets) => forgets,
            None => return Ok(false),
        };
        if told {
            // The first one comes first: it says that there is something to delete.
            let replaced = std::iter::once(*first).chain(further.into_iter().filter(|document| document.has(CHARTED)));
            for document in replaced {
                match self.put_without_history(document, times, *first == document).await {
                    // It is being packed. The next look finds what is left.
                    Err(Failure::Unexpected(_)) => return Ok(false),
                    outcome => outcome?,
                }
            }
        }
        self.delete_chart_rows(at, forgets).await?;
        self.delete_segments(at, before).await?;
        let is_as_left = Condition::Equals(FORGETS.into(), number(forgets));
        match self.table.apply(&Update::new(at.metrics_key()).remove(FORGETS).only_if(is_as_left)).await {
            // There is more to delete by now.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    async fn put_without_history(&self, document: &Item, times: i64, is_first: bool) -> Result<()> {
        let is_as_read = Condition::Equals(PACKED.into(), number(packed(document)));
        let mut item = document.clone().with(PACKED, number(times));
        item.0.remove(CHARTED);
        let item = if is_first { item.with(FORGETS, number(times)) } else { item };
        put(&self.table, item, &is_as_read).await
    }

    /// Deletes chart rows that were made when points had been packed less often than that.
    async fn delete_chart_rows(&self, at: &RunLocation, packed: i64) -> Result<()> {
        let is_older = Condition::Below(PACKED.into(), number(packed));
        let mut page = Some(Query::of(rows::MetricChart::all(&at.run).range()).for_removal());
        while let Some(query) = page {
            let (keys, next) = self.keys(query).await?;
            let deleted: Vec<_> = keys.iter().map(|key| self.table.delete(key, &is_older)).collect();
            let mut deleted = stream::iter(deleted).buffer_unordered(AT_ONCE);
            while let Some(outcome) = deleted.next().await {
                match outcome {
                    Ok(()) | Err(Failure::Refused { .. }) => {}
                    Err(failure) => return Err(failure),
                }
            }
            page = next;
        }
        Ok(())
    }

    /// Deletes segments that begin before this time, in ms. Returns whether there were any.
    async fn delete_segments(&self, at: &RunLocation, before: i64) -> Result<bool> {
        let mut is_any = false;
        let is_old = |key: &Key| rows::MetricSegment::parse(key).is_some_and(|segment| segment.timestamp.0 < before);
        let mut page = Some(Query::of(rows::MetricSegment::all(&at.run).range()).for_removal());
        while let Some(query) = page {
            let (mut keys, next) = self.keys(query).await?;
            keys.retain(is_old);
            is_any |= !keys.is_empty();
            self.table.write_many(Vec::new(), &keys).await?;
            page = next;
        }
        Ok(is_any)
    }

    /// The keys of a page, and the query for the next one.
    async fn keys(&self, query: Query) -> Result<(Vec<Key>, Option<Query>)> {
        let page = self.table.query_page(&query).await?;
        let keys = page.items.iter().filter_map(Item::key).collect();
        Ok((keys, page.next.map(|next| query.starting_at(next))))
    }
}
