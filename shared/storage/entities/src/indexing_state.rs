//! A run's indexing state: one type that is read from the run's document, and the updates that
//! change it.
//!
//! | event | writer | update |
//! |---|---|---|
//! | the run was created | the request that creates it | [`marked_item`] |
//! | the run changed | a request that writes to its document or its rows | [`MarkUpdate::marked`] |
//! | a call added points to the journal | a request that logs | [`MarkUpdate::marked_for_journal`] |
//! | the run was not indexed in time | a tick | [`MarkUpdate::marked_overdue`] |
//! | the run's entries have to be written again | `reindex` | [`MarkUpdate::marked_for_rebuild`] |
//! | the run was indexed | the indexer | [`IndexingResult::update`] |
//!
//! **The mark.** Each request that changes a run sets its mark, a key of a sparse local index, and
//! increments its revision. The indexer removes the mark on condition that the revision is still
//! the one that it indexed. At any moment, a consistent read of this index therefore returns the
//! runs that a search must read from their documents instead of the other indexes. Setting a mark
//! that is already set costs nothing.
//!
//! **Reliance.** A call that adds to the journal does not write to the run's document while it may
//! rely on an existing mark ([`Reliance`]). The protocol is described in
//! `docs/design/run-metrics.md`, and its times are in `run_times.rs`.

use key_schema::IndexEntry;
use key_schema::definition::Index;
use key_schema::index::RunsChanged;
use mlflow_api::RunId;
use mlflow_api::tracking::RunStatus;
use table::{Condition, Item, Update, number, text};

use crate::attributes::{
    Attribute, CLOSING, DUE, INDEXED, JOURNAL, LEASED, OVERDUE, PACKED, REBUILD, REVISION, SEEN, STATUS, Scalar,
};
use crate::run_location::RunLocation;

/// Attributes that hold this state and no other data of the run.
pub(crate) const ATTRIBUTES: [&str; 10] = [
    JOURNAL.name(),
    LEASED.name(),
    CLOSING.name(),
    SEEN.name(),
    PACKED.name(),
    REVISION.name(),
    INDEXED.name(),
    REBUILD.name(),
    DUE.name(),
    OVERDUE.name(),
];

/// Attributes of a document, either from an item of the table or from a record of the stream.
pub trait DocumentAttributes {
    /// Returns the value of an attribute that is stored as a string or a number.
    fn get<T: Scalar + ?Sized>(&self, attribute: Attribute<T>) -> Option<T::Value<'_>>;
    /// Checks whether the attribute is present.
    fn has<T: ?Sized>(&self, attribute: Attribute<T>) -> bool;
    /// Checks whether the document is in an index.
    fn is_in(&self, index: &Index) -> bool;
}

impl DocumentAttributes for Item {
    fn get<T: Scalar + ?Sized>(&self, attribute: Attribute<T>) -> Option<T::Value<'_>> {
        Self::get(self, attribute)
    }

    fn has<T: ?Sized>(&self, attribute: Attribute<T>) -> bool {
        Self::has(self, attribute)
    }

    fn is_in(&self, index: &Index) -> bool {
        Self::is_in(self, index)
    }
}

/// A run's indexing state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate attribute, and they combine freely")]
pub struct IndexingState<'a> {
    /// Whether the run is marked. Searches read a marked run from its documents.
    pub is_marked: bool,
    /// Counter of the changes that matter to the index.
    pub revision: Option<i64>,
    /// Revision of the last pass, if the run kept its mark at that time.
    pub processed_revision: Option<i64>,
    /// Name of the last completed indexing.
    pub indexing: Option<&'a str>,
    /// Whether the run has ended.
    pub has_ended: bool,
    /// Time in ms before which the run does not have to be indexed again.
    pub due: Option<i64>,
    /// Whether the run has to be indexed at once, because it was not indexed in time.
    pub is_overdue: bool,
    /// Whether all of the run's entries have to be written again.
    pub is_to_be_rebuilt: bool,
    /// Number of calls that marked the run because they added to the journal. `None` if the run has
    /// no journal.
    pub journal_marks: Option<i64>,
    /// Whether logging calls rely on the mark.
    pub reliance: Reliance,
    /// Number of times that points had been packed when the run was last indexed. `None` if no
    /// points had been packed.
    pub packed: Option<i64>,
}

