//! Deleting ranges of items.

use key_schema::KeyRange;

use crate::{Item, Query, Result, Table};

impl Table {
    /// Deletes all items of a range, readable or not, page after page; it may be stopped and be
    /// repeated. Two requests per page of 25 items or more, and one more per further 25. Each item
    /// takes a write unit per KB, at least one, and the units of reading it.
    ///
    /// # Errors
    /// Any [`Failure`](crate::Failure). Some items may be gone then.
    pub async fn delete_range(&self, range: KeyRange) -> Result<()> {
        let mut query = Query::of(range).for_removal();
        loop {
            let page = self.query_page(&query).await?;
            let keys: Vec<_> = page.items.iter().filter_map(Item::key).collect();
            self.write_many(Vec::new(), &keys).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }
}
