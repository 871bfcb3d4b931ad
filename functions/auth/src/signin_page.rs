//! The sign-in page, and signing out. `sign_on/` handles the part of it that leads to identity
//! providers and back.

use access::RequestHead;
use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::middleware::{Next, from_fn};
use http::{Method, StatusCode};
use mlflow_api::{ErrorCode, Request, Result, UserName};
use permissions::browser_pages::is_of_own_page;
use permissions::{Cookies, LEASE, cookies};
use service::EndpointResponse;

use crate::response_cookies::with_cookies;
use crate::sign_on::{self, RenewalOutcome};
use crate::signin_form::{SignInPage, next};
use crate::store::{SESSION_SECONDS, Store};

/// Shows the page, or continues a sign-in at an identity provider. A user who is already signed in is
/// redirected. If the session is overdue, it is renewed first. If the browser has signed out but its
/// session still exists, the session is ended in every process.
pub(crate) async fn show(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    if sign_on::is_callback(&request) {
        return sign_on::finish(&store, &arrived, &request).await;
    }
    match Cookies::of(&arrived) {
        Cookies::SignedOut(secret) => store.session_end(&secret).await?,
        Cookies::SignedIn(_) if store.has_valid_credentials(&arrived).await? => {
            return Ok(EndpointResponse::SeeOther(next(&request)));
        }
        Cookies::SignedIn(secret) => {
            if let RenewalOutcome::Renewed(renew_by) = sign_on::renew(&store, &secret).await? {
                // Afterwards, every process accepts the session.
                runtime::clock::sleep(LEASE).await;
                let cookie = cookies::renewal_cookie(&arrived, renew_by, SESSION_SECONDS);
                return Ok(with_cookies(EndpointResponse::SeeOther(next(&request)), [cookie]));
            }
        }
        Cookies::None => {}
    }
    match request.argument("provider") {
        Some(provider) => sign_on::start(&store, &arrived, &request, provider).await,
        None => SignInPage::new(&store, &arrived, &request).render(StatusCode::OK, "").await,
    }
}

/// Processes the form. Every sign-in creates a session with a new secret, so a secret that an
/// attacker has planted in the browser never becomes valid.
pub(crate) async fn submit(store: Store, arrived: RequestHead, request: Request) -> Result<EndpointResponse> {
    let fields = fields(&request);
    let field = |name| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str());
    let (name, password) = (field("username"), field("password"));
    let page = SignInPage::new(&store, &arrived, &request);
    if !is_of_own_page(&arrived) {
        let text = "The form was submitted by a page of another server. Sign in here instead.";
        return page.render(StatusCode::FORBIDDEN, text).await;
    }
    let page = page.with_name(name);
    let Some(user) = UserName::named(name).filter(|_| !password.is_empty()) else {
        return page.render(StatusCode::UNAUTHORIZED, "Enter your username and password.").await;
    };
    match store.session_open(&user, password.to_owned(), arrived.connection.peer).await {
        Ok(Some(secret)) => {
            if let Cookies::SignedIn(old) | Cookies::SignedOut(old) = Cookies::of(&arrived) {
                store.session_end(&old).await?;
            }
            // An earlier session may have been opened at an identity provider.
            let others = [cookies::renewal_removal(&arrived), sign_on::sign_out_cookie(&arrived, None)];
            let new = cookies::session_cookies(&arrived, &secret, SESSION_SECONDS);
            Ok(with_cookies(
                EndpointResponse::SeeOther(next(&request)),
                new.into_iter().chain(others.into_iter().flatten()),
            ))
        }
        Ok(None) => page.render(StatusCode::UNAUTHORIZED, "Incorrect username or password.").await,
        Err(error) if error.code == ErrorCode::ResourceExhausted => {
            page.render(StatusCode::TOO_MANY_REQUESTS, &error.message).await
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
