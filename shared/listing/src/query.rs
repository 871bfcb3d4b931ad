//! The query of a list.

use futures::stream::{self, Stream};
use table::{Item, Query, Result, Table};

/// The items of a range, page by page, each of at most 1 MB, so that a long list is never in memory
/// as a whole. A request and up to 128 read units per page, consistently read.
pub fn pages(table: &Table, query: Query) -> impl Stream<Item = Result<Vec<Item>>> {
    stream::try_unfold(Some(query), async |query| {
        let Some(query) = query else { return Ok(None) };
        let page = table.query_page(&query).await?;
        Ok(Some((page.items, page.next.map(|next| query.starting_at(next)))))
    })
}
