//! The known beginnings of lists, before a path is chosen.

use super::list::RunList;

/// The beginning of a list, as it was read. A list that is newest first is read within
/// [`RunOptions::started`](super::RunOptions::started).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many entries were read.
    pub entries: usize,
    /// Whether these are all.
    pub complete: bool,
    /// The start time of the first, in ms, if the list is newest first and not empty.
    pub first: Option<i64>,
    /// The start time of the last one read, likewise.
    pub last: Option<i64>,
}

impl Head {
    /// How many entries of a list are read.
    pub const ENTRIES: usize = 128;
}

/// The heads of some lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heads(Vec<(RunList, Head)>);

impl FromIterator<(RunList, Head)> for Heads {
    fn from_iter<T: IntoIterator<Item = (RunList, Head)>>(heads: T) -> Self {
        Self(heads.into_iter().collect())
    }
}

impl Heads {
    /// The head of a list, if it was read.
    #[must_use]
    pub fn of(&self, list: &RunList) -> Option<&Head> {
        self.0.iter().find(|(known, _)| known == list).map(|(_, head)| head)
    }

    /// How many entries the whole list has, if its head is all of it.
    pub(super) fn length(&self, list: &RunList) -> Option<usize> {
        self.of(list).filter(|head| head.complete).map(|head| head.entries)
    }

    /// How often a run of a list that is newest first starts, per ms, counted from the newest that
    /// is known.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn rate(&self, list: &RunList) -> Option<f64> {
        let newest = self.0.iter().filter_map(|(_, head)| head.first).max()?;
        let head = self.of(list).filter(|head| head.entries > 0)?;
        let span = newest.saturating_sub(head.last?).saturating_add(1);
        Some(float(head.entries) / span.max(1) as f64)
    }

    /// The lists with a rate.
    pub(super) fn lists(&self) -> impl Iterator<Item = &RunList> {
        self.0.iter().map(|(list, _)| list)
    }
}

/// A count as a float; beyond 32 bits no estimate needs it.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
