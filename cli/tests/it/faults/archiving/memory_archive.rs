//! An archive in memory that fails on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use artifact_store::{Archive, ArchiveBackend, ArchiveError, ArchivePage, ArchivedFile};
use bytes::Bytes;
use futures::future::BoxFuture;
use mlflow_api::ArchiveObject;

/// How a call of the archive fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveFault {
    /// It has no effect.
    Refused,
    /// It has its effect, but its response is lost.
    AnswerLost,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ArchiveObject, Bytes>,
    calls: usize,
    /// The fault, the number of the first call that fails, and the number of calls that fail.
    fault: Option<(ArchiveFault, usize, usize)>,
}

/// An archive in memory. Clones share the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryArchive(Arc<Mutex<State>>);

impl MemoryArchive {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns an archive that reads and writes these objects.
    pub(crate) fn open(&self) -> Archive {
        Archive::over(self.clone())
    }

    /// Returns an archive with copies of the objects.
    pub(crate) fn copy(&self) -> Self {
        let objects = self.state().objects.clone();
        Self(Arc::new(Mutex::new(State { objects, ..State::default() })))
    }

    pub(crate) fn objects(&self) -> BTreeSet<ArchiveObject> {
        self.state().objects.keys().copied().collect()
    }

    /// Returns the total size of the objects.
    pub(crate) fn bytes(&self) -> usize {
        self.state().objects.values().map(Bytes::len).sum()
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    /// Makes a number of calls fail, starting with the `nth` one from now.
    pub(crate) fn fail(&self, fault: ArchiveFault, nth: usize, calls: usize) {
        let mut state = self.state();
        state.fault = Some((fault, state.calls + nth, calls));
    }

    pub(crate) fn work_again(&self) {
        self.state().fault = None;
    }

    pub(crate) fn lose(&self, object: ArchiveObject) {
        self.state().objects.remove(&object);
    }

    /// Changes each byte of an object.
    pub(crate) fn damage(&self, object: ArchiveObject) {
        if let Some(content) = self.state().objects.get_mut(&object) {
            *content = content.iter().map(|byte| !byte).collect();
        }
    }

    /// Executes a call, unless it fails.
    fn call<T>(&self, work: impl FnOnce(&mut State) -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        let mut state = self.state();
        state.calls += 1;
        let nth = state.calls;
        let fault = state.fault.filter(|(_, first, calls)| nth >= *first && nth - first < *calls);
        let down = || ArchiveError::Unavailable("the archive is down".to_owned());
        match fault {
            Some((ArchiveFault::Refused, ..)) => Err(down()),
            Some((ArchiveFault::AnswerLost, ..)) => work(&mut state).and(Err(down())),
            None => work(&mut state),
        }
    }
}

impl ArchiveBackend for MemoryArchive {
    fn write(&self, object: ArchiveObject, content: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        let written = self.call(|state| {
            assert!(state.objects.insert(object, content).is_none(), "an object is written twice");
            Ok(())
        });
        Box::pin(std::future::ready(written))
    }

    fn read(&self, object: ArchiveObject, offset: u64, length: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>> {
        let read = self.call(|state| {
            let content = state.objects.get(&object).ok_or(ArchiveError::Missing(object))?;
            let from = usize::try_from(offset).unwrap();
            let range = from..from + length;
            if range.end > content.len() { Err(ArchiveError::Incomplete(object)) } else { Ok(content.slice(range)) }
        });
        Box::pin(std::future::ready(read))
    }

    fn delete(&self, object: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>> {
        let deleted = self.call(|state| {
            state.objects.remove(&object);
            Ok(())
        });
        Box::pin(std::future::ready(deleted))
    }

    fn list(&self, _: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>> {
        let listed = self.call(|state| {
            let file = |(object, content): (&ArchiveObject, &Bytes)| ArchivedFile {
                object: *object,
                length: content.len() as u64,
            };
            Ok(ArchivePage { objects: state.objects.iter().map(file).collect(), next: None })
        });
        Box::pin(std::future::ready(listed))
    }
}
