//! How long the parts of the protocol wait for each other, in ms. They hold only together.

use std::time::Duration;

use crate::LOCK_LASTS;

/// A request lasts no longer than this: API Gateway gives it up before.
const LONGEST_REQUEST: i64 = 30_000;
/// How far the clocks of two processes may differ.
const CLOCKS_DIFFER: i64 = 60_000;

/// How old a mark may be on which a request relies that begins now.
pub const RELIABLE: i64 = 60_000;
/// How old a mark is on which no request relies any more. Such a mark is quiet: its trace is packed,
/// or expires.
pub const QUIET: i64 = 180_000;
/// Age after which no request in progress relies on a span. Spans that were written because of a
/// quiet mark are older than this. So no spans remain when their mark is deleted.
pub const ARRIVED_BEFORE: i64 = 60_000;
/// How long after its first mark a partition is packed: when the mark is quiet, and somewhat later, so
/// that many traces are packed together.
pub const ASKED_AFTER: i64 = 210_000;
/// For how long one lock is made use of.
pub const LOCK_USE: Duration = Duration::from_secs(30);

const _: () = assert!(QUIET >= RELIABLE + LONGEST_REQUEST + CLOCKS_DIFFER, "a request may rely on a quiet mark");
const _: () = assert!(ARRIVED_BEFORE >= LONGEST_REQUEST, "a request may rely on a span that is removed");
const _: () = assert!(QUIET >= ARRIVED_BEFORE + RELIABLE, "spans may outlive their mark");
const _: () = assert!(ASKED_AFTER > QUIET, "marks may not be quiet yet when they are looked at");
const _: () = assert!(LOCK_LASTS >= 2 * LOCK_USE.as_secs().cast_signed() * 1_000, "a lock may end while it is used");
