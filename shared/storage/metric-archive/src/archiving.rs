//! Moves the segments of long histories to the archive.
//!
//! For each object, the order is: a row that announces the object, the object, the item that lists
//! its segments, the deletion of the segments, the deletion of the row. An archiving may be
//! interrupted at any point. If it is interrupted before the item is written, the sweep of announced
//! objects deletes the object. If it is interrupted later, the next archiving of the run finds that
//! the item lists the segments, and deletes them.
//!
//! Readers read the segments in the table before the items, so they find each point at least once.
//! The packing of a resumed run never reads a segment that is in a chart row.

use std::time::Duration;

use artifact_store::Archive;
use bytes::Bytes;
use entities::archived_objects::announce;
use entities::attributes::{END_TIME, POINTS, STATUS};
use entities::{
    ArchivedSegments, ChartProgress, MAX_UNARCHIVED_POINTS, MetricsStorage, RunLocation, SegmentName, charted,
    place_of_metrics, read_journal_and_documents, read_segment,
};
use key_schema::{Key, Name, ranges, rows};
use mlflow_api::Result;
use mlflow_api::tracking::RunStatus;
use runtime::clock;
use table::{Condition, Failure, Item, Query, Table, Write};

use crate::candidates::Candidates;

/// Maximum size of an object, in bytes. An archiving keeps one object in memory.
const MAX_OBJECT_BYTES: usize = 4 << 20;
/// Maximum number of segments in an object. The item that lists them then has at most 20 KB.
const MAX_OBJECT_SEGMENTS: usize = 1_000;
/// Minimum size of an object, in bytes. Smaller amounts stay in the table, because writing an object
/// costs as much as storing 16 KB in the table for a month.
const MIN_OBJECT_BYTES: usize = 16 << 10;
/// Number of write units per second that one archiving uses to delete segments. It also uses a
/// fourth as many read units.
const WRITE_UNITS_PER_SECOND: u32 = 500;

/// Archiving of the history of one metric.
struct MetricArchiving<'a> {
    table: &'a Table,
    archive: &'a Archive,
    at: &'a RunLocation,
    metric: &'a str,
    charted: ChartProgress,
}

/// Segments that become an object together.
#[derive(Default)]
struct ObjectContent {
    content: Vec<u8>,
    /// Each segment with the length of its content and the timestamp of its latest point.
    segments: Vec<(SegmentName, usize, i64)>,
    keys: Vec<Key>,
    /// Write units that deleting the segments takes.
    units: u32,
}

/// Moves the segments of a run's long histories to the archive, if the run ended before `before`, in
/// ms. Keeps the histories of a run that has been resumed, or that has points waiting to be packed.
/// Returns the number of segments that were moved. May be interrupted at any point and repeated.
///
/// Takes one request for a run without chart rows. Otherwise takes two more, and for each long
/// history one per MB of segments and of chart rows. For each object, takes four more, one to the
/// archive, and one per 25 segments. Deletions take one write unit per KB, at a limited rate.
///
/// # Errors
/// Returns failures of the table and of the archive, and an internal error if a segment cannot be
/// read, after the other segments have been moved.
pub async fn archive_history(table: &Table, archive: &Archive, at: &RunLocation, before: i64) -> Result<usize> {
    let charts = rows::MetricChart::all(&at.run).range();
    if table.query_page(&Query::of(charts).limit(1)).await?.items.is_empty() {
        return Ok(0);
    }
    let Some(run) = table.get(&at.key()).await?.filter(|run| is_over(run, before)) else { return Ok(0) };
    let metrics = read_journal_and_documents(table, at).await?;
    if place_of_metrics(&run) == MetricsStorage::Journal || !metrics.tails.is_empty() {
        return Ok(0);
    }
    let (mut count, mut outcome) = (0, Ok(()));
    for document in &metrics.documents {
        for (metric, charted) in charted(document)? {
            if charted.points > MAX_UNARCHIVED_POINTS {
                let archiving = MetricArchiving { table, archive, at, metric, charted };
                let (moved, unread) = Box::pin(archiving.archive()).await?;
                count += moved;
                outcome = outcome.and(unread);
            }
        }
    }
    outcome.map(|()| count)
}

