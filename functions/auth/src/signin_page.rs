//! The sign-in page, and signing out.
//!
//! The form has no `action`. It is therefore submitted to the page's own address, and the browser
//! keeps the fragment (after the `#`) across signing in.

use access::RequestHead;
use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::middleware::{Next, from_fn};
use http::header::SET_COOKIE;
use http::{HeaderValue, Method, StatusCode};
use mlflow_api::{ErrorCode, Request, Result, UserName};
use permissions::browser_pages::{is_of_own_page, redirect_path};
use permissions::{Cookies, cookies};
use service::EndpointResponse;

use crate::html_page::{escape, note, page};
use crate::store::{SESSION_SECONDS, Store};

const FORM: &str = r#"<form class="narrow" method="post">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="username" value="NAME" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button>
</form>
"#;
/// Text of the page if no user exists yet.
const NO_USERS_NOTE: &str = "<p>This server has no users yet. Its operator creates the first administrator:</p>\n\
                      <code>mlflow-serverless admin create NAME</code>\n\
                      <p>In AWS, from a release or a checkout, with the credentials that deployed it:</p>\n\
                      <code>./deploy --admin NAME</code>\n<code>make admin NAME=NAME</code>\n";

fn form(status: StatusCode, text: &str, name: &str) -> EndpointResponse {
    page(status, "Sign in", &format!("{}{}", note(text), FORM.replace("NAME", &escape(name))))
}

fn with_cookies(answer: EndpointResponse, cookies: [String; 2]) -> EndpointResponse {
    cookies.into_iter().fold(answer, |answer, cookie| match HeaderValue::from_str(&cookie) {
        Ok(cookie) => answer.with_header(SET_COOKIE, cookie),
        Err(_) => answer,
    })
}

/// Returns the path to redirect to after signing in.
fn next(request: &Request) -> String {
    let next = request.query.iter().find(|(name, _)| name == "next").map(|(_, next)| next.as_str());
    redirect_path(next.unwrap_or("/")).to_owned()
}

/// Shows the form. A user who is already signed in is redirected. If the browser has signed out but
/// its session still exists, the session is ended in every process.
pub(crate) async fn show(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    match Cookies::of(&arrived) {
        Cookies::SignedOut(secret) => store.session_end(&secret).await?,
        Cookies::SignedIn(_) if store.has_valid_credentials(&arrived).await? => {
            return Ok(EndpointResponse::SeeOther(next(&request)));
        }
        Cookies::SignedIn(_) | Cookies::None => {}
    }
    if !store.has_users().await? {
        return Ok(page(StatusCode::OK, "Sign in", NO_USERS_NOTE));
    }
    Ok(form(StatusCode::OK, "", ""))
}

/// Processes the form. Every sign-in creates a session with a new secret, so a secret that an
/// attacker has planted in the browser never becomes valid.
pub(crate) async fn submit(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    if !is_of_own_page(&arrived) {
        return Ok(form(
            StatusCode::FORBIDDEN,
            "The form was submitted by a page of another server. Sign in here instead.",
            "",
        ));
    }
    let fields = fields(&request);
    let field = |name| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str());
    let (name, password) = (field("username"), field("password"));
    let Some(user) = UserName::named(name).filter(|_| !password.is_empty()) else {
        return Ok(form(StatusCode::UNAUTHORIZED, "Enter your username and password.", name));
    };
    match store.session_open(&user, password.to_owned(), arrived.connection.peer).await {
        Ok(Some(secret)) => {
            if let Cookies::SignedIn(old) | Cookies::SignedOut(old) = Cookies::of(&arrived) {
                store.session_end(&old).await?;
            }
            Ok(with_cookies(
                EndpointResponse::SeeOther(next(&request)),
                cookies::session_cookies(&arrived, &secret, SESSION_SECONDS),
            ))
        }
        Ok(None) => Ok(form(StatusCode::UNAUTHORIZED, "Incorrect username or password.", name)),
        Err(error) if error.code == ErrorCode::ResourceExhausted => {
            Ok(form(StatusCode::TOO_MANY_REQUESTS, &error.message, name))
        }
        Err(error) => Err(error),
    }
}

/// Returns the fields of a submitted form.
pub(crate) fn fields(request: &Request) -> Vec<(String, String)> {
    Request::parse_query(&String::from_utf8_lossy(&request.body))
}

/// Ends the session of a browser that has signed out. MLflow's page signs out by deleting a cookie
/// and then requesting the current user.
pub(crate) fn end_signed_out_sessions(router: Router, store: Store) -> Router {
    router.layer(from_fn(move |request: HttpRequest, next: Next| {
        let store = store.clone();
        async move {
            let (parts, body) = request.into_parts();
            if parts.method == Method::GET && parts.uri.path().ends_with("/users/current") {
                let arrived = RequestHead::of(&parts);
                if let Cookies::SignedOut(secret) = Cookies::of(&arrived)
                    && let Err(error) = store.session_end(&secret).await
                {
                    // The error is only logged, because the browser no longer has the session's
                    // cookie, and the session expires anyway.
                    tracing::error!(%error, "failed to end a session");
                }
            }
            next.run(HttpRequest::from_parts(parts, body)).await
        }
    }))
}
