//! Starts a sign-in at a provider, by redirecting the browser there.

use access::RequestHead;
use http::header::HOST;
use identity_providers::AuthorizeRequest;
use mlflow_api::{Error, Request, Result};
use service::EndpointResponse;

use super::attempt_cookies;
use super::attempts::{Attempt, AttemptSigner};
use super::clients::{client, provider};
use super::configuration::configuration;
use super::failure::SignInFailure;
use super::redirect_uri::redirect_uri;
use crate::response_cookies::with_cookies;
use crate::signin_form::{SignInPage, next};
use crate::store::Store;

/// Kind of the shared secret that signs attempts.
pub(super) const ATTEMPTS: &str = "attempts";
/// Maximum length of the page to return to, in bytes. A longer one is replaced by the main page.
pub(super) const MAX_NEXT_BYTES: usize = 256;
/// Maximum length of the key under which a tab stores the fragment of the page.
const MAX_FRAGMENT_KEY_BYTES: usize = 36;

/// Redirects to a provider, or shows the sign-in page with the reason why that is not possible.
/// Takes up to three requests to the table, and up to two to the provider.
///
/// # Errors
/// Returns an error if the table cannot be read.
pub(crate) async fn start(
    store: &Store,
    arrived: &RequestHead,
    request: &Request,
    name: &str,
) -> Result<EndpointResponse> {
    match redirected(store, arrived, request, name).await {
        Ok(answer) => Ok(answer),
        Err(SignInFailure::Sentence(status, text)) => {
            SignInPage::new(store, arrived, request).render(status, &text).await
        }
        Err(SignInFailure::Error(error)) => Err(error),
    }
}

async fn redirected(
    store: &Store,
    arrived: &RequestHead,
    request: &Request,
    name: &str,
) -> std::result::Result<EndpointResponse, SignInFailure> {
    let configuration = configuration(store).await?;
    let (configuration, provider) = provider(configuration.as_ref(), name)?;
    let client = client(store.sign_on(), provider).await?;
    let host = arrived.headers.get(HOST).and_then(|host| host.to_str().ok());
    let next = Some(next(request)).filter(|next| next.len() <= MAX_NEXT_BYTES).unwrap_or_else(|| "/".to_owned());
    let attempt = Attempt::new(&provider.name, configuration.origin(host), &next, fragment_key(request));
    let signer = AttemptSigner::new(&store.shared_secret(ATTEMPTS).await?);
    let (redirect_uri, state) = (redirect_uri(&attempt.origin), signer.state(&attempt));
    let authorization = AuthorizeRequest {
        redirect_uri: &redirect_uri,
        state: &state,
        nonce: &attempt.nonce,
        code_verifier: &attempt.verifier,
    };
    let url = client.authorize_url(&authorization).await;
    let url = url.map_err(|error| SignInFailure::of_provider(provider, &error))?;
    let cookies = attempt_cookies::added(arrived, &signer, &attempt).map_err(Error::internal)?;
    Ok(with_cookies(EndpointResponse::SeeOther(url.into()), cookies))
}

/// Returns the key under which the tab has stored the fragment of the page.
fn fragment_key(request: &Request) -> Option<String> {
    let is_key = |key: &&str| {
        !key.is_empty() && key.len() <= MAX_FRAGMENT_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    request.argument("fragment").filter(is_key).map(str::to_owned)
}
