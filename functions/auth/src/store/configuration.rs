//! The stored configuration of single sign-on.

use identity_providers::{Configuration, MAX_CONFIGURATION_BYTES};
use key_schema::access_rows;
use key_schema::attributes::CONFIGURATION;
use mlflow_api::{Error, Result};
use table::{Condition, Item, text};

use super::Store;

impl Store {
    /// Returns the configuration of single sign-on, or `None` if there is none. Takes one request.
    ///
    /// # Errors
    /// Returns an internal error if the stored configuration is not valid in this version.
    pub async fn sign_on_configuration_get(&self) -> Result<Option<Configuration>> {
        let Some(item) = self.access.get(&access_rows::Providers::key()).await? else { return Ok(None) };
        let json = item.get(CONFIGURATION).unwrap_or_default();
        Configuration::from_json(json).map(Some).map_err(Error::internal)
    }

    /// Stores the configuration of single sign-on, and replaces the previous one. Takes one request.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if it has more than [`MAX_CONFIGURATION_BYTES`].
    pub async fn sign_on_configuration_put(&self, configuration: &Configuration) -> Result<()> {
        let json = configuration.to_json();
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
