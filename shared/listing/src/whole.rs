//! Lists that are read whole: for what is rare, and for orders in which no list is.

use std::collections::HashMap;

use mlflow_api::Result;
use search::{List, TimeRange};
use table::Table;

use crate::cursor::{Cursor, HEAD};
use crate::lists::{Entry, Lists};

/// The entities that stand in all of these lists and began then, in any order; `None` if the lists have more entries than the
/// limit. Of lists that are newest first, only what follows a place is read. 25 read units per 1,000 entries.
pub async fn in_all<L: Lists>(
    table: &Table,
    lists: &L,
    named: &[List<L::Columns>],
    started: TimeRange,
    after: Option<&str>,
    limit: usize,
) -> Result<Option<Vec<Entry<L::At>>>> {
    let mut in_all: Option<HashMap<L::At, Entry<L::At>>> = None;
    let mut left = limit;
    for list in named {
        let range = lists.range(list);
        let range = match after.filter(|_| list.is_newest_first()) {
            Some(place) => range.after(place),
            None => range,
        };
        let mut cursor = Cursor::new(lists, range, HEAD);
        cursor.read_more(table).await?;
        while !cursor.is_done() {
            if cursor.buffer().len() >= left {
                return Ok(None);
            }
            cursor.limit_page(left - cursor.buffer().len());
            cursor.read_more(table).await?;
        }
        left = left.saturating_sub(cursor.buffer().len());
        let mut here = HashMap::with_capacity(cursor.buffer().len());
        for entry in cursor.into_entries() {
            let may_pass = started.contains(entry.started);
            if may_pass && in_all.as_ref().is_none_or(|all| all.contains_key(&entry.at)) {
                here.insert(entry.at.clone(), entry);
            }
        }
        in_all = Some(here);
    }
    Ok(Some(in_all.unwrap_or_default().into_values().collect()))
}
