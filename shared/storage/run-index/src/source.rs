//! Where candidates come from.

use std::collections::VecDeque;

use mlflow_api::Result;
use table::Table;

use crate::candidate::Candidate;
use crate::join::Join;
use crate::walker::Walker;

/// The candidates of one partition.
pub enum Source {
    /// Runs that are in all of some lists, newest first.
    Joined(Join),
    /// Runs in the order of a list.
    Walked(Box<Walker>),
    /// Runs that are known already.
    Gathered(VecDeque<Candidate>),
}

impl Source {
    /// The next candidate; `None` at the end. It costs as much as in the join or the walk.
    pub async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        match self {
            Self::Joined(join) => join.next(table).await,
            Self::Walked(walker) => walker.next(table).await,
            Self::Gathered(candidates) => Ok(candidates.pop_front()),
        }
    }
}
