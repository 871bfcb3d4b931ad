//! Logins of clients: with a code that the user enters (RFC 8628), or at a loopback address of the
//! user's machine (RFC 8252, with PKCE).
//!
//! The table stores the digests of codes and secrets only. The device code consists of the digest of
//! the user's code, by which the login is found, and a secret.

use access::RequestHead;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HOST;
use mlflow_api::{Error, Result, UserName};
use rand::RngExt;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::oauth::form::Form;
use crate::oauth::oauth_error::{OauthErrorCode, OauthFailure, OauthResult};
use crate::oauth::token_response::TokenResponse;
use crate::sign_on;
use crate::store::{LOGIN_INTERVAL_SECONDS, LOGIN_SECONDS, LoginTaken, NewLogin, Store};

/// Lifetime of a token from a login, in days.
pub(crate) const TOKEN_DAYS: u32 = 30;
/// Letters of codes. Without vowels, so that codes are not words.
const CODE_LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Number of letters of a code.
const CODE_LENGTH: usize = 8;
/// How many codes are tried if codes are in use. With a thousand pending logins, a code is in use with
/// a probability of 1 in 25 million.
const MAX_CODES: usize = 4;
/// Maximum length of a client's name in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Name of a client that does not send one.
const UNNAMED: &str = "an unnamed host";
/// Range of the length of a PKCE verifier (RFC 7636, section 4.1).
const VERIFIER_LENGTHS: std::ops::RangeInclusive<usize> = 43..=128;

/// The response to a request that begins a login with a code (RFC 8628, section 3.2).
#[derive(Serialize)]
pub(crate) struct DeviceResponse {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    /// Lifetime of the codes in seconds.
    expires_in: i64,
    /// Minimum interval between polls in seconds.
    interval: i64,
}

/// A login at a loopback address that the user approves.
pub(crate) struct LoopbackApproval {
    /// The PKCE challenge.
    pub(crate) challenge: String,
    /// Name of the client.
    pub(crate) name: String,
}

/// Begins a login with a code.
///
/// # Errors
/// `slow_down` if too many logins were begun from the address.
pub(crate) async fn begin(store: &Store, arrived: &RequestHead, form: &Form) -> OauthResult<DeviceResponse> {
    let name = client_name(form.get("name").unwrap_or(UNNAMED))
        .ok_or_else(|| OauthErrorCode::InvalidRequest.because("The parameter name is too long, or empty."))?;
    let page = login_page_url(store, arrived).await?;
    if !store.login_limits().may_begin_login(arrived.connection.peer) {
        return Err(OauthErrorCode::SlowDown.because("Too many logins were begun from your network. Try again later."));
    }
    let secret = random_text();
    for _ in 0..MAX_CODES {
        let code = new_code();
        let new = NewLogin { code: code_digest(&code), device: digest(&secret), name: name.clone() };
        if store.login_create(&new, None).await? {
            return Ok(DeviceResponse {
                device_code: format!("{}.{secret}", new.code),
                verification_uri_complete: format!("{page}?user_code={code}"),
                user_code: code,
                verification_uri: page,
                expires_in: LOGIN_SECONDS,
                interval: LOGIN_INTERVAL_SECONDS,
            });
        }
    }
    Err(OauthFailure::Server(Error::internal("no code for a login is free")))
}

/// Issues the token of a login with a code.
///
/// # Errors
/// `authorization_pending` and `slow_down` until the user decides, then `access_denied` if the user
/// denies the login; `expired_token` if there is no such login.
pub(crate) async fn take_by_device(store: &Store, form: &Form) -> OauthResult<TokenResponse> {
    let code = form.required("device_code")?;
    let gone = || {
        let text = "The login has expired, or its token has been issued. Start it again.";
        OauthErrorCode::ExpiredToken.because(text)
    };
    let (code, secret) = code.split_once('.').ok_or_else(gone)?;
    if !is_digest(code) {
        return Err(gone());
    }
    match store.login_take(code, &digest(secret), Some(TOKEN_DAYS)).await? {
        LoginTaken::Token(secret, token) => Ok(TokenResponse::new(&secret, &token)),
        LoginTaken::Pending => {
            Err(OauthErrorCode::AuthorizationPending.because("The user has not approved the login yet."))
        }
        LoginTaken::SlowDown => Err(OauthErrorCode::SlowDown.because("The client polls too often.")),
        LoginTaken::Refused => Err(OauthErrorCode::AccessDenied.because("The login was cancelled.")),
        LoginTaken::Unknown => Err(gone()),
    }
}

