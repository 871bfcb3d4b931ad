//! Points of a logged model's metrics. Each names its run, and optionally a dataset.
//!
//! A logged model is always returned with all its points, unlike a run, which is returned with the
//! latest point of each metric. Each point is packed separately. It is first an element of a set in
//! the model's metrics document, and later moves into a segment.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::compressed_content::{deflate, inflate};
use crate::points::{Point, read_signed, write_signed};

/// Number of bytes of points in one segment before compression. After compression, a segment takes
/// only a fraction of the room in an item.
const MAX_SEGMENT_BYTES: usize = 256 << 10;
/// Marker that is stored instead of a text's length if the text has 32 hexadecimal digits. Such a
/// text is packed into 16 bytes.
const HEX_DIGITS_MARKER: i64 = -1;

/// A point of a logged model's metric.
#[derive(Clone, Debug)]
pub struct ModelPoint {
    /// Time in ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// Value. Always finite.
    pub value: f64,
    /// The run that logged the point.
    pub run: String,
    /// Name and digest of the dataset that the value was measured on.
    pub dataset: Option<(String, String)>,
}

/// Points by metric.
pub type ModelSeries = BTreeMap<String, Vec<ModelPoint>>;

impl ModelPoint {
    /// Creates a point as MLflow's store does. The value is converted like that of a run's point,
    /// except that NaN becomes 0, because `_log_model_metrics` drops the flag that distinguishes
    /// NaN from 0.
    #[must_use]
    pub fn new(timestamp: i64, step: i64, value: f64, run: &str, dataset: Option<(String, String)>) -> Self {
        let value = if value.is_nan() { 0.0 } else { Point::new(timestamp, step, value).value };
        Self { timestamp, step, value, run: run.to_owned(), dataset }
    }

    /// Compares points so that the latest is the greatest: by time, and then by step. If both are
    /// equal, the point whose run ID sorts first is the greater one.
    #[must_use]
    pub fn by_time(&self, other: &Self) -> Ordering {
        let moment = (self.timestamp, self.step).cmp(&(other.timestamp, other.step));
        moment.then_with(|| other.run.cmp(&self.run)).then_with(|| self.value.total_cmp(&other.value))
    }

    /// Packs one point. Equal points have equal bytes.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(40);
        write_signed(&mut bytes, self.step);
        write_signed(&mut bytes, self.timestamp);
        bytes.extend_from_slice(&self.value.to_le_bytes());
        write_text(&mut bytes, &self.run);
        if let Some((name, digest)) = &self.dataset {
            write_text(&mut bytes, name);
            write_text(&mut bytes, digest);
        }
        bytes
    }

    /// Unpacks one point. Returns `None` if the bytes were not written by [`ModelPoint::pack`].
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (step, timestamp) = (read_signed(&mut rest)?, read_signed(&mut rest)?);
        let (value, after) = rest.split_first_chunk()?;
        rest = after;
        let run = read_text(&mut rest)?;
        let dataset = if rest.is_empty() { None } else { Some((read_text(&mut rest)?, read_text(&mut rest)?)) };
        rest.is_empty().then(|| Self { timestamp, step, value: f64::from_le_bytes(*value), run, dataset })
    }
}

impl Ord for ModelPoint {
    fn cmp(&self, other: &Self) -> Ordering {
        self.by_time(other).then_with(|| self.dataset.cmp(&other.dataset))
    }
}

impl PartialOrd for ModelPoint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ModelPoint {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ModelPoint {}

/// Packs points into as many compressed segments as they need. Equal series have equal segments.
#[must_use]
pub fn pack_model_segments(series: &ModelSeries) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    let mut open = Vec::new();
    for (metric, points) in series {
        let mut packed: Vec<_> = points.iter().map(ModelPoint::pack).collect();
        packed.sort_unstable();
        packed.dedup();
        for point in packed {
            write_text(&mut open, metric);
            write_bytes(&mut open, &point);
            if open.len() >= MAX_SEGMENT_BYTES {
                segments.push(deflate(&std::mem::take(&mut open)));
            }
        }
    }
    if !open.is_empty() {
        segments.push(deflate(&open));
    }
    segments
}

