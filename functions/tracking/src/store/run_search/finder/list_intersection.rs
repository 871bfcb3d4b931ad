//! Narrows down the candidates of a search by reading more of the plan's lists.

use std::collections::HashMap;

use entities::RunLocation;
use mlflow_api::Result;

use crate::store::run_search::planned_search::PlannedSearch;

/// The intersection of those lists of a plan that are not the source of candidates. It narrows down
/// the candidates.
#[derive(Default)]
pub(super) struct ListIntersection {
    /// Limit, in entries, that applied when the further lists were last read.
    limit: usize,
    /// The runs that are in all further lists, with their start times in ms. `None` if the lists
    /// have not been read, or have more entries than the limit.
    runs: Option<HashMap<RunLocation, i64>>,
}

impl ListIntersection {
    /// Reads the further lists of a plan, unless they have more entries than the limit. After an
    /// attempt that exceeded its limit, the lists are read again only if the new limit is more than
    /// four times as high. Returns the runs only if this call has read them.
    pub(super) async fn read(
        &mut self,
        planned: &PlannedSearch<'_>,
        limit: usize,
    ) -> Result<Option<&HashMap<RunLocation, i64>>> {
        if self.runs.is_some() || limit <= self.limit * 4 {
            return Ok(None);
        }
        self.limit = limit;
        let experiments = planned.listed_experiments();
        let runs = planned.runs_in_all(&experiments, &planned.plan.narrow_by, limit).await?;
        self.runs = runs.map(|runs| runs.into_iter().collect());
        Ok(self.runs.as_ref())
    }

    /// Checks whether a run may pass, which is the case if the intersection contains the run or has
    /// not been determined.
    pub(super) fn may_contain(&self, at: &RunLocation) -> bool {
        self.runs.as_ref().is_none_or(|runs| runs.contains_key(at))
    }
}
