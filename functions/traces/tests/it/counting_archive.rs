//! An archive in memory that counts reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use artifact_store::{Archive, ArchiveBackend, ArchiveError, ArchivePage};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use mlflow_api::ArchiveObject;

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ArchiveObject, Bytes>,
    reads: usize,
}

/// An archive in memory. Clones share the objects and the number of reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingArchive(Arc<Mutex<State>>);

impl CountingArchive {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns an archive that reads and writes these objects.
    pub(crate) fn open(&self) -> Archive {
        Archive::over(self.clone())
    }

    /// Returns the number of objects.
    pub(crate) fn objects(&self) -> usize {
        self.state().objects.len()
    }

    /// Returns the number of reads so far.
    pub(crate) fn reads(&self) -> usize {
        self.state().reads
    }
}

impl ArchiveBackend for CountingArchive {
    fn write(&self, object: ArchiveObject, content: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        self.state().objects.insert(object, content);
        ready(Ok(())).boxed()
    }

    fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>> {
        let mut state = self.state();
        state.reads += 1;
        let from = usize::try_from(offset).unwrap();
        let content = state.objects.get(&object).map(|content| content.slice(from..from + length));
        ready(content.ok_or(ArchiveError::Missing(object))).boxed()
    }

    fn delete(&self, object: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>> {
        self.state().objects.remove(&object);
        ready(Ok(())).boxed()
    }

    fn list(&self, _: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>> {
        ready(Err(ArchiveError::Absent)).boxed()
    }
}
