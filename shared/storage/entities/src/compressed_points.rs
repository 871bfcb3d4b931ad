//! Compression of points for segments.
//!
//! Timestamps, steps and values are separate columns, which the crate `pco` compresses. It stores
//! regular times as differences, and detects decimal numbers and numbers with single precision
//! (`docs/adr/0092-compressed-segments.md`). Each segment contains the version of the library's format.

use pco::ChunkConfig;
use pco::data_types::Number;
use pco::errors::PcoResult;
use pco::wrapped::{FileCompressor, FileDecompressor};

use crate::points::{Point, pack, read_signed, write_signed};

/// Maximum number of points that are compressed together. Damaged bytes may state any number.
pub(crate) const MAX_POINTS: usize = 2_000;

/// Compresses points, at most [`MAX_POINTS`]. Returns `None` if they cannot be compressed, or if the
/// result would not be decompressed to the same points.
pub(crate) fn compress(points: &[Point]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    write_signed(&mut bytes, i64::try_from(points.len()).ok().filter(|_| points.len() <= MAX_POINTS)?);
    write_columns(points, &mut bytes).ok()?;
    // The caller then deletes the points from the journal, so a defect of the library would lose them.
    let is_same = decompress(&bytes).is_some_and(|read| pack(&read) == pack(points));
    is_same.then_some(bytes)
}

fn write_columns(points: &[Point], bytes: &mut Vec<u8>) -> PcoResult<()> {
    let file = FileCompressor::default();
    file.write_header(&mut *bytes)?;
    write_column(&file, points.iter().map(|point| point.timestamp), bytes)?;
    write_column(&file, points.iter().map(|point| point.step), bytes)?;
    write_column(&file, points.iter().map(|point| point.value), bytes)
}

fn write_column<T: Number>(
    file: &FileCompressor,
    column: impl Iterator<Item = T>,
    bytes: &mut Vec<u8>,
) -> PcoResult<()> {
    // A column of a segment is a chunk with a single page.
    let mut chunk = file.chunk_compressor(&column.collect::<Vec<_>>(), &ChunkConfig::default())?;
    chunk.write_meta(&mut *bytes)?;
    chunk.write_page(0, bytes)?;
    Ok(())
}

/// Decompresses points. Returns `None` if the bytes were not written by [`compress`].
pub(crate) fn decompress(bytes: &[u8]) -> Option<Vec<Point>> {
    let mut rest = bytes;
    let count = usize::try_from(read_signed(&mut rest)?).ok().filter(|count| *count <= MAX_POINTS)?;
    read_columns(rest, count).ok()?
}

/// Returns `None` if there are bytes after the last column.
fn read_columns(bytes: &[u8], count: usize) -> PcoResult<Option<Vec<Point>>> {
    let (file, rest) = FileDecompressor::new(bytes)?;
    let (timestamps, rest) = read_column::<i64>(&file, rest, count)?;
    let (steps, rest) = read_column::<i64>(&file, rest, count)?;
    let (values, rest) = read_column::<f64>(&file, rest, count)?;
    let points = timestamps.into_iter().zip(steps).zip(values);
    let points = points.map(|((timestamp, step), value)| Point { timestamp, step, value });
    Ok(rest.is_empty().then(|| points.collect()))
}

/// Returns a column, and the bytes that follow it.
fn read_column<'a, T: Number>(file: &FileDecompressor, bytes: &'a [u8], count: usize) -> PcoResult<(Vec<T>, &'a [u8])> {
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(bytes)?;
    let mut page = chunk.page_decompressor(rest, count)?;
    let mut column = vec![T::default(); count];
    page.read(&mut column)?;
    Ok((column, page.into_src()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::points::sort_by_time;

    /// Generates points. Some are like those of training scripts, others have arbitrary numbers.
    fn point() -> impl Strategy<Value = Point> {
        let number = prop_oneof![any::<i64>(), 0_i64..1_000];
        let value = prop_oneof![any::<f64>(), any::<f32>().prop_map(f64::from), (0..100).prop_map(f64::from)];
        (number.clone(), number, value).prop_map(|(timestamp, step, value)| Point::new(timestamp, step, value))
    }

    fn bits(points: &[Point]) -> Vec<(i64, i64, u64)> {
        points.iter().map(|point| (point.timestamp, point.step, point.value.to_bits())).collect()
    }

    proptest! {
        #[test]
        fn points_come_back(mut points in proptest::collection::vec(point(), 1..300)) {
            sort_by_time(&mut points);
            let read = decompress(&compress(&points).unwrap()).unwrap();
            prop_assert_eq!(bits(&read), bits(&points));
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decompress(&bytes);
        }

        #[test]
        fn damaged_bytes_do_no_harm(
            points in proptest::collection::vec(point(), 1..100),
            place: proptest::sample::Index,
            byte: u8,
        ) {
            let mut bytes = compress(&points).unwrap();
            let place = place.index(bytes.len());
            let whole = bytes.clone();
            bytes[place] = byte;
            let _ = decompress(&bytes);
            prop_assert!(decompress(&whole[..place]).is_none());
        }
    }

    const RECORDED: &str = "\
        500401a10f000000000000100101800000000000000040000400740000000000000000df13dd2c7012830010010180000000
        00000000400000000000000000800096002000000000000000000107000000000000ec2fc000000000000000fe051c000000
        000000d0bf8003000000000000fc177000000000000088ff020a000000000000f55f40010000000000e0fe0b380000000000
        00e07f01b5ca9858a2681698224e6a1c728ae22e020100
    ";

    /// Versions that are in use have to read what another one writes. If this fails, the library writes
    /// another format, which requires another layout of tables.
    #[test]
    fn the_format_is_the_recorded_one() {
        let value = |step: u32| f64::from(step * step % 17) / 16.0;
        let points: Vec<_> = (0..40)
            .map(|step: u32| Point::new(1_700_000_000_000 + i64::from(step) * 250, step.into(), value(step)))
            .collect();
        let recorded: Vec<u8> = RECORDED
            .split_ascii_whitespace()
            .flat_map(|line| (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()))
            .collect();
        assert_eq!(bits(&decompress(&recorded).unwrap()), bits(&points));
        assert_eq!(compress(&points).unwrap(), recorded);
    }

    /// Returns pseudo-random numbers from 0 to 1.
    fn noise(seed: u64) -> f64 {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        f64::from(u32::try_from(mixed >> 32).unwrap()) / f64::from(u32::MAX)
    }

    #[test]
    fn common_metrics_take_few_bytes() {
        let bytes_of_1000 = |value: fn(u32) -> f64| {
            let point = |step: u32| {
                let jitter = i64::from(step.wrapping_mul(0x9e37_79b9) >> 24) % 41;
                Point::new(1_700_000_000_000 + i64::from(step) * 1_000 + jitter, step.into(), value(step))
            };
            let points: Vec<_> = (0..1_000).map(point).collect();
            assert!(pack(&points).len() > 10_900);
            compress(&points).unwrap().len()
        };
        #[expect(clippy::cast_possible_truncation, reason = "the loss of precision is intended")]
        let single_precision = |step: u32| f64::from((2.0 / (1.0 + noise(step.into()))) as f32);
        assert!(bytes_of_1000(single_precision) < 4_300);
        assert!(bytes_of_1000(|step| (noise(step.into()) * 10_000.0).round() / 10_000.0) < 3_200);
        assert!(bytes_of_1000(|step| 2.0 / (1.0 + noise(step.into()))) < 7_900);
        assert!(bytes_of_1000(|_| 0.001) < 1_200);
    }
}
