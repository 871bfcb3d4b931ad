//! Login with a browser on this machine, which returns a code to a loopback address (RFC 8252). The
//! code is of no use without a secret that only this process has (PKCE, RFC 7636).

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use rand::RngExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::Failure;
use crate::login::browser::Browser;
use crate::login::oauth_client::{IssuedToken, OauthClient, encoded};
use crate::output::print_note;

/// How long the user may take to sign in and approve the login.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);
/// How long the browser may take to receive the page that ends the login.
const PAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the browser returns in the query.
#[derive(Deserialize)]
struct Returned {
    state: String,
    code: Option<String>,
    error: Option<String>,
}

/// The outcome that the page has returned: a code, or the code of an error.
type Outcome = Result<String, String>;

struct Waiting {
    state: String,
    outcome: Mutex<Option<oneshot::Sender<Outcome>>>,
}

/// Opens a browser, and waits until the user has approved the login.
///
/// # Errors
/// Returns an error if the user denies the login or does not approve it in time, or if the server
/// cannot be reached.
pub(crate) async fn log_in(client: &OauthClient, name: &str, browser: &Browser) -> Result<IssuedToken, Failure> {
    client.check_server().await?;
    let [verifier, state] = [random(), random()];
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let url = format!(
        "{}/login?redirect_port={port}&challenge={challenge}&state={state}&name={}",
        client.server(),
        encoded(name)
    );
    let code = code_of(listener, state, || {
        let said = if browser.open(&url) {
            "Sign in with the browser that has opened."
        } else {
            "Open this URL in a browser."
        };
        print_note(&format!("{said} With a browser on another machine, run this command with --device.\n{url}"));
    });
    let code = tokio::time::timeout(LOGIN_TIMEOUT, code).await.map_err(|_| "the login was not approved in time")??;
    let code = code.map_err(|error| match error.as_str() {
        "access_denied" => "the login was cancelled".to_owned(),
        _ => format!("the server refused the login: {error}"),
    })?;
    let redirect = format!("http://127.0.0.1:{port}/");
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("code_verifier", verifier.as_str()),
        ("redirect_uri", redirect.as_str()),
    ];
    client.token(&form).await?.map_err(|refusal| refusal.failure())
}

fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>())
}

/// Serves one page until the browser has returned the outcome.
async fn code_of(listener: TcpListener, state: String, begin: impl FnOnce()) -> Result<Outcome, Failure> {
    let (sender, mut receiver) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let waiting = Arc::new(Waiting { state, outcome: Mutex::new(Some(sender)) });
    let app = Router::new().route("/", get(returned)).with_state(waiting);
    let serving = axum::serve(listener, app).with_graceful_shutdown(async {
        // Both outcomes of the channel end the server.
        drop(ended.await);
    });
    let mut serving = tokio::spawn(serving.into_future());
    begin();
    let outcome = tokio::select! {
        outcome = &mut receiver => outcome?,
        failed = &mut serving => {
            failed??;
            return Err("the login was interrupted".into());
        }
    };
    drop(end);
    // The response to the browser is sent before the server ends. A browser that keeps a connection
    // open does not hold up the login.
    if tokio::time::timeout(PAGE_TIMEOUT, &mut serving).await.is_err() {
        serving.abort();
    }
    Ok(outcome)
}

async fn returned(State(waiting): State<Arc<Waiting>>, Query(returned): Query<Returned>) -> Response {
    // Any program and any page can send requests to this address, but only the page that this
    // process has opened knows the state.
    if !bool::from(returned.state.as_bytes().ct_eq(waiting.state.as_bytes())) {
        return (StatusCode::BAD_REQUEST, Html(page("This page belongs to another login."))).into_response();
    }
    let (outcome, text) = match (returned.code, returned.error) {
        (Some(code), None) => (Ok(code), "You can close this page, and return to the terminal."),
        (_, error) => {
            (Err(error.unwrap_or_else(|| "no code".to_owned())), "The login was cancelled. You can close this page.")
        }
    };
    let sender = waiting.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    if sender.is_none_or(|sender| sender.send(outcome).is_err()) {
        return (StatusCode::BAD_REQUEST, Html(page("This login has ended."))).into_response();
    }
    Html(page(text)).into_response()
}

fn page(text: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Login - MLflow</title></head>\n<body><p>{text}</p></body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use tower::ServiceExt;

    use super::*;

    fn waiting() -> (Router, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        let waiting = Arc::new(Waiting { state: "right".to_owned(), outcome: Mutex::new(Some(sender)) });
        (Router::new().route("/", get(returned)).with_state(waiting), receiver)
    }

    async fn status(app: &Router, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn only_the_page_that_knows_the_state_returns_a_code() {
        let (app, mut receiver) = waiting();
        for foreign in ["/?code=x&state=wrong", "/?code=x", "/", "/?state=", "/favicon.ico"] {
            assert!(status(&app, foreign).await >= 400, "{foreign}");
        }
        assert!(receiver.try_recv().is_err());
        assert_eq!(status(&app, "/?code=right-code&state=right").await, 200);
        assert_eq!(receiver.await.unwrap(), Ok("right-code".to_owned()));
        assert_eq!(status(&app, "/?code=again&state=right").await, 400);
    }

    #[tokio::test]
    async fn a_denied_login_has_no_code() {
        for (path, error) in [("/?error=access_denied&state=right", "access_denied"), ("/?state=right", "no code")] {
            let (app, receiver) = waiting();
            assert_eq!(status(&app, path).await, 200);
            assert_eq!(receiver.await.unwrap(), Err(error.to_owned()));
        }
    }
}
