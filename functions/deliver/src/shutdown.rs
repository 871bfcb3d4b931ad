//! Shutdown of a process that delivers events.

use std::sync::Arc;

use tokio::sync::watch;

/// The phase of a process's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// No shutdown has begun.
    Running,
    /// Invocations start no further attempts.
    Ending,
    /// Invocations abandon attempts in flight.
    Aborted,
}

/// A signal to all invocations of a process to end, and to release the leases on their queues.
/// Without it, the next process could not deliver from these queues until the leases have expired.
/// Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(Arc<watch::Sender<Phase>>);

impl Shutdown {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Running)))
    }

    /// Makes invocations end after the attempts in flight.
    pub(crate) fn begin(&self) {
        self.advance(Phase::Ending);
    }

    /// Makes invocations abandon the attempts in flight.
    pub(crate) fn abort(&self) {
        self.advance(Phase::Aborted);
    }

    fn advance(&self, to: Phase) {
        self.0.send_modify(|phase| *phase = to.max(*phase));
    }

    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow() >= Phase::Ending
    }

    /// Returns the output of a future, or `None` if the shutdown is aborted first.
    pub(crate) async fn unless_aborted<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut phase = self.0.subscribe();
        let aborted = phase.wait_for(|phase| *phase == Phase::Aborted);
        tokio::select! {
            biased;
            output = future => Some(output),
            // The wait only fails if the sender is dropped, and `self` owns the sender.
            _ = aborted => None,
        }
    }
}
