//! Calculates how many traces fit into a block.

use trace_blocks::MAX_BLOCK_BYTES;

/// Returns how many traces, counted from the first one, fit into a block of at most `most` traces.
/// `rooms` contains the packed size of each trace. Returns at least one.
pub(super) fn count_fitting(rooms: impl IntoIterator<Item = usize>, most: usize) -> usize {
    let mut left = MAX_BLOCK_BYTES;
    let fitting = rooms.into_iter().take(most).take_while(|room| match left.checked_sub(*room) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    fitting.count().max(1)
}

/// Splits traces evenly into as few blocks as possible, each with at most `most` traces. `rooms`
/// contains the packed size of each trace. Returns the number of traces in each block.
pub(super) fn split_evenly(rooms: &[usize], most: usize) -> Vec<usize> {
    let greedy = split_greedily(rooms, most);
    match greedy.len() {
        0 | 1 => greedy,
        count => split_greedily(rooms, rooms.len().div_ceil(count)),
    }
}

fn split_greedily(rooms: &[usize], most: usize) -> Vec<usize> {
    let (mut counts, mut rest) = (Vec::new(), rooms);
    while !rest.is_empty() {
        let count = count_fitting(rest.iter().copied(), most);
        counts.push(count);
        rest = rest.get(count..).unwrap_or_default();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_full_or_about_even() {
        assert_eq!(count_fitting([1; 200], 128), 128);
        assert_eq!(count_fitting([16 << 10; 200], 128), 21);
        assert_eq!(count_fitting([MAX_BLOCK_BYTES + 1], 128), 1);
        assert_eq!(split_evenly(&[1; 128], 128), [128]);
        assert_eq!(split_evenly(&[1; 129], 128), [65, 64]);
        assert_eq!(split_evenly(&[1; 256], 128), [128, 128]);
        assert_eq!(split_evenly(&[16 << 10; 50], 128), [17, 17, 16]);
        assert!(split_evenly(&[], 128).is_empty());
        let mixed: Vec<_> = (0..256).map(|at| if at % 3 == 0 { 16 << 10 } else { 100 }).collect();
        let counts = split_evenly(&mixed, 128);
        assert_eq!(counts.iter().sum::<usize>(), 256);
        let mut rest = mixed.as_slice();
        for count in counts {
            let (piece, others) = rest.split_at(count);
            assert!(piece.iter().sum::<usize>() <= MAX_BLOCK_BYTES);
            rest = others;
        }
    }
}
