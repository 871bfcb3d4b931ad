//! Changes that depend on data that was read. They are planned, and sent on condition that nothing
//! has changed since. If another request was faster, they are planned again.

use clock::Moment;

use crate::{Failure, Item, Reason, Result, Retry, Table, Write};

/// The result of planning.
#[derive(Debug)]
pub enum Plan<T> {
    /// Send these writes together, and answer so once they are made.
    Write(Vec<Write>, T),
    /// Make this item together with these writes, as [`Table::create`] does.
    Create(Item, Vec<Write>, T),
    /// There is nothing to write; the answer.
    Done(T),
    /// The data was not read at one moment: plan again.
    Again,
}

/// Why an attempt was refused: a reason per write, in their order; none on the first attempt.
#[derive(Clone, Debug, Default)]
pub struct Refusal(pub Vec<Reason>);

impl Refusal {
    /// Whether the condition of this write was the one that did not hold.
    #[must_use]
    pub fn is_of(&self, write: usize) -> bool {
        matches!(self.0.get(write), Some(Reason::Refused(_)))
    }

    /// The item of this write as it is, if its condition did not hold and there is one: planning from it saves reading it.
    #[must_use]
    pub fn item(self, write: usize) -> Option<Item> {
        match self.0.into_iter().nth(write) {
            Some(Reason::Refused(item)) => item,
            _ => None,
        }
    }
}

/// Attempts at one change.
#[derive(Debug)]
pub struct Attempts {
    retry: Retry,
    what: &'static str,
    made: u32,
    begun: Moment,
}

impl Attempts {
    /// Waits before the next attempt; the first waits for nothing, nor does the second: mostly it is the last.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] once there were [`Retry::changes`] of them, or [`Retry::patience`] is over.
    pub async fn next(&mut self) -> Result<()> {
        if self.made >= self.retry.changes || self.begun.age() > self.retry.patience {
            return Err(Failure::Unavailable(format!("{} kept changing", self.what)));
        }
        self.retry.pause(self.made.saturating_sub(1)).await;
        self.made += 1;
        Ok(())
    }

    /// Begins a new count, as a part of the change was made.
    pub fn progressed(&mut self) {
        (self.made, self.begun) = (0, Moment::now());
    }
}

impl Table {
    /// Attempts at a change of `what` (such as "a model"), for changes of several parts; [`Table::change`] is enough for others.
    #[must_use]
    pub fn attempts(&self, what: &'static str) -> Attempts {
        Attempts { retry: self.retry, what, made: 0, begun: Moment::now() }
    }

    /// Changes `what` (such as "a model"): sends the writes of `plan` until no condition is
    /// refused, and returns its answer. `plan` is told why the previous attempt was refused. It has
    /// to read its data again each time.
    ///
    /// # Errors
    /// Those of `plan`, which end the attempts, of the writes but for refused conditions, and of
    /// [`Attempts::next`].
    pub async fn change<T, E, F>(
        &self,
        what: &'static str,
        mut plan: impl FnMut(Refusal) -> F,
    ) -> std::result::Result<T, E>
    where
        F: Future<Output = std::result::Result<Plan<T>, E>>,
        E: From<Failure>,
    {
        let mut attempts = self.attempts(what);
        let mut refusal = Refusal::default();
        loop {
            attempts.next().await?;
            let (outcome, answer) = match plan(std::mem::take(&mut refusal)).await? {
                Plan::Write(writes, answer) => (self.transact(&writes).await, answer),
                Plan::Create(item, others, answer) => (self.create(item, others).await, answer),
                Plan::Done(answer) => return Ok(answer),
                Plan::Again => continue,
            };
            match outcome {
                Ok(()) => return Ok(answer),
                Err(Failure::Cancelled(reasons)) => refusal = Refusal(reasons),
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
