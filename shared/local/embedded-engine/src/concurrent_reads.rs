//! Reads that do not wait for the engine's lock.
//!
//! The engine runs one operation at a time, including reads. SQLite, however, allows reads of a
//! file during a write. Reads therefore use separate connections, each with an engine of its own
//! over the same file. They see the data that was committed when they begin.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use dynoxide::Database;

use crate::EngineError;

/// Number of engines for reads, which limits the number of concurrent reads. A machine with two
/// cores gains nothing from more.
const MAX_READERS: usize = 2;

pub(crate) struct ConcurrentReaders {
    location: String,
    databases: RwLock<Vec<Database>>,
    next: AtomicUsize,
}

impl fmt::Debug for ConcurrentReaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Readers")
    }
}

impl ConcurrentReaders {
    /// Opens the engines over a file that the writing engine has open.
    pub(crate) fn open(location: &str) -> Result<Self, EngineError> {
        let databases = RwLock::new(open(location)?);
        Ok(Self { location: location.to_owned(), databases, next: AtomicUsize::new(0) })
    }

    /// Checks whether an operation may run concurrently with writes. Such an operation must be a
    /// single statement, or consist of reads whose order does not matter.
    pub(crate) fn run(operation: &str) -> bool {
        ["GetItem", "Query", "BatchGetItem", "GetRecords"].contains(&operation)
    }

    /// Returns an engine for reads if the operation may run concurrently with writes.
    pub(crate) fn for_operation(&self, operation: &str) -> Option<Database> {
        if !Self::run(operation) {
            return None;
        }
        let databases = self.databases.read().unwrap_or_else(PoisonError::into_inner);
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        databases.get(turn % databases.len().max(1)).cloned()
    }

    /// Reopens the engines after the tables have changed, because an engine caches the metadata of
    /// tables.
    pub(crate) fn renew(&self) -> Result<(), EngineError> {
        let renewed = open(&self.location)?;
        *self.databases.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }
}

fn open(location: &str) -> Result<Vec<Database>, EngineError> {
    Ok((0..MAX_READERS).map(|_| Database::new(location)).collect::<Result<_, _>>()?)
}
