//! Points of a metric: their two orders, and their packed forms.
//!
//! A point that waits for a segment is an element of a set of byte strings in a document, and takes
//! 15 to 26 bytes. Because the points are in a set, the order of calls does not matter, and a call
//! may be repeated. Once there are enough points, they are packed into a segment.

use std::cmp::Ordering;

use key_schema::{Digest, halves, sha256_128};

/// A point of a metric. The value is NaN or finite. Infinities are stored as the greatest finite
/// numbers, as in MLflow.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Time in ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// Value.
    pub value: f64,
}

impl Point {
    /// Creates a point as MLflow's store does (`sanitize_metric_value`).
    #[must_use]
    pub fn new(timestamp: i64, step: i64, value: f64) -> Self {
        let value = if value.is_nan() {
            f64::NAN
        } else {
            // Adding 0.0 turns -0.0 into 0.0. Databases treat them as equal.
            value.clamp(f64::MIN, f64::MAX) + 0.0
        };
        Self { timestamp, step, value }
    }

    /// Returns the value that comparisons use. NaN compares like 0, because MLflow stores NaN as 0
    /// with a flag.
    fn comparable(&self) -> f64 {
        if self.value.is_nan() { 0.0 } else { self.value }
    }

    /// Compares points by step, then by timestamp, and then by value. The greatest point in this
    /// order is the metric's latest.
    #[must_use]
    pub fn by_step(&self, other: &Self) -> Ordering {
        (self.step, self.timestamp).cmp(&(other.step, other.timestamp)).then_with(|| self.by_value(other))
    }

    /// Compares points in history order: by timestamp, step and value.
    #[must_use]
    pub fn by_time(&self, other: &Self) -> Ordering {
        (self.timestamp, self.step).cmp(&(other.timestamp, other.step)).then_with(|| self.by_value(other))
    }

    fn by_value(&self, other: &Self) -> Ordering {
        let values = self.comparable().total_cmp(&other.comparable());
        values.then_with(|| self.value.is_nan().cmp(&other.value.is_nan()))
    }

    /// Packs one point.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(18);
        write_signed(&mut bytes, self.step);
        write_signed(&mut bytes, self.timestamp);
        bytes.extend_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// Unpacks one point. Returns `None` if the bytes were not written by [`Point::pack`].
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (step, timestamp) = (read_signed(&mut rest)?, read_signed(&mut rest)?);
        let value = f64::from_le_bytes(rest.try_into().ok()?);
        Some(Self { timestamp, step, value })
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.by_time(other) == Ordering::Equal
    }
}

/// Sorts points into history order and removes duplicates.
pub fn sort_by_time(points: &mut Vec<Point>) {
    points.sort_unstable_by(Point::by_time);
    points.dedup();
}

/// Packs points that are in history order. Each is stored as its difference from the previous one.
#[must_use]
pub fn pack(points: &[Point]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(points.len() * 11 + 16);
    let (mut timestamp, mut step) = (0_i64, 0_i64);
    for point in points {
        write_signed(&mut bytes, point.timestamp.wrapping_sub(timestamp));
        write_signed(&mut bytes, point.step.wrapping_sub(step));
        bytes.extend_from_slice(&point.value.to_le_bytes());
        (timestamp, step) = (point.timestamp, point.step);
    }
    bytes
}

/// Returns the digest of packed points that is part of their segment's key: 64 bits of SHA-256. Two
/// segments of a metric that begin at the same time and step have different digests if their points
/// differ, even if a client tries to provoke a collision.
#[must_use]
pub fn digest(packed: &[u8]) -> Digest {
    let [high, _] = halves(sha256_128(packed));
    Digest(high)
}

/// Unpacks points. Returns `None` if the bytes were not written by [`pack`].
#[must_use]
pub fn unpack(bytes: &[u8]) -> Option<Vec<Point>> {
    let mut rest = bytes;
    let mut points = Vec::with_capacity(bytes.len() / 10);
    let (mut timestamp, mut step) = (0_i64, 0_i64);
    while !rest.is_empty() {
        timestamp = timestamp.wrapping_add(read_signed(&mut rest)?);
        step = step.wrapping_add(read_signed(&mut rest)?);
        let (value, after) = rest.split_first_chunk()?;
        points.push(Point { timestamp, step, value: f64::from_le_bytes(*value) });
        rest = after;
    }
    Some(points)
}

/// Writes a number with seven bits per byte. Numbers near zero of either sign take few bytes.
pub(crate) fn write_signed(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}

pub(crate) fn read_signed(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = Point> {
        (any::<i64>(), any::<i64>(), any::<f64>())
            .prop_map(|(timestamp, step, value)| Point::new(timestamp, step, value))
    }

    proptest! {
        #[test]
        fn a_point_comes_back(point in point()) {
            prop_assert_eq!(Point::unpack(&point.pack()), Some(point));
            prop_assert_eq!(Point::new(point.timestamp, point.step, point.value).pack(), point.pack());
        }

        #[test]
        fn points_come_back(mut points in proptest::collection::vec(point(), 0..50)) {
            sort_by_time(&mut points);
            prop_assert_eq!(unpack(&pack(&points)), Some(points));
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = (Point::unpack(&bytes), unpack(&bytes));
        }
    }

    #[test]
    fn values_are_kept_as_mlflow_keeps_them() {
        for (value, kept) in [(f64::INFINITY, f64::MAX), (f64::NEG_INFINITY, f64::MIN), (5e-324, 5e-324)] {
            assert_eq!(Point::new(0, 0, value).value.to_bits(), kept.to_bits());
        }
        assert!(Point::new(0, 0, -0.0).value.is_sign_positive());
        assert!(Point::new(0, 0, -f64::NAN).value.is_nan());
    }

    #[test]
    fn a_thousand_steps_are_small() {
        let points: Vec<_> = (0..1_000)
            .map(|step| Point::new(1_700_000_000_000 + i64::from(step) * 100, step.into(), f64::from(step) / 7.0))
            .collect();
        assert!(pack(&points).len() < 11_100);
        assert!(points[5].pack().len() <= 16);
    }

    #[test]
    fn the_orders_are_mlflows() {
        let (early, late) = (Point::new(1, 9, 0.0), Point::new(2, 3, 0.0));
        assert_eq!(early.by_time(&late), Ordering::Less);
        assert_eq!(early.by_step(&late), Ordering::Greater);
        assert_eq!(Point::new(1, 1, f64::NAN).by_step(&Point::new(1, 1, -1.0)), Ordering::Greater);
    }
}
