//! Limits on how much a page reads.

use table::{ReadBytes, Table};

/// Number of bytes after which a page ends with the entities found so far. Reading them
/// consistently takes 8,192 read units, and seconds of a client's time.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of bytes of entities that are read, and kept in memory, at a time.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// Number of entities in the first portion, when the size of entities is still unknown. Read with
/// one request.
const FIRST_BATCH_SIZE: usize = 100;

/// The reads of one page: how much has been read, and how many entities to read next.
#[derive(Clone, Debug, Default)]
pub struct ReadBudget {
    bytes: ReadBytes,
    /// Number of bytes that had been read when counting began. They do not count towards the
    /// budget.
    begin: usize,
    /// Number of entities read.
    entities: usize,
    /// Total size, in bytes, of the entities that were read.
    of_entities: usize,
    /// Bytes read before the current portion.
    before: usize,
}

impl ReadBudget {
    /// Returns a handle of the table that counts everything read through it.
    #[must_use]
    pub fn of(&self, table: &Table) -> Table {
        table.counting(&self.bytes)
    }

    /// Excludes everything read so far, such as lists that have to be read for every page of a
    /// search.
    pub fn begins_here(&mut self) {
        self.begin = self.bytes.total();
    }

    /// Checks whether the read budget is used up, so that the page has to end. If the page has no
    /// entities yet, reading must continue nevertheless, because clients cannot use a token of an
    /// empty page.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.bytes.total() - self.begin > MAX_BYTES
    }

    /// Returns how many of the wanted entities to read at once. Together, they have up to 8 MB,
    /// judging by the average size of the entities read so far. The number is rounded down to full
    /// requests of 100.
    #[must_use]
    pub fn portion(&mut self, wanted: usize) -> usize {
        self.before = self.bytes.total();
        let most = match self.of_entities.checked_div(self.entities) {
            // The first portion and the entity that shows whether there is another page are read in
            // one request.
            None if wanted == FIRST_BATCH_SIZE + 1 => wanted,
            None => FIRST_BATCH_SIZE,
            Some(mean) => match (MAX_BATCH_BYTES / mean.max(1)).max(1) {
                many @ 100.. => many / 100 * 100,
                few => few,
            },
        };
        wanted.min(most)
    }

    /// Records that the portion was read, and how many entities it had.
    pub fn portion_was(&mut self, entities: usize) {
        self.entities += entities;
        self.of_entities += self.bytes.total().saturating_sub(self.before);
    }
}
