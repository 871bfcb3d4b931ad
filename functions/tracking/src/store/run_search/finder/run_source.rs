//! The sources that a run is read from.

use std::sync::Arc;

use entities::RunLocation;
use key_schema::Key;
use table::Item;

/// A run to read, and where from.
pub(crate) struct RunToRead {
    pub(crate) at: RunLocation,
    pub(crate) source: RunSource,
}

/// The source to read a run from.
pub(crate) enum RunSource {
    /// Its copy, which has already been read.
    ReadCopy(Arc<Item>),
    /// Its copy, by this key.
    Copy(Key),
    /// Its documents.
    Documents,
}

impl RunToRead {
    /// Creates a run that is read from its documents.
    pub(crate) fn from_documents(at: RunLocation) -> Self {
        Self { at, source: RunSource::Documents }
    }
}