/// Whether calls that add to the journal rely on the mark and skip the write to the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliance {
    /// No reliance: each call marks the run itself.
    None,
    /// Calls rely on the mark, and do not write to the document.
    Open,
    /// Calls must no longer rely on the mark, and mark the run again. Calls that have not noticed
    /// this yet may still rely on the mark, but end before this time, in ms.
    Closing(i64),
}

/// What happens to a run's mark when the run is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOutcome {
    /// The mark is removed. Later calls mark the run again.
    Goes,
    /// The mark is kept, because calls rely on it or points are left to be packed.
    Stays {
        /// Whether the indexer announces that calls must stop relying on the mark.
        closes: bool,
    },
}

impl Reliance {
    /// Returns the time in ms from which on no call relies on the mark, or `None` if calls have not
    /// been told to stop.
    #[must_use]
    pub fn closing(self) -> Option<i64> {
        match self {
            Self::Closing(time) => Some(time),
            Self::None | Self::Open => None,
        }
    }
}

impl<'a> IndexingState<'a> {
    /// Reads the indexing state from a run's document.
    #[must_use]
    pub fn of(run: &'a impl DocumentAttributes) -> Self {
        let has_ended = run.get(STATUS).is_some_and(RunStatus::has_ended);
        let reliance = match (run.has(LEASED), run.get(CLOSING)) {
            (false, _) => Reliance::None,
            (true, None) => Reliance::Open,
            (true, Some(time)) => Reliance::Closing(time),
        };
        Self {
            is_marked: run.is_in(RunsChanged::INDEX),
            revision: run.get(REVISION),
            processed_revision: run.get(SEEN),
            indexing: run.get(INDEXED),
            has_ended,
            due: run.get(DUE),
            is_overdue: run.has(OVERDUE),
            is_to_be_rebuilt: run.has(REBUILD),
            journal_marks: run.get(JOURNAL),
            reliance,
            packed: run.get(PACKED).map(i64::from),
        }
    }

    /// Checks whether calls rely on the mark, or have done so since it was set. Only ticks discover
    /// what such calls have logged, because the calls do not change the document.
    #[must_use]
    pub fn is_relied_on(&self) -> bool {
        self.reliance != Reliance::None
    }

    /// Checks whether the run has to be indexed at once: because the run has ended, because
    /// indexing was requested explicitly, or because calls have begun to rely on the run's mark
    /// since it was last indexed.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        let begins_to_be_relied_on = self.is_relied_on() && self.due.is_none();
        self.has_ended || self.is_to_be_rebuilt || self.is_overdue || begins_to_be_relied_on
    }

    /// Checks whether the indexer has already processed this revision and kept the mark.
    #[must_use]
    pub fn was_seen(&self) -> bool {
        self.processed_revision.is_some() && self.processed_revision == self.revision && !self.is_overdue
    }

    /// Returns what happens to the mark when the run is indexed. `before_read` is a time in ms
    /// before the run was read. `points_wait` is whether points are left in the journal.
    #[must_use]
    pub fn fate_of_mark(&self, before_read: i64, points_wait: bool) -> MarkOutcome {
        match self.reliance {
            Reliance::None => MarkOutcome::Goes,
            Reliance::Closing(time) if time <= before_read => MarkOutcome::Goes,
            Reliance::Closing(_) => MarkOutcome::Stays { closes: false },
            Reliance::Open => MarkOutcome::Stays { closes: self.has_ended || !points_wait },
        }
    }
}

