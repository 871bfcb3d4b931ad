//! A count of entities, with the ids of some of them.

/// Maximum number of ids that are listed.
const MAX_EXAMPLES: usize = 10;

/// A count of entities, with the ids of the first ones.
#[derive(Debug, Default)]
pub(super) struct Examples {
    count: u64,
    ids: Vec<String>,
}

impl Examples {
    /// Returns a count with the ids of the first entities.
    pub(super) fn of(count: u64, ids: Vec<String>) -> Self {
        let ids = ids.into_iter().take(MAX_EXAMPLES).collect();
        Self { count, ids }
    }

    /// Adds the entities of another count.
    pub(super) fn merge(&mut self, other: &Self) {
        let ids: Vec<_> = self.ids.iter().chain(&other.ids).cloned().collect();
        *self = Self::of(self.count + other.count, ids);
    }

    /// Counts an entity.
    pub(super) fn add(&mut self, id: &str) {
        self.count += 1;
        if self.ids.len() < MAX_EXAMPLES {
            self.ids.push(id.to_owned());
        }
    }

    /// Returns the number of entities.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the ids, with an ellipsis if there are more.
    pub(super) fn list(&self) -> String {
        let more = if self.count > self.ids.len() as u64 { ", …" } else { "" };
        format!("{}{more}", self.ids.join(", "))
    }
}
