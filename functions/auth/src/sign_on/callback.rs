//! Completes a sign-in after the provider has redirected the browser back.

use access::RequestHead;
use http::StatusCode;
use identity_providers::{
    CodeExchange, Configuration, Memberships, Person, Provider, ProviderError, RefreshTokenPlace, SignedIn, seal,
};
use mlflow_api::{Error, Request, Result};
use permissions::{Cookies, UserSecret, cookies};
use service::EndpointResponse;

use super::attempt_cookies;
use super::attempts::{Attempt, AttemptSigner};
use super::clients::{client, provider};
use super::configuration::configuration;
use super::confirmation::confirmed_until;
use super::failure::SignInFailure;
use super::redirect_uri::redirect_uri;
use super::sign_out::sign_out_cookie;
use super::start::ATTEMPTS;
use crate::html_page::{escape, page_with_fragment_script};
use crate::response_cookies::with_cookies;
use crate::signin_form::SignInPage;
use crate::store::{NewRenewal, NewSsoSession, SESSION_SECONDS, SsoUser, Store, StoredUser, renew_by_after};

/// Maximum number of characters of a provider's error message that are shown.
const MAX_MESSAGE_CHARS: usize = 200;

/// A session that was opened.
struct OpenedSession {
    secret: UserSecret,
    renew_by: i64,
    /// The provider, if it offers to sign out there as well.
    sign_out: Option<String>,
}

/// Checks whether a request for the sign-in page is a provider's redirect.
pub(crate) fn is_callback(request: &Request) -> bool {
    ["code", "error", "state"].iter().any(|name| request.argument(name).is_some())
}

/// Opens a session for the person whom the provider has identified, and redirects to the page where
/// the sign-in began. Otherwise, shows the sign-in page with the reason. Takes about ten requests to
/// the table, and up to four to the provider.
///
/// # Errors
/// Returns an error if the table cannot be read or written.
pub(crate) async fn finish(store: &Store, arrived: &RequestHead, request: &Request) -> Result<EndpointResponse> {
    let signer = AttemptSigner::new(&store.shared_secret(ATTEMPTS).await?);
    let id = request.argument("state").and_then(|state| signer.attempt_id(state));
    let Some(attempt) = id.and_then(|id| attempt_cookies::find(arrived, &signer, id)) else {
        // A user who goes back in the history of the browser has signed in already.
        if matches!(Cookies::of(arrived), Cookies::SignedIn(_)) && store.has_valid_credentials(arrived).await? {
            return Ok(EndpointResponse::SeeOther("/".to_owned()));
        }
        let text = "This sign-in has expired, or it was started in another browser or at another address of this \
                    server. Sign in again.";
        return SignInPage::new(store, arrived, request).render(StatusCode::BAD_REQUEST, text).await;
    };
    let used = attempt_cookies::removed(arrived, &attempt.id);
    let answer = match open_session(store, arrived, request, &attempt).await {
        Ok(opened) => {
            let OpenedSession { secret, renew_by, sign_out } = opened;
            if let Cookies::SignedIn(old) | Cookies::SignedOut(old) = Cookies::of(arrived) {
                store.session_end(&old).await?;
            }
            let new = cookies::session_cookies(arrived, &secret, SESSION_SECONDS);
            let renewal = cookies::renewal_cookie(arrived, renew_by, SESSION_SECONDS);
            let others = sign_out_cookie(arrived, sign_out.as_deref()).into_iter().chain([renewal]);
            with_cookies(leads_to(&attempt), new.into_iter().chain(others))
        }
        Err(SignInFailure::Sentence(status, text)) => {
            SignInPage::new(store, arrived, request).with_next(attempt.next.clone()).render(status, &text).await?
        }
        Err(SignInFailure::Error(error)) => return Err(error),
    };
    Ok(with_cookies(answer, [used]))
}

/// Returns the response that leads to the page where the sign-in began. If the tab has stored the
/// fragment of that page, a page with a script adds it.
fn leads_to(attempt: &Attempt) -> EndpointResponse {
    let Some(fragment) = &attempt.fragment else { return EndpointResponse::SeeOther(attempt.next.clone()) };
    let body =
        format!("<p><a data-fragment=\"{}\" href=\"{}\">Continue</a></p>\n", escape(fragment), escape(&attempt.next));
    page_with_fragment_script(StatusCode::OK, "Signed in", &body)
}

