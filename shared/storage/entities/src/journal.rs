//! The journal of a run: points as calls logged them, until the consumer of the stream packs them
//! into the metrics documents.
//!
//! A process adds the points of each call to an item called a tail, as one element of a set. A call
//! that is sent twice therefore counts once, and the order of calls does not matter. Tails are
//! small, because DynamoDB charges for the whole item on each addition.
//!
//! An element contains the names of its metrics. If calls repeatedly log the same large set of
//! metrics, each call at a single step, the names get a row of their own whose key is their hash.
//! An element then contains only the hash and the values.

use std::collections::{BTreeMap, HashMap};

use key_schema::{Digest, Key, WideDigest, rows, sha256_128};
use mlflow_api::{Result, RunId};
use table::{Item, bytes};

use crate::attributes::{CALLS, NAMES};
use crate::metric_segment::SegmentName;
use crate::points::{Point, read_signed, write_signed};
use crate::unreadable_item::unreadable;

/// Points by metric.
pub type Series = BTreeMap<String, Vec<Point>>;

/// Segments by metric.
pub type SealedSegments = BTreeMap<String, Vec<SegmentName>>;

/// First byte of an element that contains names.
const ELEMENT_WITH_NAMES: u8 = 0;
/// First byte of an element whose names are in a row of their own.
const ELEMENT_WITH_HASH: u8 = 1;

/// Packs the points of a call into an element of a tail. If a call logs so many points of a metric
/// that they are already stored in segments, `sealed` contains these segments, and `series` only
/// the latest of the points.
#[must_use]
pub fn pack_call(series: &Series, sealed: &SealedSegments) -> Vec<u8> {
    let mut packed = vec![ELEMENT_WITH_NAMES];
    let (mut timestamp, mut step) = (0_i64, 0_i64);
    for (metric, points) in series {
        write_text(&mut packed, metric);
        let count = i64::try_from(points.len()).unwrap_or(i64::MAX);
        let segments = sealed.get(metric);
        write_signed(&mut packed, if segments.is_some() { -count } else { count });
        for point in points {
            write_signed(&mut packed, point.timestamp.wrapping_sub(timestamp));
            write_signed(&mut packed, point.step.wrapping_sub(step));
            packed.extend_from_slice(&point.value.to_le_bytes());
            (timestamp, step) = (point.timestamp, point.step);
        }
        if let Some(segments) = segments {
            write_length(&mut packed, segments.len());
        }
        for segment in segments.into_iter().flatten() {
            write_signed(&mut packed, segment.place.0.wrapping_sub(timestamp));
            write_signed(&mut packed, segment.place.1.wrapping_sub(step));
            packed.extend_from_slice(&segment.digest.0.to_le_bytes());
            write_length(&mut packed, segment.points);
        }
    }
    packed
}

/// A call that logs one point for each of its metrics, all at one step and time. It is stored as
/// names and values in the same order.
#[derive(Clone, Debug)]
pub struct StepCall {
    /// Hash of the names.
    pub names: WideDigest,
    packed_names: Vec<u8>,
    element: Vec<u8>,
}

impl StepCall {
    /// Packs a call, or returns `None` if its points do not share one step and time.
    #[must_use]
    pub fn of(series: &Series) -> Option<Self> {
        let first = *series.values().next()?.first()?;
        let is_like = |point: &Point| (point.timestamp, point.step) == (first.timestamp, first.step);
        let mut packed_names = Vec::new();
        let mut values = Vec::with_capacity(series.len() * 8);
        for (metric, points) in series {
            let [point] = points.as_slice() else { return None };
            if !is_like(point) {
                return None;
            }
            write_text(&mut packed_names, metric);
            values.extend_from_slice(&point.value.to_le_bytes());
        }
        let names = sha256_128(&packed_names);
        let mut element = vec![ELEMENT_WITH_HASH];
        element.extend_from_slice(&names.to_le_bytes());
        write_signed(&mut element, first.timestamp);
        write_signed(&mut element, first.step);
        element.append(&mut values);
        Some(Self { names: WideDigest(names), packed_names, element })
    }

    /// Returns the row with the names. It has to be written before the element.
    #[must_use]
    pub fn names_row(&self, run: &RunId) -> Item {
        Item::new(rows::JournalNames::key(run, &self.names)).with(NAMES, bytes(self.packed_names.clone()))
    }

    /// Returns the element of a tail.
    #[must_use]
    pub fn into_element(self) -> Vec<u8> {
        self.element
    }
}

