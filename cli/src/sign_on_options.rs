//! Options of `serve` for single sign-on.

use std::path::PathBuf;

use clap::Args;
use permissions::PasswordPolicy;
use secrets::ClientSecrets;

use crate::Failure;
use crate::table_options::StorageOptions;

/// Name of the directory with client secrets, in the directory of the data.
const SECRETS_DIRECTORY: &str = "sign-on";

/// Options for single sign-on.
#[derive(Args)]
pub(crate) struct SignOnOptions {
    /// With `--auth basic`: directory with the client secrets of identity providers. Each is in a
    /// file with the name of its provider, and only the owner may have access to it [default:
    /// `sign-on` in the directory of the data].
    #[arg(long, value_name = "DIR")]
    sign_on_secrets: Option<PathBuf>,
    /// With `--auth basic`: whether users can authenticate with a password. With `off`, they sign in
    /// at an identity provider and use tokens.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = ["on", "off"])]
    passwords: String,
    /// With `--passwords off`: an administrator who can still sign in with a password, for times
    /// when no identity provider is reachable. May be repeated, or contain several names separated
    /// by commas.
    #[arg(long, value_name = "NAME")]
    password_administrators: Vec<String>,
}

impl SignOnOptions {
    /// Returns the place of the client secrets.
    pub(crate) fn client_secrets(&self, storage: &StorageOptions) -> ClientSecrets {
        let chosen = self.sign_on_secrets.clone();
        ClientSecrets::Directory(chosen.unwrap_or_else(|| storage.directory().join(SECRETS_DIRECTORY)))
    }

    /// Returns which users may authenticate with a password.
    ///
    /// # Errors
    /// A name is not a user name, administrators are named although passwords are on, or passwords
    /// are off although nobody signs in.
    pub(crate) fn password_policy(&self, has_users: bool) -> Result<PasswordPolicy, Failure> {
        let policy = PasswordPolicy::parse(Some(&self.passwords), Some(&self.password_administrators.join(",")))
            .map_err(|error| format!("--passwords and --password-administrators: {error}"))?;
        if policy != PasswordPolicy::Everyone && !has_users {
            return Err("--passwords off requires --auth basic".into());
        }
        Ok(policy)
    }
}
