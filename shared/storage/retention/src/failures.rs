//! Collects failures, so that a removal continues if a single entity cannot be deleted.

use std::fmt::Display;

use mlflow_api::{Error, Result};

/// Number of failures after which a removal gives up, because the table itself may be the cause.
const MAX_FAILURES: usize = 10;

/// The failures of a removal so far.
#[derive(Debug, Default)]
pub(crate) struct RemovalFailures {
    first: Option<Error>,
    count: usize,
}

impl RemovalFailures {
    /// Records and logs the failure in `outcome`, if there is one. `what` names the entity that was
    /// being deleted.
    ///
    /// # Errors
    /// Returns the first failure once there are too many.
    pub(crate) fn note(&mut self, what: impl Display, outcome: Result<()>) -> Result<()> {
        let Err(error) = outcome else { return Ok(()) };
        tracing::warn!(%error, cause = error.cause, "{what} could not be deleted or archived, and will be retried by the next removal");
        let first = self.first.get_or_insert(error);
        self.count += 1;
        if self.count < MAX_FAILURES { Ok(()) } else { Err(first.clone()) }
    }

    /// Returns the outcome of the whole removal.
    ///
    /// # Errors
    /// Returns the first failure, if there was one.
    pub(crate) fn finish(self) -> Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_what_a_removal_ends_with() {
        let mut failures = RemovalFailures::default();
        failures.note("one", Ok(())).unwrap();
        failures.note("two", Err(Error::invalid("of two"))).unwrap();
        failures.note("three", Err(Error::invalid("of three"))).unwrap();
        assert_eq!(failures.finish().unwrap_err().message, "of two");
        RemovalFailures::default().finish().unwrap();
    }

    #[test]
    fn a_removal_gives_up_where_everything_fails() {
        let mut failures = RemovalFailures::default();
        let noted = (0..MAX_FAILURES).map(|_| failures.note("it", Err(Error::invalid("no")))).collect::<Vec<_>>();
        assert_eq!(noted.iter().position(Result::is_err), Some(MAX_FAILURES - 1));
    }
}
