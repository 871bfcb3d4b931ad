//! Chart rows ([`entities::chart`]) of a metric with a long history.
//!
//! A row is written before the metrics document counts it. The write is conditional: it fails if a
//! row with this number was already created from the present or a later state of that document. If
//! a pass finds a row that was created from the present state, because an earlier pass was
//! interrupted before it wrote the document or because another pass is running, the pass counts
//! this row and continues after it. The rows that a document counts are therefore always those that
//! were created for it, no matter where a pass stops.

use std::collections::{HashMap, HashSet};

use entities::attributes::PACKED;
use entities::chart::{ChartRow, MAX_ROW_POINTS, MIN_ROW_SOURCE_POINTS, RowNumber};
use entities::points::Point;
use entities::{ChartProgress, RunLocation, SegmentName, SegmentStart, failed, read_segment};
use key_schema::{Digest, Name, ranges};
use table::{Condition, Failure, Item, Query, Result, Table, number};

use crate::sealing::PackedMetric;

/// Maximum time in ms between now and the start of a segment in the future that is included in
/// rows. Including a segment with a wrong time would be costly, because all segments that begin
/// before it would then count as late and need separate rows.
const MAX_FUTURE_MS: i64 = 86_400_000;
/// Maximum number of points further in the future than `MAX_FUTURE_MS` that are left out of rows.
/// More points than this cannot be the mistake of a single call: the clock or the time unit of the
/// job must be different, and its points are included.
const MAX_FUTURE_POINTS: usize = 10_000;

/// Creation of chart rows for a run that is being packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartRowCreation<'a> {
    pub(crate) table: &'a Table,
    pub(crate) at: &'a RunLocation,
    /// Current time in ms.
    pub(crate) now: i64,
    /// Whether the journal has calls that are not packed now. Their segments have already been
    /// written, and this pass cannot distinguish them from the others.
    pub(crate) leaves_some: bool,
}

impl ChartRowCreation<'_> {
    /// Puts a metric's segments into chart rows if the segments without a row have enough points,
    /// or if some segments are late, which means that they begin before segments that are in rows.
    /// `packed` is the number of times that points had been packed into the metric's document.
    ///
    /// Sends no request if neither is the case. Otherwise, sends one request per MB of segments
    /// without a row, and one request, with four write units, per row of about 1,000 points. The
    /// rows of higher levels add a third to the latter.
    ///
    /// # Errors
    /// Returns failures of the table, and [`Failure::Unexpected`] if another pass is packing the
    /// run too.
    pub(crate) async fn chart(self, name: &str, metric: &mut PackedMetric, packed: i64) -> Result<()> {
        let came_late = metric.segments().any(|segment| metric.charted.has_passed(segment.place));
        let is_due =
            |charted: &ChartProgress| usize::try_from(charted.left).is_ok_and(|left| left >= MIN_ROW_SOURCE_POINTS);
        if !came_late && !is_due(&metric.charted) {
            return Ok(());
        }
        let Self { table, at, now, leaves_some } = self;
        let charted = metric.charted;
        let mut rows =
            MetricRows { table, at, name, packed, now, charted, made: HashMap::new(), digests: HashSet::new() };
        rows.go_on().await?;
        rows.add_late(metric).await?;
        if is_due(&rows.charted) && !leaves_some {
            rows.add_segments().await?;
        }
        metric.charted = rows.charted;
        Ok(())
    }
}

/// The chart rows of a metric while a pass adds rows.
struct MetricRows<'a> {
    table: &'a Table,
    at: &'a RunLocation,
    name: &'a str,
    packed: i64,
    now: i64,
    charted: ChartProgress,
    /// Rows that this pass has read or created.
    made: HashMap<RowNumber, ChartRow>,
    /// Digests of segments in rows that another pass created.
    digests: HashSet<u64>,
}

/// Points of segments that become a row together.
#[derive(Default)]
struct SegmentGroup {
    points: Vec<Point>,
    digests: Vec<Digest>,
    through: Option<SegmentStart>,
}

