//! Signing out at the provider, after a user has signed out here.

use access::RequestHead;
use http::header::HOST;
use identity_providers::Configuration;
use permissions::Cookies;
use permissions::cookies::{cookie_value, has_cookie, hidden_cookie, scoped_name};

use super::clients::client;
use super::redirect_uri::redirect_uri;
use super::services::SignOnServices;
use crate::store::SESSION_SECONDS;

/// Name of the cookie with the provider that a session was opened at, without the prefix or port.
const COOKIE: &str = "mlflow_provider";

/// Returns the `Set-Cookie` value that remembers at which provider a session was opened, so that the
/// sign-in page can offer to sign out there. Without a provider, returns the value that deletes the
/// cookie, if the browser has it.
pub(crate) fn sign_out_cookie(arrived: &RequestHead, provider: Option<&str>) -> Option<String> {
    let name = scoped_name(arrived, COOKIE);
    match provider {
        Some(provider) => Some(hidden_cookie(arrived, &name, provider, SESSION_SECONDS)),
        None => has_cookie(arrived, &name).then(|| hidden_cookie(arrived, &name, "", 0)),
    }
}

/// Returns the title of a provider and the URL at which the user signs out there. Returns `None`
/// unless the browser has just signed out here, from a session that was opened at a provider with the
/// setting `sign_out`. Takes no request, or one to the provider if its discovery document is not
/// cached.
pub(crate) async fn sign_out_link(
    services: &SignOnServices,
    configuration: &Configuration,
    arrived: &RequestHead,
) -> Option<(String, String)> {
    if !matches!(Cookies::of(arrived), Cookies::SignedOut(_)) {
        return None;
    }
    let name = cookie_value(arrived, &scoped_name(arrived, COOKIE))?;
    let provider = configuration.provider(name).filter(|provider| provider.sign_out)?;
    let client = client(services, provider).await.ok()?;
    let host = arrived.headers.get(HOST).and_then(|host| host.to_str().ok());
    match client.end_session_url(&redirect_uri(configuration.origin(host))).await {
        Ok(url) => Some((provider.title.clone(), url?.into())),
        Err(error) => {
            tracing::warn!(provider = provider.name, %error, "cannot offer to sign out at the provider");
            None
        }
    }
}
