//! The TTL policy: how long deleted entities are kept. There is none unless somebody sets it.

use entities::attributes::KEPT_FOR;
use key_schema::{Key, rows};
use mlflow_api::{Result, Workspace};
use table::{Condition, Failure, Item, Table, text};

use crate::age::Age;
use crate::report::Report;
use crate::store::Retention;

const SETTING: &str = "ttl_policy";

/// The setting of a table.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

impl Policy {
    fn key() -> Key {
        rows::Config::key(&SETTING.into())
    }

    /// How long deleted entities are kept; `None` for as long as nobody removes them by hand. One
    /// request.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if it cannot be read.
    pub async fn read(table: &Table) -> table::Result<Option<Age>> {
        let Some(item) = table.get(&Self::key()).await? else { return Ok(None) };
        let age = item.text(KEPT_FOR).and_then(|age| Age::parse(age).ok());
        age.map(Some).ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} of the setting {SETTING}")))
    }

    /// Sets it, or takes it back. One request.
    pub async fn write(table: &Table, kept_for: Option<&Age>) -> table::Result<()> {
        match kept_for {
            Some(age) => table.put(Item::new(Self::key()).with(KEPT_FOR, text(age.as_str())), &Condition::Always).await,
            None => table.write_many(Vec::new(), &[Self::key()]).await,
        }
    }
}

impl Retention {
    /// Removes entities that the policy keeps no longer; returns whether there is a policy. One
    /// request where there is none.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn apply_policy(&self, workspace: &Workspace, report: &dyn Report) -> Result<bool> {
        let Some(age) = Policy::read(&self.table).await? else { return Ok(false) };
        let found = self.deleted(workspace, Some(age.before())).await?;
        self.remove(workspace, &found, report).await?;
        Ok(true)
    }
}
