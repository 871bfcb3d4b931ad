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
