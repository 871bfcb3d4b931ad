use mlflow_api::{ExperimentId, RunId};
use proptest::prelude::*;

use super::*;

fn at() -> RunLocation {
    RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse("run").unwrap() }
}

fn points(steps: Range<i64>) -> Vec<Point> {
    steps.map(|step| Point::new(step * 1_000, step, 0.5)).collect()
}

fn row(number: u32, steps: Range<i64>) -> ChartRow {
    let after = (steps.start > 0).then_some((steps.start - 1, 0));
    let through = (steps.end - 1, 0);
    let (points, stands_for) = ChartRow::points_of(points(steps));
    ChartRow {
        number: RowNumber { level: 1, number },
        points,
        represented_points: stands_for,
        after,
        through,
        digests: vec![Digest(7)],
        packed: 3,
    }
}

/// Returns the sample that MLflow's SQL query takes.
fn plain(points: &[Point], count: usize) -> Vec<Point> {
    let Some(last) = points.last() else { return Vec::new() };
    let buckets = count.min(points.len());
    let (size, larger) = (points.len() / buckets, points.len() % buckets);
    let mut sample: Vec<_> = (0..buckets).map(|bucket| points[bucket * size + bucket.min(larger)]).collect();
    if sample.last() != Some(last) {
        if sample.len() >= count {
            sample.pop();
        }
        sample.push(*last);
    }
    sample
}

proptest! {
    #[test]
    fn where_each_point_stands_for_itself_the_sample_is_mlflows(length in 0_i64..3_000, count in 1_usize..400) {
        let points = points(0..length);
        let weighted: Vec<_> = points.iter().map(|point| (*point, 1)).collect();
        prop_assert_eq!(sample(&weighted, count), plain(&points, count));
    }

    #[test]
    fn a_cover_has_each_row_of_the_first_level_once(rows in 0_u32..100_000, at_least in 1_u32..20) {
        let mut next = 0;
        for row in cover(rows, at_least) {
            let size = ROWS_PER_PARENT.pow(row.level - 1);
            prop_assert_eq!(row.number * size, next);
            next += size;
        }
        prop_assert_eq!(next, rows);
        let top = cover(rows, at_least).first().map_or(1, |row| row.level);
        let of_top = cover(rows, at_least).iter().filter(|row| row.level == top).count();
        prop_assert!(top == 1 || of_top >= usize::try_from(at_least).unwrap());
        prop_assert!(cover(rows, at_least).len() <= usize::try_from(at_least * ROWS_PER_PARENT + 3 * top).unwrap());
    }

    #[test]
    fn rows_come_back(from in 0_i64..5_000, length in 1_i64..3_000, foreign in proptest::collection::vec(any::<u8>(), 0..40)) {
        let row = row(9, from..from + length);
        let item = row.item(&at(), "m");
        prop_assert_eq!(ChartRow::read(row.number, &item).unwrap(), row.clone());
        prop_assert_eq!(row.weighted().map(|(_, weight)| weight).sum::<u64>(), row.represented_points);
        prop_assert_eq!(row.is_whole(), length <= 256);
        let _ = ChartRow::read(row.number, &item.with(SPAN, bytes(foreign.clone())));
        let _ = ChartRow::read(row.number, &row.item(&at(), "m").with(POINTS, bytes(foreign)));
    }

    #[test]
    fn rows_of_any_level_are_evenly_spaced(lengths in proptest::collection::vec(1_000_i64..3_000, 16)) {
        let mut from = 0;
        let mut rows: Vec<_> = (0..).zip(&lengths).map(|(number, length)| {
            from += length;
            row(number, from - length..from)
        }).collect();
        while rows.len() > 1 {
            rows = rows.chunks(4).map(|parts| {
                let number = parts[3].number.completed().unwrap();
                assert!(number.parts().eq(parts.iter().map(|part| part.number)));
                ChartRow::of_parts(number, parts, 3).unwrap()
            }).collect();
        }
        let row = &rows[0];
        prop_assert_eq!((row.number, row.represented_points), (RowNumber { level: 3, number: 0 }, u64::try_from(from).unwrap()));
        prop_assert_eq!((row.after, row.through), (None, (from - 1, 0)));
        prop_assert_eq!((row.points[0].step, row.points.last().unwrap().step), (0, from - 1));
        prop_assert!(row.points.len() <= MAX_ROW_POINTS && row.points.is_sorted_by(|one, other| one.step < other.step));
        // Sampling a level displaces each point by at most as many steps as a point of the level
        // below represents.
        let widest = row.points.windows(2).map(|pair| pair[1].step - pair[0].step).max().unwrap_or(0);
        prop_assert!(widest <= 3 * (from / 256), "{} of {}", widest, from);
    }
}

#[test]
fn samples_are_even_and_keep_both_ends() {
    let steps = |count: i64, wanted: usize| -> Vec<i64> {
        let points: Vec<_> = points(0..count).into_iter().map(|point| (point, 1)).collect();
        sample(&points, wanted).iter().map(|point| point.step).collect()
    };
    assert_eq!(steps(0, 5), Vec::<i64>::new());
    assert_eq!(steps(3, 5), [0, 1, 2]);
    assert_eq!(steps(10, 5), [0, 2, 4, 6, 9]);
    assert_eq!(steps(7, 3), [0, 3, 6]);
    assert_eq!(steps(11, 3), [0, 4, 10]);
    assert_eq!(steps(5, 1), [4]);
}

#[test]
fn a_million_points_are_few_rows_and_a_row_is_a_read_unit() {
    assert_eq!(cover(1_000, 2).len(), 10);
    assert!((1..100_000).all(|rows| cover(rows, 2).len() <= 32));
    let coarse = (0..256).map(|number: i64| Point::new(1_700_000_000_000 + number * 40_000_000, number * 4_096, 0.1));
    let row = ChartRow { points: coarse.collect(), represented_points: 1 << 20, ..row(4_000_000, 0..9) };
    assert!(row.item(&at(), "validation/loss_of_head").size() < 4_096 - 100);
}

#[test]
fn a_row_that_lost_its_end_is_unreadable() {
    let row = row(0, 0..500);
    let item = row.item(&at(), "m").with(POINTS, bytes(points::pack(&row.points[..255])));
    assert!(ChartRow::read(row.number, &item).is_err());
}
