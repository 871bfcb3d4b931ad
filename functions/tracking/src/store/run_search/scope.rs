//! An experiment to search in, and which of its runs the index says nothing of.

use std::collections::HashSet;

use entities::{ExperimentState, RunLocation, read_all};
use futures::future::try_join;
use key_schema::index::RunsChanged;
use key_schema::{KeyRange, place, ranges};
use mlflow_api::tracking::{LifecycleStage, ViewType};
use mlflow_api::{ExperimentId, Result};
use table::{Query, Table};

/// Items with changes that are read at most. An experiment with more of them is read as if it had no index.
const MOST_CHANGED: usize = 1_000;

/// An experiment to search in.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) id: ExperimentId,
    pub(super) state: ExperimentState,
}

impl Scope {
    /// Whether the index of stages says exactly which runs a view shows. Once the experiment has been deleted, its runs' own
    /// stages may be overruled, and each candidate's items decide.
    pub(super) fn index_is_exact(&self, view: ViewType) -> bool {
        view == ViewType::All || self.state.version == 0
    }

    /// Which of the runs that were deleted on their own, and so are in no list, a view may show.
    fn deleted_keys(&self, view: ViewType) -> Option<KeyRange> {
        match (view, self.state.stage) {
            (ViewType::ActiveOnly, LifecycleStage::Active) if self.state.version == 0 => None,
            // Overruled since: the experiment was deleted and restored.
            (ViewType::ActiveOnly, LifecycleStage::Active) => {
                Some(ranges::runs_deleted_before(&self.id, self.state.version))
            }
            _ => Some(ranges::runs_deleted(&self.id)),
        }
    }

    /// The runs that were changed since the indexer had them; `None` if they are too many. One request.
    pub(super) async fn changed(&self, table: &Table) -> Result<Option<HashSet<RunLocation>>> {
        self.runs(table, RunsChanged::all(&self.id).into()).await
    }

    /// The runs on which the index says nothing, or nothing that counts; `None` if they are too many. One request, two if runs
    /// that were deleted on their own may be shown.
    pub(super) async fn unlisted(&self, table: &Table, view: ViewType) -> Result<Option<Unlisted>> {
        let deleted = async {
            match self.deleted_keys(view) {
                Some(range) => self.runs(table, range).await,
                None => Ok(Some(HashSet::new())),
            }
        };
        let (changed, deleted) = try_join(self.changed(table), deleted).await?;
        Ok(changed.zip(deleted).map(|(changed, deleted)| Unlisted { changed, deleted }))
    }

    async fn runs(&self, table: &Table, range: KeyRange) -> Result<Option<HashSet<RunLocation>>> {
        let page = table.query_page(&Query::of(range.clone()).limit(MOST_CHANGED)).await?;
        let is_all = page.next.is_none();
        let runs = read_all(&page.items, "a place in a list of runs", |item| {
            let run = place::run(item.sort_key(&range)?)?;
            Some(RunLocation { experiment: self.id, run })
        })?;
        Ok(is_all.then(|| runs.into_iter().collect()))
    }
}

/// Runs that a search looks at whatever its lists say.
#[derive(Debug, Default)]
pub(super) struct Unlisted {
    /// Changed since they were indexed.
    pub(super) changed: HashSet<RunLocation>,
    /// Deleted on their own.
    pub(super) deleted: HashSet<RunLocation>,
}
