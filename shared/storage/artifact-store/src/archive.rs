//! The archive: objects next to the artifacts that contain data which is rarely read, and which the
//! table only refers to.

use crate::artifacts::ArtifactStore;

/// Where archived data is stored: below the artifact root, which is a bucket or, on a laptop, a
/// directory. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    store: ArtifactStore,
}

impl Archive {
    /// Returns the archive in the given artifact store.
    #[must_use]
    pub fn new(store: ArtifactStore) -> Self {
        Self { store }
    }

    /// Returns the artifact store that contains the archive.
    #[must_use]
    pub fn store(&self) -> &ArtifactStore {
        &self.store
    }
}
