//! The heads of lists, which are read before a path is chosen.

use super::run_list::RunList;

/// The first entries of a list. A list that is sorted newest first is only read within
/// [`RunOptions::started`](super::RunOptions::started).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListHead {
    /// The number of entries that were read.
    pub entries: usize,
    /// Whether these are all entries of the list.
    pub complete: bool,
    /// The start time of the first entry in ms. `None` if the list is not sorted newest first, or
    /// is empty.
    pub first: Option<i64>,
    /// The start time of the last entry that was read, in ms. `None` if the list is not sorted
    /// newest first, or is empty.
    pub last: Option<i64>,
}

impl ListHead {
    /// Maximum number of entries in a head.
    pub const MAX_ENTRIES: usize = 128;
}

/// The heads of the lists that a search probed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListHeads(Vec<(RunList, ListHead)>);

impl FromIterator<(RunList, ListHead)> for ListHeads {
    fn from_iter<T: IntoIterator<Item = (RunList, ListHead)>>(heads: T) -> Self {
        Self(heads.into_iter().collect())
    }
}

impl ListHeads {
    /// Returns the head of a list, if it was read.
    #[must_use]
    pub fn of(&self, list: &RunList) -> Option<&ListHead> {
        self.0.iter().find(|(known, _)| known == list).map(|(_, head)| head)
    }

    /// Returns the length of a list, if its head is the complete list.
    pub(super) fn length(&self, list: &RunList) -> Option<usize> {
        self.of(list).filter(|head| head.complete).map(|head| head.entries)
    }

    /// Returns how many runs start per ms in a list that is sorted newest first. The period is
    /// measured back from the newest run in all heads.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn rate(&self, list: &RunList) -> Option<f64> {
        let newest = self.0.iter().filter_map(|(_, head)| head.first).max()?;
        let head = self.of(list).filter(|head| head.entries > 0)?;
        let span = newest.saturating_sub(head.last?).saturating_add(1);
        Some(float(head.entries) / span.max(1) as f64)
    }

    /// Returns the lists whose heads were read.
    pub(super) fn lists(&self) -> impl Iterator<Item = &RunList> {
        self.0.iter().map(|(list, _)| list)
    }
}

/// Converts a count to a float. Counts above 32 bits are capped, because no estimate needs them.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
