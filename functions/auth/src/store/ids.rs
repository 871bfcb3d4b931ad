//! Integer ids, as MLflow's clients expect them. None is given out twice, whatever was deleted.

use key_schema::access_rows;
use key_schema::attributes::COUNT;
use mlflow_api::{Error, Result};
use table::{Condition, Update, Write, number};

use super::Store;

/// The kinds of entities with ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Users,
    Roles,
    Grants,
    Assignments,
    Tokens,
}

impl Kind {
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

/// The number of administrators, which is never 0 again.
const ADMINISTRATORS: &str = "administrators";

impl Store {
    /// The next id of a kind. One request. A request that is repeated may skip one.
    pub(super) async fn next_id(&self, kind: Kind) -> Result<u32> {
        let counter = access_rows::Counter::key(&kind.name().into());
        let counter = self.access.update(&Update::upsert(counter).add(COUNT, number(1))).await?;
        let id = counter.get(COUNT);
        id.ok_or_else(|| Error::internal("no ids left"))
    }
}

/// Part of a transaction: there is one administrator more.
pub(super) fn one_administrator_more() -> Write {
    Write::Update(Update::upsert(access_rows::Counter::key(&ADMINISTRATORS.into())).add(COUNT, number(1)))
}

/// Part of a transaction: there is one administrator less, and at least one is left.
pub(super) fn one_administrator_less() -> Write {
    let others = Condition::Not(Box::new(Condition::Below(COUNT.into(), number(2))));
    let counter = access_rows::Counter::key(&ADMINISTRATORS.into());
    Write::Update(Update::new(counter).add(COUNT, number(-1)).only_if(others))
}
