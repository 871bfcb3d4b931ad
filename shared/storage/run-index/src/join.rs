//! Intersects lists that are sorted newest first, page by page.

use futures::future::try_join_all;
use key_schema::list_positions;
use mlflow_api::Result;
use table::Table;

use crate::candidate::Candidate;
use crate::cursor::ListCursor;

/// The runs that are in all of several lists, each sorted newest first.
pub struct ListJoin {
    cursors: Vec<ListCursor>,
    /// Whether newest first is the complete order of the search. Otherwise it is only the first
    /// term.
    is_exact: bool,
    /// Estimated number of runs that will be taken.
    wanted: usize,
    taken: usize,
}

impl ListJoin {
    /// Creates a join of lists, which may have been partly read already. `wanted` is the estimated
    /// number of runs that will be taken.
    #[must_use]
    pub fn new(cursors: Vec<ListCursor>, is_exact: bool, wanted: usize) -> Self {
        Self { cursors, is_exact, wanted, taken: 0 }
    }

    /// Returns the next run that is in all lists. Each list skips ahead to the position of the list
    /// that is furthest ahead. Sends one request for each list whose page is used up.
    pub(crate) async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        loop {
            self.foresee();
            try_join_all(self.cursors.iter_mut().map(|cursor| async move { cursor.peek(table).await.map(|_| ()) }))
                .await?;
            let fronts: Vec<_> = self.cursors.iter().map(|cursor| cursor.buffer().front()).collect();
            if fronts.iter().any(Option::is_none) {
                return Ok(None);
            }
            let places = || fronts.iter().copied().flatten().map(|entry| entry.place.as_str());
            let Some(farthest) = places().max().map(str::to_owned) else { return Ok(None) };
            if places().all(|place| place == farthest) {
                let mut taken = None;
                for cursor in &mut self.cursors {
                    taken = cursor.next(table).await?;
                }
                self.taken += 1;
                // If the order has further terms, all runs with the same start time form a group.
                let group = if self.is_exact { "" } else { list_positions::value(&farthest) };
                return Ok(taken.map(|entry| Candidate::new(entry, 0, group.to_owned(), self.is_exact)));
            }
            self.cursors.iter_mut().for_each(|cursor| cursor.skip_to(&farthest));
        }
    }

    /// Estimates how much further each list will be read, assuming that each further run takes as
    /// many entries as the average so far. The estimate is unreliable while few runs have been
    /// taken. It is then reduced, at the risk of needing another page.
    fn foresee(&mut self) {
        if self.cursors.len() > 1 && (1..self.wanted).contains(&self.taken) {
            let margin = if self.taken * 3 < self.wanted { 0.7 } else { 1.03 };
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let times = margin * (self.wanted - self.taken) as f64 / self.taken as f64;
            self.cursors.iter_mut().for_each(|cursor| cursor.foresee(times));
        }
    }
}
