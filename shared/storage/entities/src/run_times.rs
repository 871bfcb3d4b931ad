//! Timing of the protocol by which calls and the indexer agree on a run's mark. The times depend on
//! each other.

use std::time::Duration;

/// Upper limit for a write including its retries.
const MAX_WRITE_DURATION: Duration = Duration::from_secs(20);
const CLOSING_DURATION: Duration = Duration::from_mins(1);

/// How long a call may rely on a run's mark after it has read the run. The call has to return
/// within this time. The mark is kept for at least [`CLOSING_MS`] after the indexer has announced
/// its removal.
pub const MARK_RELIANCE_DURATION: Duration = Duration::from_secs(20);
/// How long, in ms, calls may be running that have not noticed that a run's mark is going to be
/// removed. They rely on the mark for [`MARK_RELIANCE_DURATION`]. The write that announces the removal is
/// retried and may succeed late.
pub const CLOSING_MS: i64 = CLOSING_DURATION.as_secs().cast_signed() * 1_000;

const _: () = assert!(
    CLOSING_DURATION.as_millis() >= MARK_RELIANCE_DURATION.as_millis() + MAX_WRITE_DURATION.as_millis(),
    "a call may rely on a mark that is gone"
);
