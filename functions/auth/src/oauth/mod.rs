//! Tokens for clients: logins of people, and exchanges of the JWTs of machines.
//!
//! `POST /oauth/token` issues tokens for three types of grants: a login at a loopback address
//! (`authorization_code` with PKCE), a login with a code (RFC 8628), both in `client_login.rs`, and
//! an exchange (RFC 8693, `machine_exchange.rs`). `POST /oauth/device` begins a login with a code.
//! `login_page.rs` is the page on which users approve logins. See
//! `docs/adr/0086-logins-of-clients.md`.

pub(crate) mod client_login;
mod form;
pub(crate) mod login_limits;
pub(crate) mod login_page;
mod machine_exchange;
mod oauth_error;
mod token_response;

use access::RequestHead;
use mlflow_api::{Request, Result};
use permissions::browser_pages::is_of_foreign_page;
use service::EndpointResponse;

use crate::oauth::form::Form;
use crate::oauth::oauth_error::{OauthErrorCode, OauthResult, response};
use crate::oauth::token_response::TokenResponse;
use crate::store::Store;

const AUTHORIZATION_CODE: &str = "authorization_code";
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Issues a token.
pub(crate) async fn token(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    response(issue(&store, &arrived, &request).await)
}

/// Begins a login with a code.
pub(crate) async fn device(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    let begun = async {
        refuse_foreign_pages(&arrived)?;
        client_login::begin(&store, &arrived, &Form::of(&request)?).await
    };
    response(begun.await)
}

async fn issue(store: &Store, arrived: &RequestHead, request: &Request) -> OauthResult<TokenResponse> {
    refuse_foreign_pages(arrived)?;
    let form = Form::of(request)?;
    match form.required("grant_type")? {
        AUTHORIZATION_CODE => client_login::take_by_code(store, &form).await,
        DEVICE_CODE => client_login::take_by_device(store, &form).await,
        TOKEN_EXCHANGE => machine_exchange::exchange(store, &form).await,
        _ => Err(OauthErrorCode::UnsupportedGrantType
            .because(format!("The grant type must be {AUTHORIZATION_CODE}, {DEVICE_CODE} or {TOKEN_EXCHANGE}."))),
    }
}

/// Refuses requests from pages of other origins, which would use up the attempts of their visitors.
fn refuse_foreign_pages(arrived: &RequestHead) -> OauthResult<()> {
    if is_of_foreign_page(arrived) {
        return Err(OauthErrorCode::InvalidRequest.because("Pages of other servers cannot request tokens."));
    }
    Ok(())
}
