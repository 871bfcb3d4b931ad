//! Clients of providers.

use std::sync::Arc;

use identity_providers::{Configuration, Provider, ProviderClient};
use mlflow_api::Error;

use super::failure::SignInFailure;
use super::services::SignOnServices;

/// Returns the client of a provider. Takes at most one request, for the client secret.
///
/// # Errors
/// The client secret cannot be read.
pub(super) async fn client(services: &SignOnServices, provider: &Provider) -> Result<ProviderClient, SignInFailure> {
    let secret = services.client_secret(&provider.name).await;
    let secret = secret.map_err(|error| SignInFailure::of_secret(provider, &error))?;
    let issuers = services.issuers().map_err(|error| SignInFailure::Error(Error::internal(error)))?;
    Ok(ProviderClient::new(provider.clone(), secret, Arc::clone(issuers)))
}

/// Returns the configured provider with this name.
///
/// # Errors
/// A sentence, if there is none.
pub(super) fn provider<'a>(
    configuration: Option<&'a Arc<Configuration>>,
    name: &str,
) -> Result<(&'a Arc<Configuration>, &'a Provider), SignInFailure> {
    let found = configuration.and_then(|configuration| Some((configuration, configuration.provider(name)?)));
    let text = "This server has no identity provider of this name. Sign in again.";
    found.ok_or_else(|| SignInFailure::Sentence(http::StatusCode::NOT_FOUND, text.to_owned()))
}
