//! Waiting for the disk: many commits share one wait.
//!
//! SQLite is built so that a commit only writes to its log (`.cargo/config.toml`:
//! `SQLITE_DEFAULT_WAL_SYNCHRONOUS`). Before an operation is answered, [`Log::wait`] has the log on
//! the disk. If SQLite synced with each commit, the engine's one lock would be held meanwhile, and
//! all calls would wait for each sync. This way, commits during a sync are covered by the next one.
//! A read may see a write some moments before that is on the disk; an acknowledged write is there.
//!
//! Where SQLite is built without that, it syncs with each commit, and this once more.

use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Has the log's content on the disk.
type ToDisk = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The log of a database on disk.
pub(crate) struct Log {
    sync: ToDisk,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many have committed and come to wait.
    arrived: u64,
    /// How many of them are on the disk.
    synced: u64,
    is_syncing: bool,
    has_failed: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Log")
    }
}

impl Log {
    pub(crate) fn new(sync: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { sync: Box::new(sync), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Blocks until everything that the caller has committed is on the disk.
    ///
    /// # Errors
    /// The disk refused, this time or before. The operating system may have forgotten data that it
    /// could not write, so a later sync that succeeds says nothing.
    pub(crate) fn wait(&self) -> io::Result<()> {
        self.wait_for(self.arrive())
    }

    /// A place in the queue for the disk, for the data that the caller has committed.
    pub(crate) fn arrive(&self) -> u64 {
        let mut state = self.state();
        state.arrived += 1;
        state.arrived
    }

    /// Blocks until the commit with this place is on the disk.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub(crate) fn wait_for(&self, place: u64) -> io::Result<()> {
        let mut state = self.state();
        loop {
            if state.has_failed {
                return Err(io::Error::other("the disk refused to take the log"));
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
                    tracing::error!(%error, "the log could not be written to the disk");
                    state.has_failed = true;
                }
            }
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
            Log::new(move || {
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
            Log::new(move || if refuses.load(Ordering::SeqCst) { Err(io::Error::other("full")) } else { Ok(()) })
        };
        assert!(log.wait().is_err());
        refuses.store(false, Ordering::SeqCst);
        assert!(log.wait().is_err());
    }
}
