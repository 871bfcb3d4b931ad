//! Progress of chart rows: how much of each metric's history they cover, stored in a metrics
//! document.

use std::collections::BTreeMap;

use mlflow_api::Result;
use table::{Item, Value, bytes};

use crate::attributes::{CHARTED, metric_of};
use crate::metric_segment::SegmentStart;
use crate::points::{read_signed, write_signed};
use crate::unreadable_item::unreadable;

/// How much of a metric's history is in chart rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChartProgress {
    /// Approximate number of points in segments that are not in a row yet. The points of a call
    /// that was sent twice may have been counted twice.
    pub left: u64,
    /// Whether the metric's latest point in the document is also in a segment.
    pub is_kept: bool,
    /// Number of rows of the first level.
    pub rows: u32,
    /// Number of points that the rows of the first level represent.
    pub points: u64,
    /// Start of the last segment in a row. Every segment that begins at or before it is in a row.
    /// Only meaningful if there are rows.
    pub through: SegmentStart,
}

impl ChartProgress {
    /// Returns the start of the last segment in a row, or `None` if there are no rows.
    #[must_use]
    pub fn through(&self) -> Option<SegmentStart> {
        (self.rows > 0).then_some(self.through)
    }

    /// Checks whether a segment that begins at `place` belongs to the range that the rows already
    /// cover.
    #[must_use]
    pub fn has_passed(&self, place: SegmentStart) -> bool {
        self.through().is_some_and(|through| place <= through)
    }
}

/// Adds the progress of a document's metrics to the document, in the order of the metrics' names.
/// Adds no attribute if none of the metrics has segments.
#[must_use]
pub fn with_charted<'a>(document: Item, metrics: impl IntoIterator<Item = (&'a String, ChartProgress)>) -> Item {
    let metrics: BTreeMap<_, _> = metrics.into_iter().collect();
    if metrics.values().all(|charted| *charted == ChartProgress::default()) {
        return document;
    }
    let mut packed = Vec::new();
    // A metric's time and step are stored as differences from those of the previous metric. The
    // differences are small, because metrics that are logged together are packed together.
    let (mut timestamp, mut step) = (0_i64, 0_i64);
    for charted in metrics.values() {
        write_signed(&mut packed, signed(charted.left.saturating_mul(2)) | i64::from(charted.is_kept));
        write_signed(&mut packed, charted.rows.into());
        if charted.rows > 0 {
            write_signed(&mut packed, signed(charted.points));
            write_signed(&mut packed, charted.through.0.wrapping_sub(timestamp));
            write_signed(&mut packed, charted.through.1.wrapping_sub(step));
            (timestamp, step) = charted.through;
        }
    }
    document.with(CHARTED, bytes(packed))
}

/// Reads the progress of a document's metrics, by name.
///
/// # Errors
/// Returns an internal error if it cannot be read.
pub fn charted(document: &Item) -> Result<BTreeMap<&str, ChartProgress>> {
    let Some(packed) = document.value(CHARTED) else { return Ok(BTreeMap::new()) };
    let mut names: Vec<_> = document.0.keys().filter_map(|name| metric_of(name)).collect();
    names.sort_unstable();
    read(packed, &names).ok_or_else(|| unreadable(document, "how far metrics are in charts"))
}

fn read<'a>(packed: &Value, names: &[&'a str]) -> Option<BTreeMap<&'a str, ChartProgress>> {
    let mut rest = packed.as_b().ok()?.as_ref();
    let (mut timestamp, mut step) = (0_i64, 0_i64);
    let mut metrics = BTreeMap::new();
    for name in names {
        let left = read_signed(&mut rest)?;
        let mut charted = ChartProgress {
            left: u64::try_from(left >> 1).ok()?,
            is_kept: left & 1 == 1,
            rows: u32::try_from(read_signed(&mut rest)?).ok()?,
            ..ChartProgress::default()
        };
        if charted.rows > 0 {
            charted.points = u64::try_from(read_signed(&mut rest)?).ok()?;
            timestamp = timestamp.wrapping_add(read_signed(&mut rest)?);
            step = step.wrapping_add(read_signed(&mut rest)?);
            charted.through = (timestamp, step);
        }
        metrics.insert(*name, charted);
    }
    rest.is_empty().then_some(metrics)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use key_schema::rows;
    use mlflow_api::RunId;
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::metric_attribute;
    use crate::metrics::pack_set;
    use crate::points::Point;

    fn document(names: impl Iterator<Item = String>) -> Item {
        let item = Item::new(rows::RunMetrics::key(&RunId::parse("run").unwrap()));
        let set = pack_set(&[Point::new(1, 1, 1.0)]);
        names.fold(item, |item, name| item.with(metric_attribute(&name), set.clone()))
    }

    fn any_charted() -> impl Strategy<Value = ChartProgress> {
        (0..u64::MAX >> 3, any::<bool>(), any::<u32>(), 0..u64::MAX >> 1, any::<SegmentStart>()).prop_map(
            |(left, is_kept, rows, points, through)| match rows % 2 {
                0 => ChartProgress { left, is_kept, ..ChartProgress::default() },
                _ => ChartProgress { left, is_kept, rows, points, through },
            },
        )
    }

    proptest! {
        #[test]
        fn it_comes_back(metrics in proptest::collection::btree_map("\\PC{1,12}", any_charted(), 0..20)) {
            let item = with_charted(document(metrics.keys().cloned()), metrics.iter().map(|(name, charted)| (name, *charted)));
            let found = charted(&item).unwrap();
            for (name, charted) in &metrics {
                prop_assert_eq!(found.get(name.as_str()).copied().unwrap_or_default(), *charted);
            }
        }

        #[test]
        fn foreign_bytes_do_no_harm(foreign in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = charted(&document(["a", "b"].map(str::to_owned).into_iter()).with(CHARTED, bytes(foreign)));
        }
    }

    #[test]
    fn a_hundred_metrics_take_few_bytes() {
        let names: Vec<_> = (0..100).map(|number| format!("m{number:03}")).collect();
        let size = |charted: ChartProgress| {
            let item = document(names.iter().cloned());
            with_charted(item.clone(), names.iter().map(|name| (name, charted))).size()
                - item.size()
                - CHARTED.name().len()
        };
        assert_eq!(size(ChartProgress { is_kept: true, left: 119, ..ChartProgress::default() }), 300);
        let long =
            ChartProgress { left: 500, is_kept: true, rows: 9, points: 9_500, through: (1_700_000_000_000, 9_500) };
        assert!(size(long) < 820, "{}", size(long));
    }

    #[test]
    fn a_document_with_other_metrics_is_unreadable() {
        let one = "a".to_owned();
        let item = with_charted(
            document(["a".to_owned()].into_iter()),
            [(&one, ChartProgress { left: 1, ..ChartProgress::default() })],
        );
        let more = item.with(metric_attribute("b"), pack_set(&[Point::new(1, 1, 1.0)]));
        assert!(charted(&more).is_err());
    }
}
