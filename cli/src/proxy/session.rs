//! A session that admits a single browser: the first one that opens the one-time URL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CACHE_CONTROL, COOKIE, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};
use rand::RngExt;
use subtle::{Choice, ConstantTimeEq};

/// Path prefix of the one-time URL. The token follows it.
const OPEN_PATH_PREFIX: &str = "/open/";
/// Prefix of the cookie's name. The port is appended, because browsers send the cookies of one port
/// to all ports of a host.
const COOKIE_PREFIX: &str = "mlflow_proxy_";

/// The token of the one-time URL, and the secret that is exchanged for it.
pub(crate) struct ProxySession {
    token: String,
    is_spent: AtomicBool,
    cookie: String,
    secret: String,
}

impl ProxySession {
    /// Creates a session for the proxy at this port.
    pub(crate) fn new(port: u16) -> Self {
        Self {
            token: random(),
            is_spent: AtomicBool::new(false),
            cookie: format!("{COOKIE_PREFIX}{port}"),
            secret: random(),
        }
    }

    /// Returns the path of the one-time URL.
    pub(crate) fn one_time_path(&self) -> String {
        format!("{OPEN_PATH_PREFIX}{}", self.token)
    }

    /// Returns whether the browser has the session's cookie. Another server on the same host may
    /// have set further cookies of this name, so one correct value among them is enough. The secret
    /// cannot be guessed.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        let values = pairs.filter_map(|(name, value)| (name == self.cookie).then_some(value));
        let found = values.fold(Choice::from(0), |found, value| found | is_same(value, &self.secret));
        found.into()
    }

    /// Returns whether this is the first request with the one-time token. Later requests with the
    /// token get `false`.
    fn spend(&self, token: &str) -> bool {
        bool::from(is_same(token, &self.token)) && !self.is_spent.swap(true, Ordering::AcqRel)
    }
}

/// Admits requests of the browser that has the cookie, and exchanges the one-time URL for the
/// cookie.
pub(crate) async fn admit(State(session): State<Arc<ProxySession>>, request: Request, next: Next) -> Response {
    let token = request.uri().path().strip_prefix(OPEN_PATH_PREFIX);
    let is_known = session.is_known(request.headers());
    match token {
        None if is_known => next.run(request).await,
        // The browser navigated back to the one-time URL, or reloaded it.
        Some(_) if is_known => redirect_home().into_response(),
        // HEAD requests do not use up the token, because programs that check links send them.
        Some(token) if request.method() == Method::GET && session.spend(token) => {
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", session.cookie, session.secret);
            ([(SET_COOKIE, cookie)], redirect_home()).into_response()
        }
        Some(_) => refused(
            "This URL is invalid, or has been opened before. It works only once: restart the proxy for a new one.",
        ),
        None => refused(
            "This proxy only serves the browser that opened the one-time URL, which the proxy printed when it started. \
             If that was not your browser, restart the proxy.",
        ),
    }
}

/// Redirects to the start page, whose URL does not contain the token, so that no `Referer`
/// discloses it.
fn redirect_home() -> impl IntoResponse {
    (StatusCode::SEE_OTHER, [(LOCATION, "/"), (CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer")])
}

fn refused(text: &'static str) -> Response {
    (StatusCode::FORBIDDEN, [(CACHE_CONTROL, "no-store")], text).into_response()
}

/// Returns 256 random bits in text form.
fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>())
}

/// Compares in constant time, so that the duration does not disclose how much of the value is
/// correct.
fn is_same(sent: &str, expected: &str) -> Choice {
    sent.as_bytes().ct_eq(expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::any;
    use tower::ServiceExt;

    use super::*;

    async fn sent(session: &Arc<ProxySession>, method: &str, path: &str, cookies: &str) -> Response {
        let app = Router::new().fallback(any(|| async { "in" })).layer(from_fn_with_state(Arc::clone(session), admit));
        let request = Request::builder().method(method).uri(path).header(COOKIE, cookies).body(Body::empty());
        app.oneshot(request.unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn the_first_opening_spends_the_url_and_the_cookie_is_needed_from_then_on() {
        let session = Arc::new(ProxySession::new(5001));
        let url = session.one_time_path();
        for path in ["/", "/open/", "/open/wrong", &url[..url.len() - 1], "/api/2.0/mlflow/experiments/search"] {
            assert_eq!(sent(&session, "GET", path, "").await.status(), StatusCode::FORBIDDEN, "{path}");
        }
        for method in ["HEAD", "POST", "OPTIONS"] {
            assert_eq!(sent(&session, method, &url, "").await.status(), StatusCode::FORBIDDEN, "{method}");
        }
        let opened = sent(&session, "GET", &url, "").await;
        assert_eq!((opened.status(), &opened.headers()[LOCATION]), (StatusCode::SEE_OTHER, &"/".parse().unwrap()));
        let set = opened.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        let (cookie, rest) = set.split_once("; ").unwrap();
        assert!(cookie.starts_with("mlflow_proxy_5001=") && !cookie.contains(&session.token), "{cookie}");
        assert_eq!(rest, "Path=/; HttpOnly; SameSite=Strict");
        let again = sent(&session, "GET", &url, "").await;
        assert_eq!((again.status(), again.headers().contains_key(SET_COOKIE)), (StatusCode::FORBIDDEN, false));
        assert_eq!(sent(&session, "GET", &url, cookie).await.status(), StatusCode::SEE_OTHER);
        assert_eq!(sent(&session, "POST", "/", cookie).await.status(), StatusCode::OK);
        assert_eq!(
            sent(&session, "GET", "/", &format!("mlflow_proxy_5001=x; a=b; {cookie}")).await.status(),
            StatusCode::OK
        );
        for other in
            ["mlflow_proxy_5001=", "mlflow_proxy_5001=x", &cookie.replace("5001", "5002"), &cookie[..cookie.len() - 1]]
        {
            assert_eq!(sent(&session, "GET", "/", other).await.status(), StatusCode::FORBIDDEN, "{other}");
        }
    }
}
