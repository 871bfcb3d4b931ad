//! The mapping of IAM principals to users.

use key_schema::access_rows;
use key_schema::attributes::{USER, USER_ID};
use mlflow_api::{Result, UserName};
use table::{Condition, Item, number, text};

use super::Store;

impl Store {
    /// Maps an IAM principal ([`access::principal_of`]) to a user. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn principal_map(&self, principal: &str, user: &UserName) -> Result<()> {
        let id = self.user_get(user).await?.user.id;
        let item = Item::new(access_rows::Principal::key(&principal.into()));
        let item = item.with(USER, text(user.as_str())).with(USER_ID, number(id));
        Ok(self.access.put(item, &Condition::Always).await?)
    }

    /// Denies access to an IAM principal. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn principal_refuse(&self, principal: &str) -> Result<()> {
        let item = Item::new(access_rows::Principal::key(&principal.into()));
        Ok(self.access.put(item, &Condition::Always).await?)
    }

    /// Removes the mapping of an IAM principal. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn principal_forget(&self, principal: &str) -> Result<()> {
        Ok(self.access.delete(&access_rows::Principal::key(&principal.into()), &Condition::Always).await?)
    }
}