/// The points in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// Points that are in no segment yet.
    pub waiting: Series,
    /// Points that are also in segments: the latest points of metrics whose points were sealed when
    /// they were logged.
    pub sealed: Series,
    /// The segments of the calls whose latest points are in `sealed`. A segment may be listed twice
    /// if its call was sent twice.
    pub segments: SealedSegments,
}

/// Reads the points of tails. `names` are the rows of names that the tails refer to.
///
/// # Errors
/// Returns an internal error if they cannot be read.
pub fn read_journal(tails: &[Item], names: &[Item]) -> Result<Journal> {
    let names = names.iter().map(|row| read_names(row).ok_or_else(|| unreadable(row, "names of metrics")));
    let names = names.collect::<Result<HashMap<_, _>>>()?;
    let mut journal = Journal::default();
    for tail in tails {
        let calls = tail.value(CALLS).and_then(|calls| calls.as_bs().ok());
        let calls = calls.ok_or_else(|| unreadable(tail, "a tail of the journal"))?;
        for call in calls {
            read_call(call.as_ref(), &names, &mut journal).ok_or_else(|| unreadable(tail, "a call in the journal"))?;
        }
    }
    Ok(journal)
}

fn read_names(row: &Item) -> Option<(u128, Vec<String>)> {
    let packed = row.bytes(NAMES)?;
    let mut rest = packed;
    let mut names = Vec::new();
    while !rest.is_empty() {
        names.push(read_text(&mut rest)?);
    }
    Some((sha256_128(packed), names))
}

fn read_call(call: &[u8], names: &HashMap<u128, Vec<String>>, journal: &mut Journal) -> Option<()> {
    let (form, mut rest) = call.split_first()?;
    match *form {
        ELEMENT_WITH_NAMES => {
            let (mut timestamp, mut step) = (0_i64, 0_i64);
            while !rest.is_empty() {
                let metric = read_text(&mut rest)?;
                let count = read_signed(&mut rest)?;
                let series = if count < 0 { &mut journal.sealed } else { &mut journal.waiting };
                let points = series.entry(metric.clone()).or_default();
                for _ in 0..count.unsigned_abs() {
                    timestamp = timestamp.wrapping_add(read_signed(&mut rest)?);
                    step = step.wrapping_add(read_signed(&mut rest)?);
                    points.push(Point { timestamp, step, value: read_value(&mut rest)? });
                }
                if count < 0 {
                    let segments = journal.segments.entry(metric).or_default();
                    for _ in 0..read_length(&mut rest)? {
                        segments.push(read_segment(&mut rest, timestamp, step)?);
                    }
                }
            }
        }
        ELEMENT_WITH_HASH => {
            let (hash, after) = rest.split_first_chunk()?;
            rest = after;
            let (timestamp, step) = (read_signed(&mut rest)?, read_signed(&mut rest)?);
            for metric in names.get(&u128::from_le_bytes(*hash))? {
                let point = Point { timestamp, step, value: read_value(&mut rest)? };
                journal.waiting.entry(metric.clone()).or_default().push(point);
            }
            if !rest.is_empty() {
                return None;
            }
        }
        _ => return None,
    }
    Some(())
}

/// Reads a segment's name. The start of the segment is stored relative to `timestamp` and `step`,
/// those of the preceding point.
fn read_segment(rest: &mut &[u8], timestamp: i64, step: i64) -> Option<SegmentName> {
    let place = (timestamp.wrapping_add(read_signed(rest)?), step.wrapping_add(read_signed(rest)?));
    let (digest, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(SegmentName { place, digest: Digest(u64::from_le_bytes(*digest)), points: read_length(rest)? })
}

fn write_length(packed: &mut Vec<u8>, length: usize) {
    write_signed(packed, i64::try_from(length).unwrap_or(i64::MAX));
}

fn read_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_signed(rest)?).ok()
}

fn write_text(packed: &mut Vec<u8>, text: &str) {
    write_length(packed, text.len());
    packed.extend_from_slice(text.as_bytes());
}

