//! Narrows down candidates by further lists.

use std::collections::HashMap;

use entities::RunLocation;
use mlflow_api::Result;

use crate::store::run_search::planned_search::PlannedSearch;

/// The intersection of further lists, which narrows down the candidates.
#[derive(Default)]
pub(super) struct ListIntersection {
    /// Maximum number of entries to read from the further lists.
    limit: usize,
    /// The runs that are in all of these lists, with their start times in ms. `None` if the lists
    /// have not been read, or had more entries than the limit.
    runs: Option<HashMap<RunLocation, i64>>,
}

impl ListIntersection {
    /// Reads the further lists of a plan, if they have no more entries than the limit. If they
    /// exceeded a limit before, they are read again only for a limit more than four times as high.
    /// Returns the runs if they have just been read.
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

    /// Checks whether a run may pass: it is in the intersection, or there is none.
    pub(super) fn may_contain(&self, at: &RunLocation) -> bool {
        self.runs.as_ref().is_none_or(|runs| runs.contains_key(at))
    }
}
