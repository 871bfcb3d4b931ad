//! Queries of lists.

use futures::stream::{self, Stream};
use key_schema::{KeyRange, list_positions};
use search::TimeRange;
use table::{Item, Query, Result, Table};

/// Streams the items of a range page by page, so that a long list is never in memory as a whole.
/// Each page has at most 1 MB and takes one request and up to 256 read units, or 128 in a global
/// index, which is read eventually consistently.
pub fn pages(table: &Table, query: Query) -> impl Stream<Item = Result<Vec<Item>>> {
    stream::try_unfold(Some(query), async |query| {
        let Some(query) = query else { return Ok(None) };
        let page = table.query_page(&query).await?;
        Ok(Some((page.items, page.next.map(|next| query.starting_at(next)))))
    })
}

/// Narrows the range of a list that is sorted newest first to a period of start times.
#[must_use]
pub fn within_time(range: KeyRange, started: TimeRange) -> KeyRange {
    let range = match started.until {
        Some(until) => range.starting(&list_positions::time(until)),
        None => range,
    };
    match started.from {
        Some(from) => range.until_beginning(&list_positions::time(from)),
        None => range,
    }
}
