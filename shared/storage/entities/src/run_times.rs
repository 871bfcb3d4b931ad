//! How long a call and the indexer wait for each other about a run's mark. They hold only together.

use std::time::Duration;

/// How long a write may be tried, with its repetitions.
const LONGEST_WRITE: Duration = Duration::from_secs(20);
const CLOSING: Duration = Duration::from_mins(1);

/// How long a call may rely on a run's mark and answer, after it has read the run. The mark stays
/// for at least [`CLOSING_TIME`] after the indexer has said that it goes.
pub const MARK_STAYS: Duration = Duration::from_secs(20);
/// How long, in ms, there may be calls that have not seen that a run's mark goes. They rely on the
/// mark for [`MARK_STAYS`]. The write that says so may succeed late, as it is tried several times.
pub const CLOSING_TIME: i64 = CLOSING.as_secs().cast_signed() * 1_000;

const _: () = assert!(
    CLOSING.as_millis() >= MARK_STAYS.as_millis() + LONGEST_WRITE.as_millis(),
    "a call may rely on a mark that is gone"
);