/// Checks whether a run ended before this time, in ms, has not been resumed, and has no points that
/// wait to be packed. A resumed run keeps its end time.
#[must_use]
pub fn is_over(run: &Item, before: i64) -> bool {
    run.get(STATUS).is_some_and(RunStatus::has_ended)
        && run.get(END_TIME).is_some_and(|ended| ended < before)
        && place_of_metrics(run) != MetricsStorage::Journal
}

impl MetricArchiving<'_> {
    /// Returns the number of segments that were moved, and an error if one could not be read.
    async fn archive(&self) -> Result<(usize, Result<()>)> {
        let range = ranges::segments_between(&self.at.run, &Name::from(self.metric), None, self.charted.through());
        let (mut count, mut unread) = (0, Ok(()));
        let mut candidates: Option<Candidates> = None;
        let mut object = ObjectContent::default();
        let mut next = Some(Query::of(range));
        while let Some(query) = next {
            let page = self.table.query_page(&query).await?;
            // The candidates are read after the first segments. If another process archives some of
            // these segments before, they are found to be archived. If it does so later, it uses
            // the number that this process would use next, which then fails to write its item.
            let mut known = match candidates.take() {
                Some(known) => known,
                None if page.items.is_empty() => break,
                None => Candidates::read(self.table, self.at, self.metric, self.charted).await?,
            };
            let mut left = Vec::new();
            for item in &page.items {
                let (points, digest) = match read_segment(item) {
                    Ok(read) => read,
                    Err(error) => {
                        unread = unread.and(Err(error));
                        continue;
                    }
                };
                let Some((first, last)) = points.first().zip(points.last()) else { continue };
                let name = SegmentName { place: (first.timestamp, first.step), digest, points: points.len() };
                if known.is_archived(name.place, digest.0) {
                    left.extend(item.key());
                } else if known.is_represented(digest.0) {
                    if object.is_full() {
                        let full = std::mem::take(&mut object);
                        let Some(moved) = self.move_segments(full, &mut known).await? else {
                            return Ok((count, unread));
                        };
                        count += moved;
                    }
                    object.push(item, name, last.timestamp);
                }
            }
            self.table.write_many(Vec::new(), &left).await?;
            candidates = Some(known);
            next = page.next.map(|start| query.starting_at(start));
        }
        if let Some(mut known) = candidates.filter(|_| object.content.len() >= MIN_OBJECT_BYTES) {
            count += self.move_segments(object, &mut known).await?.unwrap_or_default();
        }
        Ok((count, unread))
    }

    /// Writes an object, lists its segments, and deletes them from the table. Returns the number of
    /// segments, or `None` if another process archives the metric, if the run was deleted, or if
    /// writing the object took too long.
    async fn move_segments(&self, object: ObjectContent, known: &mut Candidates) -> Result<Option<usize>> {
        let Self { table, archive, at, metric, .. } = self;
        let ObjectContent { content, segments, keys, units } = object;
        let mut list = ArchivedSegments::new(known.next, Archive::new_object());
        for (segment, length, newest) in segments {
            list.push(segment, length, newest);
        }
        let announced = announce(table, list.object, &ArchivedSegments::key(at, metric, list.number)).await?;
        archive.write(list.object, Bytes::from(content)).await?;
        let writes = [
            Write::Check(at.key(), Condition::item_exists()),
            Write::Put(list.item(at, metric), Condition::item_missing()),
        ];
        // In these cases, the sweep of announced objects deletes the object.
        if !announced.may_refer() {
            return Ok(None);
        }
        match table.transact(&writes).await {
            Ok(()) => {}
            Err(Failure::Cancelled(_)) => return Ok(None),
            Err(failure) => return Err(failure.into()),
        }
        known.next += 1;
        table.write_many(Vec::new(), &keys).await?;
        announced.finish(table).await?;
        clock::sleep(Duration::from_secs(1) * units / WRITE_UNITS_PER_SECOND).await;
        Ok(Some(keys.len()))
    }
}

impl ObjectContent {
    fn is_full(&self) -> bool {
        self.content.len() >= MAX_OBJECT_BYTES || self.segments.len() >= MAX_OBJECT_SEGMENTS
    }

    fn push(&mut self, item: &Item, name: SegmentName, newest: i64) {
        let packed = item.bytes(POINTS).unwrap_or_default();
        self.content.extend_from_slice(packed);
        self.segments.push((name, packed.len(), newest));
        self.keys.extend(item.key());
        self.units = self.units.saturating_add(u32::try_from(item.size().div_ceil(1 << 10)).unwrap_or(u32::MAX));
    }
}
