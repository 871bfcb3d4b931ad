//! Deletion of ranges of items.

use key_schema::KeyRange;

use crate::{Item, Query, Result, Table};

impl Table {
    /// Deletes all items of a range, including unreadable ones, page by page. It can be interrupted
    /// and repeated. For each page, sends one request to read it, and one per 25 items to delete
    /// them. Each deleted item costs a write unit per KB, at least one, in addition to the read
    /// units.
    ///
    /// # Errors
    /// Any [`Failure`](crate::Failure). Some items may have been deleted by then.
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