async fn open_session(
    store: &Store,
    arrived: &RequestHead,
    request: &Request,
    attempt: &Attempt,
) -> std::result::Result<OpenedSession, SignInFailure> {
    let configuration = configuration(store).await?;
    let (configuration, provider) = provider(configuration.as_ref(), &attempt.provider)?;
    let code = code(request, provider)?;
    let client = client(store.sign_on(), provider).await?;
    let redirect_uri = redirect_uri(&attempt.origin);
    let exchange = CodeExchange {
        code,
        issuer: request.argument("iss"),
        redirect_uri: &redirect_uri,
        nonce: &attempt.nonce,
        code_verifier: &attempt.verifier,
    };
    let signed_in = client.exchange_code(&exchange).await.map_err(|error| {
        if matches!(error, ProviderError::Misconfigured(_)) {
            store.sign_on().forget_client_secret(&provider.name);
        }
        SignInFailure::of_provider(provider, &error)
    })?;
    let user = user(store, configuration, provider, &signed_in).await?;
    let secret = UserSecret::new(user.user.name.clone());
    let digest = secret.digest();
    let place = RefreshTokenPlace { provider: &provider.name, session: &digest };
    let renewal = signed_in.refresh_token.as_ref().map(|token| {
        let sealed = seal(client.secret(), place, token).map_err(Error::internal)?;
        Ok::<_, Error>(NewRenewal { provider: provider.name.clone(), sealed })
    });
    let renewal = renewal.transpose()?;
    if renewal.is_none() {
        tracing::warn!(
            provider = provider.name,
            "the provider issued no refresh token: the session ends when it would have to be renewed"
        );
    }
    let renew_by = renew_by_after(configuration.renewal_minutes);
    let session = NewSsoSession { secret: &secret, renew_by, renewal };
    if !store.sso_session_open(&user, &signed_in.person, session).await? {
        return Err(changed());
    }
    tracing::info!(
        target: "audit", event = "signed in", by = ?secret.user().as_str(), provider = provider.name,
        from = ?arrived.connection.peer
    );
    Ok(OpenedSession { secret, renew_by, sign_out: provider.sign_out.then(|| provider.name.clone()) })
}

/// Returns the code of a redirect.
///
/// # Errors
/// The provider's error, as a sentence.
fn code<'a>(request: &'a Request, provider: &Provider) -> std::result::Result<&'a str, SignInFailure> {
    if let Some(error) = request.argument("error") {
        let error = match request.argument("error_description") {
            Some(description) => format!("{error}: {description}"),
            None => error.to_owned(),
        };
        let shown: String = error.chars().filter(|letter| !letter.is_control()).take(MAX_MESSAGE_CHARS).collect();
        tracing::warn!(target: "audit", event = "not signed in", provider = provider.name, reason = ?shown);
        let text = format!("{} refused the sign-in ({}).", provider.title, shown.trim_end_matches('.'));
        return Err(SignInFailure::Sentence(StatusCode::UNAUTHORIZED, text));
    }
    let text = "The identity provider sent no code. Sign in again.";
    let code = request.argument("code").filter(|code| !code.is_empty());
    code.ok_or_else(|| SignInFailure::Sentence(StatusCode::BAD_REQUEST, text.to_owned()))
}

/// Returns the user of a person, after applying the rules of the provider. Creates the user at the
/// first sign-in.
async fn user(
    store: &Store,
    configuration: &Configuration,
    provider: &Provider,
    signed_in: &SignedIn,
) -> std::result::Result<StoredUser, SignInFailure> {
    let SignedIn { person, claims, .. } = signed_in;
    let of_claims = |error| SignInFailure::of_claims(provider, &error);
    let memberships = Memberships::of(provider, claims).map_err(of_claims)?;
    // An existing user needs no name.
    let name = provider.name_of_new_user(claims);
    let user = match store.sso_user(person, name.as_deref().ok(), provider.new_users).await? {
        SsoUser::Found(user) | SsoUser::Created(user) => user,
        SsoUser::Disabled(name) => {
            return Err(SignInFailure::forbidden(format!("The user {name} is disabled. Ask an administrator.")));
        }
        SsoUser::NameTaken(name) => {
            return Err(SignInFailure::forbidden(format!(
                "The name {name} belongs to another user. If that is you, ask an administrator to link your account: {}",
                link_command(name.as_str(), person)
            )));
        }
        SsoUser::InvalidName(reason) => {
            return Err(match name {
                Ok(_) => SignInFailure::forbidden(format!("No user can be created for you: {reason}")),
                Err(error) => of_claims(error),
            });
        }
        SsoUser::Unknown => {
            return Err(SignInFailure::forbidden(format!(
                "There is no user for you yet. Ask an administrator to create one and to link your account: {}",
                link_command("NAME", person)
            )));
        }
    };
    let until = confirmed_until(configuration);
    if store.memberships_apply(&user.user.name, person, &memberships, until).await? { Ok(user) } else { Err(changed()) }
}

/// Returns the command that links an identity to a user.
fn link_command(name: &str, person: &Person) -> String {
    let [name, issuer, subject] = [name, &person.issuer, &person.subject].map(quoted);
    format!("mlflow-serverless admin link {name} {issuer} {subject}")
}

/// Returns an argument of a command as a shell reads it.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@._:/-+".contains(&byte);
    if text.bytes().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Returns the failure for a user who was changed at the same time.
fn changed() -> SignInFailure {
    SignInFailure::forbidden("Your user was disabled or changed a moment ago. Sign in again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_links_an_account_is_quoted() {
        let person = Person { issuer: "https://id.example/".to_owned(), subject: "auth0|o'neil".to_owned() };
        assert_eq!(
            link_command("ann@example.com", &person),
            r"mlflow-serverless admin link ann@example.com https://id.example/ 'auth0|o'\''neil'"
        );
    }
}
