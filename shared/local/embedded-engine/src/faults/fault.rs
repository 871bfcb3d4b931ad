//! The kinds of faults that can be injected.

use super::error_responses::{conflict, is_batch, refusals};
use crate::operations::writes;

/// A kind of fault that affects a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call is throttled and not executed.
    Throttled,
    /// The call is not executed, because no connection can be made.
    Disconnected,
    /// The call is executed, but its response is lost: alternately, the connection breaks or the
    /// server fails.
    AnswerLost,
    /// The call is not executed, because another transaction is in progress on one of its items.
    /// Affects only writes to single items and transactions; other calls pass.
    Conflict,
    /// Only the first half of a batch is executed. Other calls pass.
    Halved,
    /// The call is a write and is not executed, because the caller lacks permission. Reads pass.
    Denied,
    /// The call is not executed, because the table's encryption key cannot be used.
    KeyDisabled,
}

impl InjectedFault {
    /// Checks whether a call of this operation is affected. Other calls are executed normally.
    #[must_use]
    pub fn is_met_by(self, operation: &str) -> bool {
        match self {
            Self::Conflict => conflict(operation).is_some(),
            Self::Halved => is_batch(operation),
            Self::Denied => writes(operation),
            Self::Throttled | Self::Disconnected | Self::AnswerLost | Self::KeyDisabled => {
                !refusals(operation).is_empty()
            }
        }
    }
}
