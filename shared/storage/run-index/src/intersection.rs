//! Intersects lists by reading them completely. Used for selective filters, and for orders that no
//! list provides.

use std::collections::HashMap;

use entities::RunLocation;
use entities::listing::CooperativeYield;
use mlflow_api::Result;
use search::{PlanCondition, RunList, TimeRange, tests_of_keys};
use table::Table;

use crate::cursor::{HEAD_ENTRIES, ListCursor};
use crate::lists::{ListEntry, RunLists};

/// Returns the runs that are in all of these lists and started within `started`, in no particular
/// order. Omits runs whose texts, as far as the keys contain them, fail one of the conditions in
/// `asks`. Lists that are sorted newest first are only read after the position `after`. Returns
/// `None` if the lists have more than `limit` entries. Costs 25 read units per 1,000 entries.
pub async fn in_all(
    table: &Table,
    lists: &RunLists,
    named: &[RunList],
    asks: &[PlanCondition<'_>],
    started: TimeRange,
    after: Option<&str>,
    limit: usize,
) -> Result<Option<Vec<ListEntry>>> {
    let mut in_all: Option<HashMap<RunLocation, ListEntry>> = None;
    let mut left = limit;
    let mut turns = CooperativeYield::default();
    for list in named {
        let range = lists.range(list);
        let range = match after.filter(|_| list.is_newest_first()) {
            Some(place) => range.after(place),
            None => range,
        };
        let tests = tests_of_keys(asks, list);
        let passes = |place: &str| match list {
            RunList::ByText { column, .. } if !tests.is_empty() => {
                RunLists::whole_text(column, place).is_none_or(|text| tests.iter().all(|test| test.passes(&text)))
            }
            _ => true,
        };
        let mut cursor = ListCursor::new(lists, range, HEAD_ENTRIES);
        let mut here = HashMap::new();
        loop {
            cursor.read_more(table).await?;
            let entries = cursor.take_buffer();
            let read = entries.len();
            for entry in entries {
                turns.keep().await;
                let may_pass = started.contains(entry.started) && passes(&entry.place);
                if may_pass && in_all.as_ref().is_none_or(|all| all.contains_key(&entry.at)) {
                    here.insert(entry.at.clone(), entry);
                }
            }
            if cursor.is_done() {
                left = left.saturating_sub(read);
                break;
            }
            if read >= left {
                return Ok(None);
            }
            left -= read;
            cursor.limit_page(left);
        }
        in_all = Some(here);
    }
    Ok(Some(in_all.unwrap_or_default().into_values().collect()))
}
