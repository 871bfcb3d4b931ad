//! Syncs the write-ahead log to disk in such a way that many commits share one sync.
//!
//! SQLite is built so that a commit only writes to its log, without syncing it
//! (`.cargo/config.toml`: `SQLITE_DEFAULT_WAL_SYNCHRONOUS`). Before an operation is answered,
//! [`SyncedLog::wait`] syncs the log. If SQLite synced in each commit, it would hold the engine's
//! only lock during the sync, and all calls would wait for it. With separate syncs, all commits
//! that happen during a sync are covered by the next one. A read may see a write some moments
//! before it is on disk, but an acknowledged write is always on disk.
//!
//! If SQLite is built without this setting, it syncs in each commit, and the sync here is
//! redundant.

use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A function that syncs the log to disk.
type SyncFunction = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The write-ahead log of a database on disk.
pub(crate) struct SyncedLog {
    sync: SyncFunction,
    state: Mutex<LogState>,
    changed: Condvar,
}

#[derive(Default)]
struct LogState {
    /// Number of commits whose callers have started to wait.
    arrived: u64,
    /// Number of commits, among those counted in `arrived`, that are on disk.
    synced: u64,
    is_syncing: bool,
    has_failed: bool,
}

impl fmt::Debug for SyncedLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Log")
    }
}

impl SyncedLog {
    pub(crate) fn new(sync: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { sync: Box::new(sync), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Blocks until all data that the caller has committed is on disk.
    ///
    /// # Errors
    /// The sync failed, now or earlier. After a failed sync, the operating system may have dropped
    /// the data that it could not write, so a later successful sync does not prove that the data is
    /// on disk.
    pub(crate) fn wait(&self) -> io::Result<()> {
        self.wait_for(self.arrive())
    }

    /// Returns a position in the queue for the next sync, which covers the data that the caller has
    /// committed.
    pub(crate) fn arrive(&self) -> u64 {
        let mut state = self.state();
        state.arrived += 1;
        state.arrived
    }

    /// Blocks until the commit with this position is on disk.
    ///
    /// # Errors
    /// See [`SyncedLog::wait`].
    pub(crate) fn wait_for(&self, place: u64) -> io::Result<()> {
        let mut state = self.state();
        loop {
            if state.has_failed {
                return Err(io::Error::other("the log could not be synced to disk"));
            }
            if state.synced >= place {
                return Ok(());
            }
            if state.is_syncing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_syncing = true;
            let covered = state.arrived;
            drop(state);
            let outcome = (self.sync)();
            state = self.state();
            state.is_syncing = false;
            match outcome {
                Ok(()) => state.synced = covered,
                Err(error) => {
                    tracing::error!(%error, "the log could not be synced to disk");
                    state.has_failed = true;
                }
            }
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn commits_share_a_wait_and_none_is_answered_before_its_own() {
        let (committed, on_disk, syncs) =
            (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let log = {
            let (committed, on_disk, syncs) = (committed.clone(), on_disk.clone(), syncs.clone());
            SyncedLog::new(move || {
                let before = committed.load(Ordering::SeqCst);
                thread::sleep(Duration::from_millis(2));
                on_disk.store(before, Ordering::SeqCst);
                syncs.fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
        };
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mine = committed.fetch_add(1, Ordering::SeqCst) + 1;
                        log.wait().unwrap();
                        assert!(on_disk.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
        let syncs = syncs.load(Ordering::SeqCst);
        assert!(syncs < 160, "{syncs} syncs for 320 commits");
    }

    #[test]
    fn a_disk_that_refused_once_is_not_trusted_again() {
        let refuses = Arc::new(AtomicBool::new(true));
        let log = {
            let refuses = refuses.clone();
            SyncedLog::new(move || if refuses.load(Ordering::SeqCst) { Err(io::Error::other("full")) } else { Ok(()) })
        };
        assert!(log.wait().is_err());
        refuses.store(false, Ordering::SeqCst);
        assert!(log.wait().is_err());
    }
}
