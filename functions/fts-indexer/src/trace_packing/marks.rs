//! The marks at a position in the time order.

use std::sync::Arc;

use entities::StoredTrace;
use entities::attributes::{MARKED_AT, WAITS};
use key_schema::rows;
use table::Item;
use trace_blocks::{TraceKey, in_mark_key};

/// All marks at one position. At most one of them has no spans.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) place: TraceKey,
    /// Time in ms when the last of the marks was put.
    pub(super) put: i64,
    /// The marks as they were read.
    pub(super) items: Arc<Vec<Item>>,
}

impl Mark {
    /// Returns the marks at a position. Returns `None` if they cannot be read.
    pub(super) fn of(items: Vec<Item>) -> Option<Self> {
        let place = place_of(items.first()?)?;
        let put = items.iter().map(|item| item.get(MARKED_AT)).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        Some(Self { place, put, items: Arc::new(items) })
    }

    /// Checks whether the packer skips the marks until one of them is put again.
    pub(super) fn waits(&self) -> bool {
        self.items.iter().all(|item| item.has(WAITS))
    }

    /// Returns the marks with spans.
    pub(super) fn with_spans(&self) -> impl Iterator<Item = &Item> {
        let has_spans = |item: &&Item| item.key().is_some_and(|key| rows::TraceMarkWithSpans::parse(&key).is_some());
        self.items.iter().filter(has_spans)
    }

    /// Checks whether one of the marks has spans.
    pub(super) fn has_spans(&self) -> bool {
        self.with_spans().next().is_some()
    }

    /// Checks whether there are marks with spans and a mark without.
    pub(super) fn is_mixed(&self) -> bool {
        self.has_spans() && self.with_spans().count() < self.items.len()
    }

    /// Returns the mark with spans that a document refers to.
    pub(super) fn spans_of(&self, trace: &StoredTrace) -> Option<&Item> {
        let key = in_mark_key(trace)?;
        self.items.iter().find(|item| item.key().as_ref() == Some(&key))
    }
}

fn place_of(mark: &Item) -> Option<TraceKey> {
    TraceKey::of_key(&mark.key()?)
}

/// Takes marks in the order of their keys, and groups them by position. The marks of the last position
/// stay, unless there are no more marks.
pub(super) fn take_by_place(marks: &mut Vec<Item>, is_end: bool) -> Vec<Vec<Item>> {
    let mut groups: Vec<Vec<Item>> = Vec::new();
    for mark in std::mem::take(marks) {
        match groups.last_mut().filter(|group| group.first().is_some_and(|first| place_of(first) == place_of(&mark))) {
            Some(group) => group.push(mark),
            None => groups.push(vec![mark]),
        }
    }
    if !is_end {
        *marks = groups.pop().unwrap_or_default();
    }
    groups
}

#[cfg(test)]
mod tests {
    use key_schema::WideDigest;
    use mlflow_api::{ExperimentId, TraceId};
    use table::{bytes, number};
    use trace_blocks::TracePartition;

    use super::*;

    const PARTITION: TracePartition = TracePartition { experiment: ExperimentId::DEFAULT, day: 0, shard: 0 };

    fn place(trace: u128) -> TraceKey {
        TraceKey { time: 5, trace: TraceId::new(trace) }
    }

    fn plain(trace: u128, put: i64) -> Item {
        Item::new(PARTITION.mark_key(&place(trace))).with(MARKED_AT, number(put))
    }

    fn with_spans(trace: u128, digest: u128, put: i64) -> Item {
        let key = PARTITION.mark_with_spans_key(&place(trace), &WideDigest(digest));
        Item::new(key).with(MARKED_AT, number(put))
    }

    #[test]
    fn marks_of_a_place_that_are_on_two_pages_are_one_group() {
        let pages =
            [vec![with_spans(3, 1, 1), with_spans(2, 2, 1)], vec![with_spans(2, 1, 1)], vec![plain(2, 1), plain(1, 1)]];
        let (mut open, mut sizes) = (Vec::new(), Vec::new());
        for (at, page) in pages.into_iter().enumerate() {
            open.extend(page);
            sizes.push(take_by_place(&mut open, at == 2).iter().map(Vec::len).collect::<Vec<_>>());
        }
        assert_eq!(sizes, [vec![1], vec![], vec![3, 1]]);
        assert!(open.is_empty() && take_by_place(&mut open, true).is_empty());
    }

    #[test]
    fn the_last_mark_that_was_put_counts() {
        let waiting = |item: Item| item.with(WAITS, number(1));
        let mark = Mark::of(vec![with_spans(1, 2, 7), waiting(plain(1, 5))]).unwrap();
        assert_eq!((mark.place.clone(), mark.put, mark.waits(), mark.has_spans()), (place(1), 7, false, true));
        let mark = Mark::of(vec![waiting(with_spans(1, 2, 3)), waiting(plain(1, 5))]).unwrap();
        assert_eq!((mark.put, mark.waits()), (5, true));
        let plain_only = Mark::of(vec![plain(1, 5)]).unwrap();
        assert!(!plain_only.has_spans() && !plain_only.is_mixed() && mark.is_mixed());
        assert!(!Mark::of(vec![with_spans(1, 2, 3), with_spans(1, 1, 3)]).unwrap().is_mixed());
        assert!(Mark::of(Vec::new()).is_none());
    }

    #[test]
    fn a_document_refers_to_one_of_the_marks() {
        let trace = |digest: u128| {
            let item = Item::new(rows::Trace::key(&TraceId::new(1)))
                .with("experiment", table::text(ExperimentId::DEFAULT.to_string()))
                .with("start_time", number(5))
                .with("in_mark", bytes(digest.to_be_bytes().to_vec()));
            StoredTrace::of(item).unwrap()
        };
        let mark = Mark::of(vec![with_spans(1, 2, 7), with_spans(1, 1, 6), plain(1, 5)]).unwrap();
        assert_eq!(mark.spans_of(&trace(1)), Some(&with_spans(1, 1, 6)));
        assert_eq!(mark.spans_of(&trace(3)), None);
    }
}