/// A segment that is in no row, as its start, its points and its digest.
type SegmentWithoutRow = (SegmentStart, Vec<Point>, Digest);

impl MetricRows<'_> {
    /// Continues after rows that another pass has already created from the current state of the
    /// metrics document.
    async fn go_on(&mut self) -> Result<()> {
        loop {
            let next = self.next();
            let Some(item) = self.table.get(&next.key(self.at, self.name)).await? else { return Ok(()) };
            let row = ChartRow::read(next, &item).map_err(failed)?;
            if row.packed != self.packed {
                return Ok(());
            }
            self.digests.extend(row.digests.iter().map(|digest| digest.0));
            self.count(row).await?;
        }
    }

    /// Adds the points of late segments, which begin before segments that are in rows. Rows of late
    /// segments contain all of their points instead of a sample.
    async fn add_late(&mut self, metric: &PackedMetric) -> Result<()> {
        let Some(through) = self.charted.through() else { return Ok(()) };
        let is_late = |segment: &SegmentName| segment.place <= through && !self.digests.contains(&segment.digest.0);
        let announced: Vec<_> = metric.announced.iter().filter(|segment| is_late(segment)).collect();
        let keys: Vec<_> = announced.iter().map(|segment| segment.key(self.at, self.name)).collect();
        let found = self.table.get_many(&keys).await?;
        let mut digests: Vec<_> = announced.iter().map(|segment| segment.digest).collect();
        let mut points = Vec::new();
        // Segments may be missing because a retention policy deleted them.
        for segment in keys.iter().filter_map(|key| found.get(key)) {
            points.extend(read_segment(segment).map_err(failed)?.0);
        }
        for (segment, sealed) in metric.sealed.iter().filter(|(segment, _)| is_late(segment)) {
            digests.push(segment.digest);
            points.extend(sealed);
        }
        points.sort_unstable_by(Point::by_step);
        points.dedup();
        let mut rest = points.as_slice();
        while let Some((row, others)) =
            rest.split_at_checked(rest.len().min(MAX_ROW_POINTS)).filter(|(row, _)| !row.is_empty())
        {
            rest = others;
            // Only the last row of late points has the digests of their segments. If a pass is
            // interrupted before it, the next pass adds the points again; if after it, the next
            // pass finds the digests and does not.
            let digests = if rest.is_empty() { std::mem::take(&mut digests) } else { Vec::new() };
            let stands_for = u64::try_from(row.len()).unwrap_or(u64::MAX);
            self.add(row.to_vec(), stands_for, digests, through).await?;
        }
        Ok(())
    }

    /// Adds the segments after those that are in rows. Omits the last segments if they are too few
    /// for a row, and segments that are far in the future.
    async fn add_segments(&mut self) -> Result<()> {
        let range = ranges::segments_between(&self.at.run, &Name::from(self.name), self.charted.through(), None);
        let mut query = Query::of(range);
        let mut group = SegmentGroup::default();
        let (mut ahead, mut points_ahead): (Vec<SegmentWithoutRow>, usize) = (Vec::new(), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            for segment in &page.items {
                let (points, digest) = read_segment(segment).map_err(failed)?;
                let Some(first) = points.first() else { continue };
                let place = (first.timestamp, first.step);
                if !self.is_ahead(place) || points_ahead > MAX_FUTURE_POINTS {
                    self.gather(&mut group, (place, points, digest)).await?;
                    continue;
                }
                points_ahead += points.len();
                ahead.push((place, points, digest));
                if points_ahead > MAX_FUTURE_POINTS {
                    for segment in std::mem::take(&mut ahead) {
                        self.gather(&mut group, segment).await?;
                    }
                }
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        if group.points.len() >= MIN_ROW_SOURCE_POINTS {
            self.add_group(std::mem::take(&mut group)).await?;
        }
        // Points of segments in the future are not included in this count. Otherwise every pass
        // would read these segments again.
        self.charted.left = u64::try_from(group.points.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Checks whether a segment begins so far in the future that it may be a mistake. Returns false
    /// if rows already reach that far.
    fn is_ahead(&self, place: SegmentStart) -> bool {
        let is_far = |(timestamp, _): SegmentStart| timestamp > self.now.saturating_add(MAX_FUTURE_MS);
        is_far(place) && !self.charted.through().is_some_and(is_far)
    }

    /// Adds a segment to a group. If the group is already large enough, it is first turned into a
    /// row.
    async fn gather(&mut self, group: &mut SegmentGroup, (place, points, digest): SegmentWithoutRow) -> Result<()> {
        // Segments that begin at the same position must be in one row, because the position alone
        // would not show which of them are in the row.
        if group.points.len() >= MIN_ROW_SOURCE_POINTS && group.through != Some(place) {
            self.add_group(std::mem::take(group)).await?;
        }
        group.points.extend(points);
        group.digests.push(digest);
        group.through = Some(place);
        Ok(())
    }

    async fn add_group(&mut self, group: SegmentGroup) -> Result<()> {
        let Some(through) = group.through else { return Ok(()) };
        let (points, stands_for) = ChartRow::points_of(group.points);
        self.add(points, stands_for, group.digests, through).await
    }

    async fn add(
        &mut self,
        points: Vec<Point>,
        stands_for: u64,
        digests: Vec<Digest>,
        through: SegmentStart,
    ) -> Result<()> {
        let (after, packed) = (self.charted.through(), self.packed);
        let row =
            ChartRow { number: self.next(), points, represented_points: stands_for, after, through, digests, packed };
        // Fails if a row from the current state of the document exists, because only another pass
        // can have written it.
        self.put(&row, packed).await?;
        self.count(row).await
    }

    /// Counts a row of the first level that has been written, and writes the rows of higher levels
    /// that it completes.
    async fn count(&mut self, row: ChartRow) -> Result<()> {
        self.charted.rows += 1;
        self.charted.points += row.represented_points;
        self.charted.through = row.through;
        self.charted.left = self.charted.left.saturating_sub(row.represented_points);
        let mut last = row.number;
        self.made.insert(last, row);
        while let Some(next) = last.completed() {
            let parts = self.parts_of(next).await?;
            let row = ChartRow::of_parts(next, &parts, self.packed);
            let row = row.ok_or_else(|| Failure::Unexpected("a chart row has no parts".to_owned()))?;
            // Overwriting a row from the current state of the document is harmless, because it
            // would be identical.
            self.put(&row, self.packed + 1).await?;
            self.made.insert(next, row);
            last = next;
        }
        Ok(())
    }

    async fn parts_of(&mut self, number: RowNumber) -> Result<Vec<ChartRow>> {
        let missing: Vec<_> = number.parts().filter(|part| !self.made.contains_key(part)).collect();
        let keys: Vec<_> = missing.iter().map(|part| part.key(self.at, self.name)).collect();
        let mut found = self.table.get_many(&keys).await?;
        for (part, key) in missing.into_iter().zip(&keys) {
            let row = found.remove(key).ok_or_else(|| Failure::Unexpected("a chart row is missing".to_owned()))?;
            self.made.insert(part, ChartRow::read(part, &row).map_err(failed)?);
        }
        Ok(number.parts().filter_map(|part| self.made.remove(&part)).collect())
    }

    /// Writes a row, unless a row exists that was created when points had been packed at least
    /// `packed` times.
    async fn put(&self, row: &ChartRow, packed: i64) -> Result<()> {
        let item: Item = row.item(self.at, self.name);
        let is_older = Condition::Any(vec![Condition::item_missing(), Condition::Below(PACKED.into(), number(packed))]);
        match self.table.put(item.clone(), &is_older).await {
            // The response to an earlier attempt was lost, but the attempt has written this row.
            Err(Failure::Refused { item: Some(found), .. }) if found == item => Ok(()),
            Err(Failure::Refused { .. }) => Err(Failure::Unexpected("another pass is packing the run".to_owned())),
            outcome => outcome,
        }
    }

    fn next(&self) -> RowNumber {
        RowNumber { level: 1, number: self.charted.rows }
    }
}
