//! The kinds of trouble.

use super::refusal::{conflict, is_batch, refusals};
use crate::operations::writes;

/// The trouble that a call meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is throttled, and not executed.
    Throttled,
    /// There is no connection to send it on.
    Disconnected,
    /// It is executed, and its answer is lost: in turn the connection breaks and the server fails.
    AnswerLost,
    /// Another transaction has an item of it, and it is not executed. Only writes to single items and transactions are refused so;
    /// others pass.
    Conflict,
    /// It is a batch, and only the first half of it is executed; others pass.
    Halved,
    /// It is a write, which its caller has no right to, and it is not executed; others pass.
    Denied,
}

impl Trouble {
    /// Whether it changes anything of a call of this operation: others pass.
    #[must_use]
    pub fn is_met_by(self, operation: &str) -> bool {
        match self {
            Self::Conflict => conflict(operation).is_some(),
            Self::Halved => is_batch(operation),
            Self::Denied => writes(operation),
            Self::Throttled | Self::Disconnected | Self::AnswerLost => !refusals(operation).is_empty(),
        }
    }
}
