//! Reads that do not wait for the engine's lock.
//!
//! The engine runs one operation at a time, reads included. On disk, SQLite lets others read while
//! one writes. So reads get connections of their own, each an engine over the same file. They see
//! the data that was committed when they begin.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use dynoxide::Database;

use crate::Error;

/// Engines that only read. As many as may read at a time; two cores have no use for more.
const READERS: usize = 2;

pub(crate) struct Readers {
    location: String,
    databases: RwLock<Vec<Database>>,
    next: AtomicUsize,
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Readers")
    }
}

impl Readers {
    /// Opens the engines over a file that the writing one has open.
    pub(crate) fn open(location: &str) -> Result<Self, Error> {
        let databases = RwLock::new(open(location)?);
        Ok(Self { location: location.to_owned(), databases, next: AtomicUsize::new(0) })
    }

    /// Whether an operation may run at the same time as writes. It must have one answer from one
    /// place, or be possible in any order.
    pub(crate) fn run(operation: &str) -> bool {
        ["GetItem", "Query", "BatchGetItem", "GetRecords"].contains(&operation)
    }

    /// A reading engine, if the operation may run at the same time as writes.
    pub(crate) fn for_operation(&self, operation: &str) -> Option<Database> {
        if !Self::run(operation) {
            return None;
        }
        let databases = self.databases.read().unwrap_or_else(PoisonError::into_inner);
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        databases.get(turn % databases.len().max(1)).cloned()
    }

    /// Opens the readers again: an engine remembers what it knows of a table, and the tables have
    /// changed.
    pub(crate) fn renew(&self) -> Result<(), Error> {
        let renewed = open(&self.location)?;
        *self.databases.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }
}

fn open(location: &str) -> Result<Vec<Database>, Error> {
    Ok((0..READERS).map(|_| Database::new(location)).collect::<Result<_, _>>()?)
}
