//! Waiting times of the protocol, in ms. They depend on each other.

use std::time::Duration;

use crate::LOCK_LASTS;

/// Maximum duration of a request. API Gateway times out earlier.
const LONGEST_REQUEST: i64 = 30_000;
/// Maximum clock skew between two processes.
const CLOCKS_DIFFER: i64 = 60_000;

/// Maximum age of a mark that a new request may rely on.
pub const RELIABLE: i64 = 60_000;
/// Age after which no request relies on a mark. The mark is then quiet: its trace may be packed or
/// expire.
pub const QUIET: i64 = 180_000;
/// Age after which no request in flight relies on a span. Spans whose mark is quiet are older than
/// this, so no spans are left behind when their mark is deleted.
pub const ARRIVED_BEFORE: i64 = 60_000;
/// Delay after which a partition is packed, counted from its first mark. The mark is quiet by then.
/// The additional time lets more traces be packed together.
pub const ASKED_AFTER: i64 = 210_000;
/// How long a lock is used.
pub const LOCK_USE: Duration = Duration::from_secs(30);

const _: () = assert!(QUIET >= RELIABLE + LONGEST_REQUEST + CLOCKS_DIFFER, "a request may rely on a quiet mark");
const _: () = assert!(ARRIVED_BEFORE >= LONGEST_REQUEST, "a request may rely on a span that is removed");
const _: () = assert!(QUIET >= ARRIVED_BEFORE + RELIABLE, "spans may outlive their mark");
const _: () = assert!(ASKED_AFTER > QUIET, "marks may not be quiet yet when they are looked at");
const _: () = assert!(LOCK_LASTS >= 2 * LOCK_USE.as_secs().cast_signed() * 1_000, "a lock may end while it is used");