/// Updates of a run's document that mark the run as changed.
pub trait MarkUpdate: Sized {
    /// Marks the run because it changed.
    #[must_use]
    fn marked(self, run: &RunId) -> Self;

    /// Marks the run because a call added points to the journal. With `rely`, later calls may rely
    /// on this mark. With `asks_for_packing`, the run is packed at once, because many points are
    /// waiting.
    #[must_use]
    fn marked_for_journal(self, run: &RunId, rely: bool, asks_for_packing: bool) -> Self;

    /// Marks the run because it was not indexed in time.
    #[must_use]
    fn marked_overdue(self, run: &RunId) -> Self;

    /// Marks the run because its entries have to be written again.
    #[must_use]
    fn marked_for_rebuild(self, run: &RunId) -> Self;
}

impl MarkUpdate for Update {
    fn marked(self, run: &RunId) -> Self {
        self.indexed(RunsChanged::key(run)).add(REVISION, number(1))
    }

    fn marked_for_journal(self, run: &RunId, rely: bool, asks_for_packing: bool) -> Self {
        let update = self.marked(run).add(JOURNAL, number(1)).remove(CLOSING);
        // With `rely`, later calls do not change the document, so the stream does not show that they
        // have logged. Without a due time, the indexer indexes the run at once. After that, ticks
        // request indexing.
        let update = if rely { update.set(LEASED, number(1)).remove(DUE) } else { update };
        if asks_for_packing { update.set(OVERDUE, number(1)) } else { update }
    }

    fn marked_overdue(self, run: &RunId) -> Self {
        self.marked(run).set(OVERDUE, number(1))
    }

    fn marked_for_rebuild(self, run: &RunId) -> Self {
        self.marked(run).set(REBUILD, number(1))
    }
}

/// Marks the item of a new run as changed.
#[must_use]
pub fn marked_item(item: Item, run: &RunId) -> Item {
    item.indexed(RunsChanged::key(run)).with(REVISION, number(1))
}

/// The result of indexing a run.
#[derive(Clone, Debug)]
pub struct IndexingResult {
    /// Revision that was indexed.
    pub revision: i64,
    /// Name of this indexing, which is also stored in the copy. `None` if the index was not updated,
    /// because the run keeps its mark and `reindex` has not requested it.
    pub indexing: Option<String>,
    /// Time in ms when the run is due again. `None` if every change is indexed at once.
    pub due: Option<i64>,
    /// What happens to the mark.
    pub mark: MarkOutcome,
}

impl IndexingResult {
    /// Returns the last write of an indexing. It is refused if the run has changed since it was
    /// read. `packed` is the number of times that points of the run were packed. `closing` is the
    /// time, in ms, after which no call may rely on the mark. It is only stored if this write
    /// announces that calls must stop relying on the mark.
    #[must_use]
    pub fn update(&self, at: &RunLocation, packed: i64, closing: i64) -> Update {
        let update = Update::new(at.key()).remove(OVERDUE);
        let update = match &self.indexing {
            Some(indexing) => update.set(INDEXED, text(indexing)).remove(REBUILD),
            None => update,
        };
        let update = match self.due {
            Some(due) => update.set(DUE, number(due)),
            None => update.remove(DUE),
        };
        let update = if packed > 0 { update.set(PACKED, number(packed)) } else { update };
        let update = match self.mark {
            MarkOutcome::Goes => {
                let update = update.not_indexed(RunsChanged::INDEX).remove(JOURNAL).remove(LEASED);
                update.remove(CLOSING).remove(SEEN)
            }
            MarkOutcome::Stays { closes: false } => update.set(SEEN, number(self.revision)),
            MarkOutcome::Stays { closes: true } => {
                update.set(SEEN, number(self.revision)).set(CLOSING, number(closing))
            }
        };
        update.only_if(Condition::Equals(REVISION.into(), number(self.revision)))
    }
}

