//! The policies: how long deleted entities are kept, and histories of metrics. There is none unless
//! somebody sets it.

use entities::attributes::KEPT_FOR;
use key_schema::{Key, rows};
use mlflow_api::{Result, Workspace};
use table::{Condition, Failure, Item, Table, text};

use crate::age::Age;
use crate::report::Report;
use crate::store::Retention;

/// A setting of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// For how long deleted entities are kept after their deletion.
    Deleted,
    /// For how long histories of metrics are kept after the end of their run.
    Histories,
}

impl Policy {
    fn name(self) -> &'static str {
        match self {
            Self::Deleted => "ttl_policy",
            Self::Histories => "history_policy",
        }
    }

    fn key(self) -> Key {
        rows::Config::key(&self.name().into())
    }

    /// How long they are kept; `None` for as long as nobody removes them by hand. One request.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if it cannot be read.
    pub async fn read(self, table: &Table) -> table::Result<Option<Age>> {
        let Some(item) = table.get(&self.key()).await? else { return Ok(None) };
        let age = item.get(KEPT_FOR).and_then(|age| Age::parse(age).ok());
        age.map(Some).ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} of the setting {}", self.name())))
    }

    /// Sets it, or takes it back. One request.
    pub async fn write(self, table: &Table, kept_for: Option<&Age>) -> table::Result<()> {
        match kept_for {
            Some(age) => table.put(Item::new(self.key()).with(KEPT_FOR, text(age.as_str())), &Condition::Always).await,
            None => table.write_many(Vec::new(), &[self.key()]).await,
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
        let Some(age) = Policy::Deleted.read(&self.table).await? else { return Ok(false) };
        let found = self.deleted(workspace, Some(age.before())).await?;
        self.remove(workspace, &found, report).await?;
        Ok(true)
    }
}