/// Issues the token of a login at a loopback address.
///
/// # Errors
/// `invalid_grant` if there is no login with this code and verifier.
pub(crate) async fn take_by_code(store: &Store, form: &Form) -> OauthResult<TokenResponse> {
    let code = form.required("code")?;
    let verifier = form.required("code_verifier")?;
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !VERIFIER_LENGTHS.contains(&verifier.len()) || !verifier.bytes().all(is_unreserved) {
        let text = "The parameter code_verifier must have 43 to 128 letters, digits, or characters of -._~.";
        return Err(OauthErrorCode::InvalidRequest.because(text));
    }
    match store.login_take(&digest(code), &digest(verifier), Some(TOKEN_DAYS)).await? {
        LoginTaken::Token(secret, token) => Ok(TokenResponse::new(&secret, &token)),
        LoginTaken::Pending | LoginTaken::SlowDown | LoginTaken::Refused | LoginTaken::Unknown => {
            let text = "The code is not valid: it has expired, was used, or belongs to another client.";
            Err(OauthErrorCode::InvalidGrant.because(text))
        }
    }
}

/// Creates the code of a login at a loopback address that the user has approved. Returns `None` if
/// the user does not exist or is disabled.
///
/// # Errors
/// Returns an error if the table cannot be written.
pub(crate) async fn approve_loopback(
    store: &Store,
    user: &UserName,
    approval: &LoopbackApproval,
) -> Result<Option<String>> {
    let code = random_text();
    let new = NewLogin { code: digest(&code), device: approval.challenge.clone(), name: approval.name.clone() };
    Ok(store.login_create(&new, Some(user)).await?.then_some(code))
}

/// Returns a client's name as it is displayed, or `None` if it is empty or too long. Characters that
/// could make it look like other text are replaced.
pub(crate) fn client_name(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |character: char| character.is_ascii_graphic() || character == ' ';
    let is_valid = !text.is_empty() && text.len() <= MAX_NAME_BYTES;
    is_valid.then(|| text.chars().map(|character| if is_plain(character) { character } else { '?' }).collect())
}

/// Returns the digest of a code as a user enters it: in upper or lower case, with or without
/// separators.
pub(crate) fn code_digest(code: &str) -> String {
    let letters = code.bytes().filter(u8::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase());
    let letters: Vec<_> = letters.take(CODE_LENGTH + 1).collect();
    URL_SAFE_NO_PAD.encode(Sha256::digest(letters))
}

/// Returns the digest of a secret. For the verifier of PKCE, this is its challenge (S256).
fn digest(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret))
}

fn is_digest(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>())
}

/// Returns a random code such as `BCDF-GHJK`.
fn new_code() -> String {
    let mut rng = rand::rng();
    let mut letter =
        || CODE_LETTERS.get(rng.random_range(0..CODE_LETTERS.len())).map_or('B', |letter| char::from(*letter));
    let half = |letter: &mut dyn FnMut() -> char| (0..CODE_LENGTH / 2).map(|_| letter()).collect::<String>();
    let first = half(&mut letter);
    format!("{first}-{}", half(&mut letter))
}

/// Returns the URL of the page on which users enter codes: at a configured origin, or else at the
/// host that the client has sent its request to. The response goes to that client only.
async fn login_page_url(store: &Store, arrived: &RequestHead) -> OauthResult<String> {
    let host = arrived.headers.get(HOST).and_then(|host| host.to_str().ok());
    let configuration = sign_on::configuration(store).await;
    let configuration = configuration.unwrap_or_else(|error| {
        tracing::error!(%error, "the configuration of single sign-on cannot be read");
        None
    });
    let configured = configuration.map(|configuration| configuration.origin(host).to_owned());
    let origin = if let Some(origin) = configured.filter(|origin| !origin.is_empty()) {
        origin
    } else {
        let host = host.ok_or_else(|| OauthErrorCode::InvalidRequest.because("The header Host is missing."))?;
        format!("{}://{host}", if arrived.connection.is_secure { "https" } else { "http" })
    };
    Ok(format!("{origin}/login"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_as_they_are_typed() {
        let code = new_code();
        assert!(code.len() == 9 && code.bytes().all(|byte| byte == b'-' || CODE_LETTERS.contains(&byte)), "{code}");
        for typed in [code.to_lowercase(), code.replace('-', ""), code.replace('-', " "), format!(" {code}\n")] {
            assert_eq!(code_digest(&typed), code_digest(&code));
        }
        assert_ne!(code_digest(&format!("{code}B")), code_digest(&code));
        assert!(is_digest(&code_digest(&code)) && !is_digest("LOGIN#"));
        assert_ne!(new_code(), code);
    }

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        // RFC 7636, appendix B.
        let challenge = digest("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_name_is_plain_text() {
        assert_eq!(client_name(" laptop-7.example "), Some("laptop-7.example".to_owned()));
        assert_eq!(client_name("evil\u{202e}\n<b>"), Some("evil??<b>".to_owned()));
        assert_eq!(client_name(" "), None);
        assert_eq!(client_name(&"x".repeat(101)), None);
    }
}
