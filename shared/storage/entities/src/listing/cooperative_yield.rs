//! Cooperative scheduling of long computations.

use std::time::{Duration, Instant};

/// Duration of uninterrupted work before other tasks get a turn.
const MAX_UNINTERRUPTED_WORK: Duration = Duration::from_millis(5);

/// A timer that lets a long computation yield to other requests. Without it, a search that checks
/// thousands of entities against long patterns would keep a worker thread from serving other
/// requests.
#[derive(Debug)]
pub struct CooperativeYield {
    since: Instant,
}

impl Default for CooperativeYield {
    fn default() -> Self {
        Self { since: Instant::now() }
    }
}

impl CooperativeYield {
    /// Yields to the runtime if the computation has run long enough since it last yielded.
    /// Otherwise, the cost is negligible. Call it between small pieces of work.
    pub async fn keep(&mut self) {
        if self.since.elapsed() >= MAX_UNINTERRUPTED_WORK {
            tokio::task::yield_now().await;
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The test has a single thread, so the other task only runs when this one yields.
    #[tokio::test]
    async fn others_have_a_turn_after_a_long_one_and_not_before() {
        let turns = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&turns);
        tokio::spawn(async move {
            for _ in 0..10 {
                others.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let long_ago = Instant::now().checked_sub(MAX_UNINTERRUPTED_WORK).unwrap();
        let mut pace = CooperativeYield { since: long_ago };
        pace.keep().await;
        assert_eq!(turns.load(Ordering::Relaxed), 1);
        // The computation may continue for another hour before it yields. The test is not suspended
        // for that long, so the result does not depend on the load of the machine.
        let mut pace = CooperativeYield { since: Instant::now() + Duration::from_hours(1) };
        pace.keep().await;
        assert_eq!(turns.load(Ordering::Relaxed), 1);
    }
}
