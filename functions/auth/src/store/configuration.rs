//! The stored configuration of single sign-on.

use identity_providers::Configuration;
use key_schema::access_rows;
use key_schema::attributes::CONFIGURATION;
use mlflow_api::{Error, Result};
use table::{Condition, Item, text};

use super::Store;

/// Maximum size of the configuration in bytes, as JSON. An item in DynamoDB is limited to 400 KB.
pub const MAX_CONFIGURATION_BYTES: usize = 300_000;

impl Store {
    /// Returns the configuration of single sign-on, or `None` if there is none. Takes one request.
    ///
    /// # Errors
    /// Returns an internal error if a later version has stored what this version cannot read.
    pub async fn sign_on_configuration_get(&self) -> Result<Option<Configuration>> {
        let Some(item) = self.access.get(&access_rows::Providers::key()).await? else { return Ok(None) };
        let configuration = item.get(CONFIGURATION).map(serde_json::from_str);
        let configuration = configuration.transpose().map_err(Error::internal)?;
        configuration.map(Some).ok_or_else(|| Error::internal("the configuration of single sign-on is unreadable"))
    }

    /// Stores the configuration of single sign-on, and replaces the previous one. Takes one request.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if it has more than [`MAX_CONFIGURATION_BYTES`].
    pub async fn sign_on_configuration_put(&self, configuration: &Configuration) -> Result<()> {
        let json = serde_json::to_string(configuration).map_err(Error::internal)?;
        if json.len() > MAX_CONFIGURATION_BYTES {
            return Err(Error::invalid(format!(
                "The configuration of single sign-on has {} bytes as JSON, and at most {MAX_CONFIGURATION_BYTES} can be stored.",
                json.len()
            )));
        }
        let item = Item::new(access_rows::Providers::key()).with(CONFIGURATION, text(json));
        Ok(self.access.put(item, &Condition::Always).await?)
    }

    /// Removes the configuration of single sign-on. Sessions that it opened can no longer be renewed.
    /// Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn sign_on_configuration_remove(&self) -> Result<()> {
        Ok(self.access.delete(&access_rows::Providers::key(), &Condition::Always).await?)
    }
}
