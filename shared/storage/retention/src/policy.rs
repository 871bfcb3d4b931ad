//! The policies that limit how long deleted entities and metric histories are kept. Without a
//! policy, which is the default, they are kept indefinitely.

use entities::attributes::KEPT_FOR;
use key_schema::{Key, rows};
use mlflow_api::{Result, Workspace};
use table::{Condition, Failure, Item, Table, text};

use crate::age::DeletionAge;
use crate::report::RemovalReport;
use crate::store::Retention;

/// A policy, stored as a setting of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionPolicy {
    /// How long deleted entities are kept after their deletion.
    Deleted,
    /// How long metric histories are kept after the end of their run.
    Histories,
}

impl RetentionPolicy {
    fn name(self) -> &'static str {
        match self {
            Self::Deleted => "ttl_policy",
            Self::Histories => "history_policy",
        }
    }

    fn key(self) -> Key {
        rows::Config::key(&self.name().into())
    }

    /// Reads the policy. `None` means that everything is kept until it is deleted manually. Sends
    /// one request.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read.
    pub async fn read(self, table: &Table) -> table::Result<Option<DeletionAge>> {
        let Some(item) = table.get(&self.key()).await? else { return Ok(None) };
        let age = item.get(KEPT_FOR).and_then(|age| DeletionAge::parse(age).ok());
        age.map(Some).ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} of the setting {}", self.name())))
    }

    /// Sets the policy, or removes it if `kept_for` is `None`. Sends one request.
    pub async fn write(self, table: &Table, kept_for: Option<&DeletionAge>) -> table::Result<()> {
        match kept_for {
            Some(age) => table.put(Item::new(self.key()).with(KEPT_FOR, text(age.as_str())), &Condition::Always).await,
            None => table.write_many(Vec::new(), &[self.key()]).await,
        }
    }
}

impl Retention {
    /// Permanently deletes the entities that the policy no longer keeps. Returns whether there is a
    /// policy. Sends one request if there is none.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn apply_policy(&self, workspace: &Workspace, report: &dyn RemovalReport) -> Result<bool> {
        let Some(age) = RetentionPolicy::Deleted.read(&self.table).await? else { return Ok(false) };
        let found = self.deleted(workspace, Some(age.before())).await?;
        self.remove(workspace, &found, report).await?;
        Ok(true)
    }
}
