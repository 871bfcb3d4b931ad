//! Optimistic read-modify-write: a change is planned from data that was read, and written on
//! condition that the data is unchanged. If a concurrent request has changed it, the change is
//! planned again.

use runtime::clock::Moment;

use crate::{Failure, Item, Result, RetryPolicy, Table, Write, WriteRefusal};

/// The outcome of planning a change.
#[derive(Debug)]
pub enum ChangePlan<T> {
    /// Send these writes in one transaction, then return this result.
    Write(Vec<Write>, T),
    /// Create this item together with these writes, as [`Table::create`] does, then return this
    /// result.
    Create(Item, Vec<Write>, T),
    /// Nothing to write. Holds the result.
    Done(T),
    /// The data that was read is inconsistent, because it changed between reads. The change has to
    /// be planned again.
    Again,
}

/// The reasons why the writes of the previous attempt were refused, in the order of the writes.
/// Empty on the first attempt.
#[derive(Clone, Debug, Default)]
pub struct RefusedWrites(pub Vec<WriteRefusal>);

impl RefusedWrites {
    /// Returns whether the write at this position was refused because its condition did not hold.
    #[must_use]
    pub fn is_of(&self, write: usize) -> bool {
        matches!(self.0.get(write), Some(WriteRefusal::Refused(_)))
    }

    /// Returns the current item at the key of the write at this position. Returns `None` unless the
    /// write was refused because its condition did not hold, and the item exists. Planning the next
    /// attempt from this item saves a read.
    #[must_use]
    pub fn item(self, write: usize) -> Option<Item> {
        match self.0.into_iter().nth(write) {
            Some(WriteRefusal::Refused(item)) => item,
            _ => None,
        }
    }
}

/// A counter of the attempts at one change, with its deadline.
#[derive(Debug)]
pub struct ChangeAttempts {
    retry: RetryPolicy,
    what: &'static str,
    made: u32,
    begun: Moment,
}

impl ChangeAttempts {
    /// Waits before the next attempt. The first attempt starts without a pause. So does the second,
    /// because it usually succeeds.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] after [`RetryPolicy::changes`] attempts, or once
    /// [`RetryPolicy::patience`] has elapsed.
    pub async fn next(&mut self) -> Result<()> {
        if self.made >= self.retry.changes || self.begun.age() > self.retry.patience {
            return Err(Failure::Unavailable(format!("{} kept changing", self.what)));
        }
        self.retry.pause(self.made.saturating_sub(1)).await;
        self.made += 1;
        Ok(())
    }

    /// Resets the counter and the deadline, after a part of the change has been made.
    pub fn progressed(&mut self) {
        (self.made, self.begun) = (0, Moment::now());
    }
}

impl Table {
    /// Returns a counter of attempts at a change of `what` (such as "a model"), for changes that
    /// are made in several parts. Other changes use [`Table::change`].
    #[must_use]
    pub fn attempts(&self, what: &'static str) -> ChangeAttempts {
        ChangeAttempts { retry: self.retry, what, made: 0, begun: Moment::now() }
    }

    /// Changes `what` (such as "a model"): sends the writes of `plan` until all their conditions
    /// hold, and returns the result of the plan. `plan` gets the reasons why the previous attempt
    /// was refused, and has to read its data again each time.
    ///
    /// # Errors
    /// Errors of `plan`, which end the attempts; errors of the writes, except for refused
    /// conditions; and those of [`ChangeAttempts::next`].
    pub async fn change<T, E, F>(
        &self,
        what: &'static str,
        mut plan: impl FnMut(RefusedWrites) -> F,
    ) -> std::result::Result<T, E>
    where
        F: Future<Output = std::result::Result<ChangePlan<T>, E>>,
        E: From<Failure>,
    {
        let mut attempts = self.attempts(what);
        let mut refusal = RefusedWrites::default();
        loop {
            attempts.next().await?;
            let (outcome, answer) = match plan(std::mem::take(&mut refusal)).await? {
                ChangePlan::Write(writes, answer) => (self.transact(&writes).await, answer),
                ChangePlan::Create(item, others, answer) => (self.create(item, others).await, answer),
                ChangePlan::Done(answer) => return Ok(answer),
                ChangePlan::Again => continue,
            };
            match outcome {
                Ok(()) => return Ok(answer),
                Err(Failure::Cancelled(reasons)) => refusal = RefusedWrites(reasons),
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
