//! Archived metric histories: segments of long histories whose points are in objects of the archive
//! instead of the table.
//!
//! [`archive_history`] moves the segments of a run there, [`read_segments`] reads them again, and
//! [`remove_segments`] removes them when they expire.
//! The items that list archived segments are in [`entities::ArchivedSegments`]. This is a crate of
//! its own, because `entities` does not access the archive, and both a removal and readers of
//! histories use it.
//!
//! Only segments that chart rows represent are archived, and only if the history is longer than
//! [`entities::MAX_UNARCHIVED_POINTS`]. Charts are therefore drawn without the archive: they read
//! chart rows, and the segments after them. Latest values and searches read no segments at all.

mod archiving;
mod candidates;
mod reading;
mod removal;

pub use archiving::{archive_history, is_over};
pub use reading::{read_archived_points, read_segments};
pub use removal::{expired_segments, remove_segments};