/// Adds the points of a segment to a series. Returns `None` if the bytes were not written by
/// [`pack_model_segments`].
pub fn unpack_model_segment(bytes: &[u8], series: &mut ModelSeries) -> Option<()> {
    let inflated = inflate(bytes)?;
    let mut rest = inflated.as_slice();
    while !rest.is_empty() {
        let metric = read_text(&mut rest)?;
        let point = ModelPoint::unpack(read_bytes(&mut rest)?)?;
        // The points of a metric are stored together, so for most points the metric's series exists
        // already.
        match series.get_mut(&metric) {
            Some(points) => points.push(point),
            None => {
                series.insert(metric, vec![point]);
            }
        }
    }
    Some(())
}

fn write_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    write_signed(bytes, i64::try_from(content.len()).unwrap_or_default());
    bytes.extend_from_slice(content);
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_signed(rest)?).ok()?;
    let (content, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(content)
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    match digits(text) {
        Some(number) => {
            write_signed(bytes, HEX_DIGITS_MARKER);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        None => write_bytes(bytes, text.as_bytes()),
    }
}

/// Parses 32 lowercase hexadecimal digits, the form of a run's ID.
fn digits(text: &str) -> Option<u128> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if text.len() == 32 && all_digits { u128::from_str_radix(text, 16).ok() } else { None }
}

fn read_text(rest: &mut &[u8]) -> Option<String> {
    let before = *rest;
    if read_signed(rest)? == HEX_DIGITS_MARKER {
        let (number, after) = rest.split_first_chunk()?;
        *rest = after;
        return Some(format!("{:032x}", u128::from_be_bytes(*number)));
    }
    *rest = before;
    String::from_utf8(read_bytes(rest)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = ModelPoint> {
        let run = prop_oneof!["[0-9a-f]{32}", "[0-9A-F]{32}", "[a-z0-9_-]{1,40}"];
        let dataset = proptest::option::of(("\\PC{0,20}", "[0-9a-f]{0,36}"));
        (any::<i64>(), any::<i64>(), any::<f64>(), run, dataset)
            .prop_map(|(timestamp, step, value, run, dataset)| ModelPoint::new(timestamp, step, value, &run, dataset))
    }

    fn sorted(mut series: ModelSeries) -> ModelSeries {
        for points in series.values_mut() {
            points.sort_unstable();
            points.dedup();
        }
        series.retain(|_, points| !points.is_empty());
        series
    }

    proptest! {
        #[test]
        fn a_point_comes_back(point in point()) {
            prop_assert_eq!(ModelPoint::unpack(&point.pack()), Some(point));
        }

        #[test]
        fn segments_come_back(series in proptest::collection::btree_map("\\PC{0,8}", proptest::collection::vec(point(), 0..9), 0..6)) {
            let mut back = ModelSeries::new();
            for segment in pack_model_segments(&series) {
                unpack_model_segment(&segment, &mut back).unwrap();
            }
            prop_assert_eq!(sorted(back), sorted(series));
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = (ModelPoint::unpack(&bytes), unpack_model_segment(&bytes, &mut ModelSeries::new()));
        }
    }

    #[test]
    fn values_are_kept_as_mlflow_keeps_them() {
        for (value, kept) in [(f64::NAN, 0.0), (f64::INFINITY, f64::MAX), (f64::NEG_INFINITY, f64::MIN), (-0.0, 0.0)] {
            let value = ModelPoint::new(0, 0, value, "r", None).value;
            assert_eq!(value.to_bits(), f64::to_bits(kept));
        }
    }

    #[test]
    fn many_points_are_small_and_no_segment_is_large() {
        let dataset = Some(("d".repeat(500), "e".repeat(36)));
        let run = "0123456789abcdef0123456789abcdef";
        let points = (0..20_000).map(|step| ModelPoint::new(1_700_000_000_000 + step, step, 0.5, run, dataset.clone()));
        let segments = pack_model_segments(&ModelSeries::from([("loss".to_owned(), points.collect())]));
        assert!(segments.iter().all(|segment| segment.len() < MAX_SEGMENT_BYTES));
        assert!(
            segments.iter().map(Vec::len).sum::<usize>() < 20_000 * 20,
            "{:?}",
            segments.iter().map(Vec::len).sum::<usize>()
        );
        assert!(ModelPoint::new(1_700_000_000_000, 7, 0.5, run, None).pack().len() <= 32);
    }

    #[test]
    fn the_latest_is_the_greatest() {
        let point = |timestamp, step, run| ModelPoint::new(timestamp, step, 0.0, run, None);
        assert!(point(2, 1, "a") > point(1, 9, "a"));
        assert!(point(1, 9, "a") > point(1, 8, "a"));
        assert!(point(1, 1, "a") > point(1, 1, "b"));
    }
}
