//! How much a page reads.

use table::{ReadBytes, Table};

/// Bytes after which a page ends with the entities found so far. That is 4,096 read units for
/// items, and seconds for a client.
const MOST: usize = 32 << 20;
/// Bytes of entities that are read, and in memory, at a time.
const PORTION_BYTES: usize = 8 << 20;
/// Entities read first, while nobody knows how long they are: one request.
const FIRST_PORTION: usize = 100;

/// The reads of one page: how many there were, and how many entities to read next.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    bytes: ReadBytes,
    /// Where counting began.
    begin: usize,
    /// Entities read, and the bytes they had.
    entities: usize,
    of_entities: usize,
    /// Bytes read before the present portion.
    before: usize,
}

impl Reading {
    /// The table, with all that is read through it counted.
    #[must_use]
    pub fn of(&self, table: &Table) -> Table {
        table.counting(&self.bytes)
    }

    /// Leaves out what was read so far: lists that have to be read for every page of a search.
    pub fn begins_here(&mut self) {
        self.begin = self.bytes.total();
    }

    /// Whether the page has to end, if it has anything on it. One that has nothing on it goes on: a token without a page would be of
    /// no use to clients.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.bytes.total() - self.begin > MOST
    }

    /// How many of the wanted entities to read at once: as many as take 8 MB if they are like those before, full requests of 100
    /// where they are many.
    #[must_use]
    pub fn portion(&mut self, wanted: usize) -> usize {
        self.before = self.bytes.total();
        let most = match self.of_entities.checked_div(self.entities) {
            // The one that says whether there is another page is read at the same time.
            None if wanted == FIRST_PORTION + 1 => wanted,
            None => FIRST_PORTION,
            Some(mean) => match (PORTION_BYTES / mean.max(1)).max(1) {
                many @ 100.. => many / 100 * 100,
                few => few,
            },
        };
        wanted.min(most)
    }

    /// Says that the portion was read, so many entities.
    pub fn portion_was(&mut self, entities: usize) {
        self.entities += entities;
        self.of_entities += self.bytes.total().saturating_sub(self.before);
    }
}