fn read_text(rest: &mut &[u8]) -> Option<String> {
    let length = read_length(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

fn read_value(rest: &mut &[u8]) -> Option<f64> {
    let (value, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(f64::from_le_bytes(*value))
}

/// Checks whether a key belongs to a tail.
#[must_use]
pub fn is_tail(key: &Key) -> bool {
    rows::MetricJournal::parse(key).is_some() || is_call(key)
}

/// Checks whether a key belongs to an item with a single call, which no other calls are added to.
#[must_use]
pub fn is_call(key: &Key) -> bool {
    rows::JournalCall::parse(key).is_some()
}

/// Checks whether a key belongs to a row of names.
#[must_use]
pub fn is_names(key: &Key) -> bool {
    rows::JournalNames::parse(key).is_some()
}

#[cfg(test)]
mod tests {
    use key_schema::Digest;
    use mlflow_api::ExperimentId;
    use proptest::prelude::*;
    use table::bytes_set;

    use super::*;

    fn run() -> RunId {
        RunId::new(1, ExperimentId::DEFAULT, 7)
    }

    fn tail(calls: Vec<Vec<u8>>) -> Item {
        Item::new(rows::MetricJournal::key(&run(), &Digest(1))).with(CALLS, bytes_set(calls))
    }

    fn point() -> impl Strategy<Value = Point> {
        (any::<i64>(), any::<i64>(), any::<f64>())
            .prop_map(|(timestamp, step, value)| Point::new(timestamp, step, value))
    }

    fn series() -> impl Strategy<Value = Series> {
        proptest::collection::btree_map("\\PC{1,12}", proptest::collection::vec(point(), 1..4), 0..8)
    }

    proptest! {
        #[test]
        fn calls_come_back(first in series(), second in series()) {
            let mut both = first.clone();
            for (metric, points) in &second {
                both.entry(metric.clone()).or_default().extend(points);
            }
            let read = read_journal(&[tail(vec![pack_call(&first, &SealedSegments::new())]), tail(vec![pack_call(&second, &SealedSegments::new())])], &[]).unwrap();
            prop_assert_eq!(read, Journal { waiting: both, ..Journal::default() });
        }

        #[test]
        fn steps_come_back(names in proptest::collection::btree_set("\\PC{1,12}", 1..20), at in point()) {
            let series: Series = names.into_iter().map(|name| (name, vec![at])).collect();
            let step = StepCall::of(&series).unwrap();
            let names = step.names_row(&run());
            let read = read_journal(&[tail(vec![step.clone().into_element()])], std::slice::from_ref(&names)).unwrap();
            prop_assert_eq!(read.waiting, series);
            prop_assert!(read_journal(&[tail(vec![step.into_element()])], &[]).is_err(), "names are missing");
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = read_journal(&[tail(vec![bytes.clone()])], &[]);
            let _ = read_journal(&[], &[Item::new(rows::JournalNames::key(&run(), &WideDigest(1))).with(NAMES, super::bytes(bytes))]);
        }
    }

    #[test]
    fn a_step_of_many_metrics_is_little_more_than_its_values() {
        let series: Series = (0..100)
            .map(|number| (format!("layer/{number:03}/grad_norm"), vec![Point::new(1_700_000_000_000, 9_999, 0.5)]))
            .collect();
        assert!(pack_call(&series, &SealedSegments::new()).len() > 3_000);
        assert!(StepCall::of(&series).unwrap().into_element().len() < 850);
        let two = Series::from([
            ("a".to_owned(), vec![Point::new(1, 1, 1.0)]),
            ("b".to_owned(), vec![Point::new(2, 1, 1.0)]),
        ]);
        assert!(StepCall::of(&two).is_none(), "two times");
    }

    #[test]
    fn what_is_in_segments_is_told_apart() {
        let points = vec![Point::new(1, 1, 1.0)];
        let series = Series::from([("a".to_owned(), points.clone()), ("b".to_owned(), points.clone())]);
        let name = |time| SegmentName { place: (time, -1), digest: Digest(u64::MAX - 7), points: 2_000 };
        let sealed = SealedSegments::from([("b".to_owned(), vec![name(-5), name(7)])]);
        let packed = pack_call(&series, &sealed);
        let read = read_journal(&[tail(vec![packed])], &[]).unwrap();
        let of = |metric: &str| Series::from([(metric.to_owned(), points.clone())]);
        assert_eq!(read, Journal { waiting: of("a"), sealed: of("b"), segments: sealed });
    }

    #[test]
    fn a_call_that_lost_its_end_is_unreadable() {
        let series = Series::from([("a".to_owned(), vec![Point::new(1, 1, 1.0), Point::new(2, 2, 2.0)])]);
        let mut packed = pack_call(&series, &SealedSegments::new());
        packed.truncate(packed.len() - 4);
        assert!(read_journal(&[tail(vec![packed])], &[]).is_err());
    }
}
