//! A mark that this process has written in order to archive a trace.

use std::time::Duration;

use entities::attributes::{IMPORTED, MARKED_AT, TO_PACK};
use entities::{StoredTrace, now_ms};
use key_schema::Key;
use mlflow_api::Result;
use runtime::clock::Moment;
use table::{Condition, Failure, Item, Table, Write, number, text};
use trace_blocks::{QUIET_MARK_AGE, TraceKey, TracePartition};

/// How long a claim is used. It is well below the age at which another process may replace the mark.
const USE_DURATION: Duration = Duration::from_mins(1);

const _: () = assert!(QUIET_MARK_AGE >= 2 * USE_DURATION.as_secs().cast_signed() * 1_000, "a claim may be replaced");

/// A mark of a trace, which is replaced by every request that may change the trace.
pub(super) struct Claim {
    key: Key,
    attempt: String,
    /// When the mark was written, in ms.
    pub(super) at: i64,
    begun: Moment,
}

impl Claim {
    /// Replaces the mark of a trace, unless it was written within the last three minutes. Returns
    /// `None` in that case. Takes one request and one write unit.
    ///
    /// # Errors
    /// Failures of the table.
    pub(super) async fn take(table: &Table, trace: &StoredTrace) -> Result<Option<Self>> {
        let (begun, at) = (Moment::now(), now_ms());
        let claim = Self {
            key: TracePartition::of(trace).mark_key(&TraceKey::of(trace)),
            attempt: ulid::Ulid::generate().to_string(),
            at,
            begun,
        };
        let item = Item::new(claim.key.clone())
            .with(MARKED_AT, number(at))
            .with(IMPORTED, text(&claim.attempt))
            .with(TO_PACK, number(1));
        let quiet = Condition::Below(MARKED_AT.into(), number(at.saturating_sub(QUIET_MARK_AGE)));
        match table.put(item, &Condition::Any(vec![Condition::item_missing(), quiet])).await {
            Ok(()) => Ok(Some(claim)),
            // The response to an earlier attempt was lost.
            Err(Failure::Refused { item: Some(item), .. }) if item.get(IMPORTED) == Some(&claim.attempt) => {
                Ok(Some(claim))
            }
            Err(Failure::Refused { .. }) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns whether the claim can still be used.
    pub(super) fn is_fresh(&self) -> bool {
        self.begun.age() < USE_DURATION
    }

    /// Returns how long the claim can still be used.
    pub(super) fn rest(&self) -> Duration {
        USE_DURATION.saturating_sub(self.begun.age())
    }

    /// Returns the part of a transaction that checks that no request has replaced the mark.
    pub(super) fn check(&self) -> Write {
        Write::Check(self.key.clone(), Condition::Equals(IMPORTED.into(), text(&self.attempt)))
    }
}
