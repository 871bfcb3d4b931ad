//! Long work between requests.

use std::time::{Duration, Instant};

/// Work goes on for so long before others have their turn.
const TURN: Duration = Duration::from_millis(5);

/// Lets other requests have their turn while one computes for long: thousands of entities may have to be checked against long
/// patterns, and a worker that never waits serves nobody else.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { since: Instant::now() }
    }
}

impl Pace {
    /// To be called between small pieces of work. Yields to the runtime where a turn is over, and is next to nothing otherwise.
    pub async fn keep(&mut self) {
        if self.since.elapsed() >= TURN {
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

    /// On one thread: others have a turn only where one is given.
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
        let long_ago = Instant::now().checked_sub(TURN).unwrap();
        let mut pace = Pace { since: long_ago };
        pace.keep().await;
        assert_eq!(turns.load(Ordering::Relaxed), 1);
        // Longer than any other program takes the processor.
        let mut pace = Pace { since: Instant::now() + Duration::from_hours(1) };
        pace.keep().await;
        assert_eq!(turns.load(Ordering::Relaxed), 1);
    }
}
