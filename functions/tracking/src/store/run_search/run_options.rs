//! Step 2: determines which lists of the index a search can use.

use mlflow_api::Result;
use mlflow_api::tracking::ViewType;
use search::{CommonFields, PlanCondition, PlanSortBy, RunList, RunOptions};

use super::request::RunSearch;
use super::searched_experiment::SearchedExperiment;
use crate::store::Store;

/// Number of experiments above which a search reads fewer lists. Each list takes one request per
/// experiment, even for experiments in which the list is empty.
const MANY_EXPERIMENTS: usize = 100;
/// Maximum number of lists to read in addition to the list in the search's order, if a search
/// covers many experiments.
const MAX_LISTS_OF_MANY: usize = 1;

impl Store {
    /// Returns the options that the index offers a search. Takes one request for the setting of
    /// indexed fields if the search filters or sorts by text and the setting is not cached.
    pub(super) async fn run_options(
        &self,
        experiments: &[SearchedExperiment],
        search: &RunSearch,
    ) -> Result<RunOptions> {
        let (asks, sorting) = (search.filter.asks(), search.order.sorting());
        // Times and numbers are always indexed, regardless of the setting of indexed fields.
        let uses_text = asks.iter().any(|ask| matches!(ask, PlanCondition::Text { .. }))
            || matches!(sorting.by, PlanSortBy::Text(_));
        let ids = experiments.iter().map(|experiment| &experiment.id);
        let fields = if uses_text { self.indexed_fields.of(ids).await? } else { CommonFields::default() };
        let mut options = RunOptions::of(&asks, &sorting, &fields);
        if search.view == ViewType::DeletedOnly {
            // The indexer lists only active runs, so its lists are of no use for a view that shows
            // deleted runs.
            options = without_index(options);
        }
        if experiments.len() > MANY_EXPERIMENTS {
            options.lists.truncate(MAX_LISTS_OF_MANY);
        }
        Ok(options)
    }
}

/// Removes the lists that the indexer maintains from the options of a search.
fn without_index(mut options: RunOptions) -> RunOptions {
    options.lists.clear();
    options.walk = options.walk.filter(|walk| walk.segments == [RunList::All]);
    options
}

/// Checks whether a plan may read lists that the indexer maintains.
pub(super) fn may_read_index(options: &RunOptions) -> bool {
    let in_order = options.walk.iter().flat_map(|walk| &walk.segments);
    options.lists.iter().chain(in_order).any(RunList::is_indexed)
}
