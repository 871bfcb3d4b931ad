//! A server with users, and clients that have no credentials.

use std::sync::Arc;

use access::{Authorizer, ConnectionInfo, Identity, RequestHead};
use auth::store::Store;
use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use embedded_engine::Engine;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, Request};
use http_body_util::BodyExt;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use permissions::UserAuthorizer;
use serde_json::Value;
use sha2::{Digest, Sha256};
use table::Table;
use tower::ServiceExt;

pub(crate) const HOST_NAME: &str = "ml.example:5000";
pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
pub(crate) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// A server with the user `ann`.
pub(crate) struct OauthSite {
    pub(crate) store: Store,
    authorizer: UserAuthorizer,
    router: Router,
}

/// A response.
pub(crate) struct Shown {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Shown {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}", self.text))
    }

    /// Returns status and code of an error.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_else(|| panic!("{}", self.text)).to_owned())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the value of a hidden field of the page's form.
    pub(crate) fn field(&self, name: &str) -> String {
        let begin = format!("<input type=\"hidden\" name=\"{name}\" value=\"");
        let rest = self.text.split_once(&begin).unwrap_or_else(|| panic!("no {name} in {}", self.text)).1;
        rest.split_once('"').unwrap().0.to_owned()
    }
}

impl OauthSite {
    pub(crate) async fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let data = Table::new(engine.client(), "mlflow");
        data.create_if_missing().await.unwrap();
        engine.end_stream("mlflow").await.unwrap();
        let access = data.beside("mlflow-access");
        access.create_access_if_missing().await.unwrap();
        let authorizer = UserAuthorizer::new(data.clone(), access.clone(), PermissionLevel::NoPermissions);
        let store = Store::new(data, access, authorizer.clone());
        let site = Self { router: auth::router(&store, Arc::new(authorizer.clone())), store, authorizer };
        site.user("ann").await;
        site
    }

    pub(crate) async fn user(&self, name: &str) {
        self.store.user_create(&user(name), PASSWORD.to_owned(), false).await.unwrap();
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(HeaderName, &str)], body: &str) -> Shown {
        let request = Request::builder().method(method).uri(path).header(HOST, HOST_NAME);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let has_type = headers.iter().any(|(name, _)| name == CONTENT_TYPE);
        let form = (!has_type).then_some("application/x-www-form-urlencoded");
        let request = form.into_iter().fold(request, |request, form| request.header(CONTENT_TYPE, form));
        self.receive(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Sends a form from a client at this address.
    pub(crate) async fn send_from(&self, address: &str, path: &str, body: &str) -> Shown {
        let connection = ConnectionInfo { peer: Some(address.parse().unwrap()), ..ConnectionInfo::default() };
        let request = Request::post(path).header(HOST, HOST_NAME).extension(connection);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.receive(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    async fn receive(&self, request: Request<Body>) -> Shown {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.into_body().collect().await.unwrap().to_bytes();
        Shown { status, headers, text: String::from_utf8_lossy(&text).into_owned() }
    }

    /// Sends a request with the password of a user.
    pub(crate) async fn send_as(&self, name: &str, method: &str, path: &str, body: &str) -> Shown {
        let credentials = format!("Basic {}", STANDARD.encode(format!("{name}:{PASSWORD}")));
        self.send(method, path, &[(AUTHORIZATION, &credentials)], body).await
    }

    /// Sends a form to the token endpoint.
    pub(crate) async fn token(&self, form: &[(&str, &str)]) -> Shown {
        self.send("POST", "/oauth/token", &[], &encoded(form)).await
    }

    /// Returns the status of a request with a token.
    pub(crate) async fn status(&self, token: &str) -> u16 {
        let bearer = format!("Bearer {token}");
        self.send("GET", "/api/2.0/mlflow/users/current", &[(AUTHORIZATION, &bearer)], "").await.status
    }

    /// Returns the identity of a request.
    pub(crate) async fn identity(&self, arrived: &RequestHead) -> Identity {
        self.authorizer.authenticate(arrived).await.unwrap()
    }

    /// Returns the names of the user's tokens on the page.
    pub(crate) async fn tokens(&self, name: &str) -> Vec<String> {
        self.store.tokens(&user(name)).await.unwrap().into_iter().map(|token| token.name).collect()
    }
}

pub(crate) fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

/// Returns fields as the body of a form.
pub(crate) fn encoded(form: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        let bytes = text.bytes().map(|byte| {
            if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        });
        bytes.collect::<String>()
    };
    form.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect::<Vec<_>>().join("&")
}

/// Returns the PKCE challenge of a verifier.
pub(crate) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}
