//! Times in the protocol by which calls that log to a run and the indexer agree on whether the
//! run's mark is kept. The times depend on each other.

use std::time::Duration;

/// Upper limit for a write including its retries.
const MAX_WRITE_DURATION: Duration = Duration::from_secs(20);
const CLOSING_DURATION: Duration = Duration::from_mins(1);

/// How long a call may rely on a run's mark after it has read the run. The call has to return
/// within this time. The mark is kept for at least [`CLOSING_MS`] after the indexer has announced
/// its removal.
pub const MARK_RELIANCE_DURATION: Duration = Duration::from_secs(20);
/// Time in ms after which no call relies on a run's mark any more, counted from the announcement
/// that the mark will be removed. A call that read the run before the announcement relies on the
/// mark for up to [`MARK_RELIANCE_DURATION`]. The write that announces the removal may take another
/// 20 s, including its retries.
pub const CLOSING_MS: i64 = CLOSING_DURATION.as_secs().cast_signed() * 1_000;

const _: () = assert!(
    CLOSING_DURATION.as_millis() >= MARK_RELIANCE_DURATION.as_millis() + MAX_WRITE_DURATION.as_millis(),
    "a call may rely on a mark that is gone"
);
