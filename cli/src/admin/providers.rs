//! `admin providers`: the identity providers of single sign-on and their rules.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth::store::Store;
use clap::Args;
use identity_providers::{Configuration, FetchLimit, HttpsTransport, Issuers, MAX_CONFIGURATION_BYTES, check_provider};
use mlflow_api::{ErrorCode, UserName};

use super::store;
use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `admin providers`.
#[derive(Args)]
pub(super) struct ProvidersOptions {
    /// TOML file with the providers and rules, which replace the stored ones. Without a file, the
    /// stored ones are printed as JSON.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Do not check whether the providers can be reached from this machine.
    #[arg(long, requires = "file")]
    offline: bool,
    /// Remove all providers and rules. Users can then only sign in with passwords, and sessions that
    /// were opened at a provider end when they would have to be renewed.
    #[arg(long, conflicts_with = "file")]
    remove: bool,
    #[command(flatten)]
    place: TableOptions,
}

/// Stores, prints or removes the configuration.
pub(super) async fn run(options: &ProvidersOptions) -> Result<(), Failure> {
    let Some(file) = &options.file else {
        let store = store(&options.place).await?;
        if options.remove {
            store.sign_on_configuration_remove().await.map_err(failure)?;
            print_line("Removed all identity providers. Running servers notice within a minute.");
            return Ok(());
        }
        let stored = store.sign_on_configuration_get().await.map_err(failure)?;
        match stored {
            Some(stored) => print_line(&serde_json::to_string_pretty(&stored)?),
            None => print_line("There are no identity providers."),
        }
        return Ok(());
    };
    let configuration =
        Configuration::from_toml(&read(file)?).map_err(|error| format!("{}: {error}", file.display()))?;
    if !options.offline {
        check_issuers(&configuration).await?;
    }
    let store = store(&options.place).await?;
    check_roles_and_users(&store, &configuration).await?;
    store.sign_on_configuration_put(&configuration).await.map_err(failure)?;
    print_line(&format!(
        "Stored {} identity providers and {} rules for machines. Running servers notice within a minute.",
        configuration.providers.len(),
        configuration.machines.len()
    ));
    Ok(())
}

/// Reads a file of at most [`MAX_CONFIGURATION_BYTES`].
fn read(file: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", file.display());
    let mut text = String::new();
    let limit = MAX_CONFIGURATION_BYTES as u64 + 1;
    File::open(file).and_then(|open| open.take(limit).read_to_string(&mut text)).map_err(failed)?;
    if text.len() > MAX_CONFIGURATION_BYTES {
        return Err(format!("{} has more than {MAX_CONFIGURATION_BYTES} bytes", file.display()).into());
    }
    Ok(text)
}

/// Checks that all issuers can be reached from this machine, and have the endpoints that sign-ins
/// need.
async fn check_issuers(configuration: &Configuration) -> Result<(), Failure> {
    let hint = "(with --offline, this is not checked)";
    let issuers = Issuers::new(Arc::new(HttpsTransport::new()?));
    for provider in &configuration.providers {
        let checked = check_provider(provider, &issuers).await;
        checked.map_err(|error| format!("the provider {} at {}: {error} {hint}", provider.name, provider.issuer))?;
    }
    for rule in configuration.machines.iter().filter(|rule| rule.keys.is_none()) {
        let keys = issuers.keys(&rule.issuer, FetchLimit::PerMinute).await;
        keys.map_err(|error| format!("the rule {} for machines of {}: {error} {hint}", rule.name, rule.issuer))?;
    }
    Ok(())
}

/// Checks that the roles and users exist that the rules name.
async fn check_roles_and_users(store: &Store, configuration: &Configuration) -> Result<(), Failure> {
    let missing = store.roles_missing(configuration).await.map_err(failure)?;
    if let Some(role) = missing.first() {
        return Err(format!(
            "there is no role {} in the workspace {}: create it, or change the rule that gives it",
            role.name, role.workspace
        )
        .into());
    }
    for rule in &configuration.machines {
        let user = UserName::new(&rule.user).map_err(|error| error.message)?;
        match store.user_get(&user).await {
            Ok(_) => {}
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => {
                return Err(format!(
                    "there is no user {user}, whom the rule {} names: create the user, or change the rule",
                    rule.name
                )
                .into());
            }
            Err(error) => return Err(failure(error)),
        }
    }
    Ok(())
}

fn failure(error: mlflow_api::Error) -> Failure {
    error.cause.unwrap_or(error.message).into()
}