#[cfg(test)]
mod tests {
    use key_schema::kind::Number;
    use mlflow_api::ExperimentId;

    use super::*;

    fn run() -> RunId {
        RunId::parse("run").unwrap()
    }

    /// Returns a document with these numeric attributes.
    fn document(numbers: &[(Attribute<Number>, i64)]) -> Item {
        let at = RunLocation { experiment: ExperimentId::DEFAULT, run: run() };
        numbers.iter().fold(Item::new(at.key()), |item, (name, value)| item.with(*name, number(*value)))
    }

    #[test]
    fn a_new_run_is_marked_and_nothing_else() {
        let new = marked_item(document(&[]), &run());
        let state = IndexingState::of(&new);
        assert!(state.is_marked && state.revision == Some(1));
        assert!(!state.is_urgent() && !state.was_seen() && !state.is_relied_on());
    }

    #[test]
    fn each_attribute_of_the_state_changes_it() {
        let empty = document(&[]);
        let plain = IndexingState::of(&empty);
        for name in ATTRIBUTES.into_iter().filter(|name| *name != CLOSING.name() && *name != INDEXED.name()) {
            assert_ne!(IndexingState::of(&document(&[]).with(name, number(1))), plain, "{name}");
        }
        assert_eq!(IndexingState::of(&document(&[(LEASED, 1), (CLOSING, 7)])).reliance, Reliance::Closing(7));
        let indexed = document(&[]).with(INDEXED, text("that one"));
        assert_eq!(IndexingState::of(&indexed).indexing, Some("that one"));
    }

    #[test]
    fn a_run_is_urgent_if_it_ended_or_somebody_asks_or_calls_begin_to_rely_on_its_mark() {
        let urgent = |numbers: &[_]| IndexingState::of(&document(numbers)).is_urgent();
        assert!(urgent(&[(REBUILD, 1), (DUE, 9)]) && urgent(&[(OVERDUE, 1), (DUE, 9)]) && urgent(&[(LEASED, 1)]));
        assert!(!urgent(&[(LEASED, 1), (DUE, 9)]) && !urgent(&[(JOURNAL, 1)]));
        for (status, ended) in [("RUNNING", false), ("SCHEDULED", false), ("FINISHED", true), ("KILLED", true)] {
            assert_eq!(IndexingState::of(&document(&[]).with(STATUS, text(status))).is_urgent(), ended, "{status}");
        }
    }

    #[test]
    fn a_revision_was_seen_unless_somebody_asks_again() {
        let seen = |numbers: &[_]| IndexingState::of(&document(numbers)).was_seen();
        assert!(seen(&[(REVISION, 3), (SEEN, 3)]));
        assert!(!seen(&[(REVISION, 4), (SEEN, 3)]) && !seen(&[(REVISION, 3)]) && !seen(&[]));
        assert!(!seen(&[(REVISION, 3), (SEEN, 3), (OVERDUE, 1)]));
    }

    #[test]
    fn a_mark_goes_when_no_call_can_rely_on_it() {
        let fate = |numbers: &[_], points_wait| IndexingState::of(&document(numbers)).fate_of_mark(100, points_wait);
        let [stays, closes] = [false, true].map(|closes| MarkOutcome::Stays { closes });
        assert_eq!(fate(&[], true), MarkOutcome::Goes);
        assert_eq!((fate(&[(LEASED, 1)], true), fate(&[(LEASED, 1)], false)), (stays, closes));
        assert_eq!(fate(&[(LEASED, 1), (CLOSING, 101)], false), stays);
        assert_eq!(fate(&[(LEASED, 1), (CLOSING, 100)], true), MarkOutcome::Goes);
        let ended = document(&[(LEASED, 1)]).with(STATUS, text("FINISHED"));
        assert_eq!(IndexingState::of(&ended).fate_of_mark(100, true), closes);
    }
}
