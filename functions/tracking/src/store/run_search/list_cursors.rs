//! Cursors over lists, positioned at the start of the requested page.

use run_index::{ListCursor, ListJoin, RunLists};
use search::RunList;

use super::request::RunSearch;

/// Returns a cursor over a list. If the list and the search are both ordered newest first, the
/// cursor starts at the requested page.
pub(super) fn page_cursor(lists: &RunLists, list: &RunList, search: &RunSearch, first_page: usize) -> ListCursor {
    let range = lists.range(list);
    let range = match search.start_newest_first() {
        Some(start) if list.is_newest_first() => range.after(&start),
        _ => range,
    };
    ListCursor::new(lists, range, first_page)
}

/// Returns the runs of an experiment's lists in order of time, starting at the requested page.
pub(super) fn join_by_time(lists: &RunLists, search: &RunSearch, experiments: usize) -> ListJoin {
    let cursor = page_cursor(lists, &RunList::All, search, first_page_by_time(search, experiments));
    ListJoin::new(vec![cursor], search.is_newest_first(), search.runs_to_find())
}

/// Returns the number of runs to read from each experiment in the first request, for a search in
/// order of time. With a single experiment, this is one more than the page size, to determine
/// whether there is another page.
pub(super) fn first_page_by_time(search: &RunSearch, experiments: usize) -> usize {
    let wanted = search.runs_to_find();
    if experiments > 1 { (wanted / experiments).saturating_mul(2).clamp(8, wanted.max(8)) } else { wanted }
}
