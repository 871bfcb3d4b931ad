//! What goes wrong.

/// What becomes of a call that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is throttled, and not executed.
    Throttled,
    /// There is no connection to send it on.
    Disconnected,
    /// It is executed, and its answer is lost: in turn the connection breaks and the server fails.
    AnswerLost,
}
