//! Sources of candidates.

use std::collections::VecDeque;

use mlflow_api::Result;
use table::Table;

use crate::candidate::Candidate;
use crate::join::ListJoin;
use crate::list_walker::ListWalker;

/// A source of the candidates of one partition.
pub enum CandidateSource {
    /// Runs that are in all of several lists, newest first.
    Joined(ListJoin),
    /// Runs in the order of a list.
    Walked(Box<ListWalker>),
    /// Runs that have already been collected.
    Gathered(VecDeque<Candidate>),
}

impl CandidateSource {
    /// Returns the next candidate, or `None` at the end. Sends the requests of the join or the walk
    /// that it reads from.
    pub async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        match self {
            Self::Joined(join) => join.next(table).await,
            Self::Walked(walker) => walker.next(table).await,
            Self::Gathered(candidates) => Ok(candidates.pop_front()),
        }
    }
}
