//! The access path `Walk`: reads lists that have the order of the search, one after another.

use mlflow_api::Result;
use run_index::{CandidateSource, ListWalker};
use search::RunWalk;

use crate::store::run_search::finder::RunFinder;
use crate::store::run_search::list_cursors::first_page_by_time;
use crate::store::run_search::planned_search::SourceLists;

impl RunFinder<'_> {
    /// Reads runs in the order of the walk until the page is full.
    pub(super) async fn walk(&mut self, walk: &RunWalk) -> Result<()> {
        let planned = self.planned;
        let (search, sorting) = (planned.search, planned.search.order.sorting());
        let is_by_time = planned.plan.reads_by_time();
        let sources = planned.source_lists().map(|(_, SourceLists::Copies(lists) | SourceLists::Keys(lists))| {
            let mut walker = ListWalker::new(lists, walk.clone(), &sorting, search.after.as_ref());
            if is_by_time {
                walker = walker.with_first_page(first_page_by_time(search, planned.experiments.len()));
            }
            CandidateSource::Walked(Box::new(walker))
        });
        let sources = sources.collect();
        self.fill_page(sources).await
    }
}
