//! Integer ids, as MLflow's clients expect them. Ids are never reused, even after their entities
//! are deleted.

use key_schema::access_rows;
use key_schema::attributes::COUNT;
use mlflow_api::{Error, Result};
use table::{Condition, Update, Write, number};

use super::Store;

/// A kind of entity that has integer ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum IdKind {
    Users,
    Roles,
    Grants,
    Assignments,
    Tokens,
}

impl IdKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Roles => "roles",
            Self::Grants => "grants",
            Self::Assignments => "assignments",
            Self::Tokens => "tokens",
        }
    }
}

/// Name of the counter of administrators. After the first administrator has been created, the
/// counter never drops to 0.
const ADMINISTRATORS: &str = "administrators";

impl Store {
    /// Allocates the next id of a kind. Takes one request. If the request is retried, an id may be
    /// skipped.
    pub(super) async fn next_id(&self, kind: IdKind) -> Result<u32> {
        self.next_ids(kind, 1).await
    }

    /// Allocates the next ids of a kind, and returns the first one. Takes one request, or none if
    /// `count` is 0. If the request is retried, ids may be skipped.
    pub(super) async fn next_ids(&self, kind: IdKind, count: usize) -> Result<u32> {
        let Some(others) = count.checked_sub(1) else { return Ok(0) };
        let (count, others) = (i64::try_from(count).unwrap_or(i64::MAX), u32::try_from(others).unwrap_or(u32::MAX));
        let counter = access_rows::Counter::key(&kind.name().into());
        let counter = self.access.update(&Update::upsert(counter).add(COUNT, number(count))).await?;
        let first = counter.get(COUNT).and_then(|last| last.checked_sub(others));
        first.ok_or_else(|| Error::internal("no ids left"))
    }
}

/// Returns the write that increments the number of administrators, for a transaction.
pub(super) fn increment_administrators() -> Write {
    Write::Update(Update::upsert(access_rows::Counter::key(&ADMINISTRATORS.into())).add(COUNT, number(1)))
}

/// Returns the write that decrements the number of administrators, for a transaction. Fails if no
/// administrator would be left.
pub(super) fn decrement_administrators() -> Write {
    let others = Condition::Not(Box::new(Condition::Below(COUNT.into(), number(2))));
    let counter = access_rows::Counter::key(&ADMINISTRATORS.into());
    Write::Update(Update::new(counter).add(COUNT, number(-1)).only_if(others))
}
