//! Waiting times, in ms, of the protocol that packs traces. They depend on each other.

use std::time::Duration;

use crate::LOCK_DURATION_MS;

/// Maximum duration of a request. API Gateway times out earlier.
const MAX_REQUEST_MS: i64 = 30_000;
/// Maximum clock skew between two processes.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;

/// Maximum age of a mark that a new request may rely on.
pub const MAX_RELIABLE_MARK_AGE: i64 = 60_000;
/// Age after which no request relies on a mark. A mark of this age is called quiet, and its trace
/// may be packed or expire.
pub const QUIET_MARK_AGE: i64 = 180_000;
/// Age after which no request in flight relies on a span. If a mark is quiet, the spans of its
/// trace are older than this, so deleting the mark leaves no spans behind.
pub const SETTLED_SPAN_AGE: i64 = 60_000;
/// Delay after which a partition is packed, counted from its first mark. That mark is quiet by
/// then. The additional time allows more traces to be packed together.
pub const PACKING_DELAY: i64 = 210_000;
/// How long a process works under a lock before it takes a new one. It is well below the lock's
/// duration.
pub const LOCK_USE_DURATION: Duration = Duration::from_secs(30);

const _: () = assert!(
    QUIET_MARK_AGE >= MAX_RELIABLE_MARK_AGE + MAX_REQUEST_MS + MAX_CLOCK_SKEW_MS,
    "a request may rely on a quiet mark"
);
const _: () = assert!(SETTLED_SPAN_AGE >= MAX_REQUEST_MS, "a request may rely on a span that is removed");
const _: () = assert!(QUIET_MARK_AGE >= SETTLED_SPAN_AGE + MAX_RELIABLE_MARK_AGE, "spans may outlive their mark");
const _: () = assert!(PACKING_DELAY > QUIET_MARK_AGE, "marks may not be quiet yet when they are looked at");
const _: () = assert!(
    LOCK_DURATION_MS >= 2 * LOCK_USE_DURATION.as_secs().cast_signed() * 1_000,
    "a lock may end while it is used"
);
