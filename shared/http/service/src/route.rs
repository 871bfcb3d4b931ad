//! Routes of a function.

use std::ops::RangeInclusive;
use std::sync::Arc;

use access::{Identity, Permission, RequestHead};
use futures::future::BoxFuture;
use mlflow_api::{Request, Result};

use crate::endpoint::{DomainStore, Endpoint, FunctionContext, Upload, call, serve, serve_upload};
use crate::endpoint_response::{EndpointResponse, RETRY_AFTER_SECONDS};
use crate::incoming_request::IncomingRequest;
use crate::refusal::Refusal;

/// Maximum size of a form from an unauthenticated client, in bytes.
const MAX_FORM_BYTES: usize = 8 << 10;

type Handler<S> =
    Arc<dyn Fn(FunctionContext<S>, IncomingRequest) -> BoxFuture<'static, Result<EndpointResponse>> + Send + Sync>;

/// A handler for calls within the server, which takes an authenticated caller and a complete
/// request. Endpoints that take a stream have none.
type CallHandler<S> =
    Arc<dyn Fn(FunctionContext<S>, Identity, Request) -> BoxFuture<'static, Result<EndpointResponse>> + Send + Sync>;

/// The paths under which an endpoint is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// `/api/2.0/mlflow/…` and `/ajax-api/2.0/mlflow/…`.
    V2,
    /// `/api/3.0/mlflow/…` and `/ajax-api/3.0/mlflow/…`.
    V3,
    /// Only `/api/3.0/mlflow/…`, for endpoints that have a different response for the user
    /// interface under `/ajax-api`.
    ApiV3,
    /// `/api/2.0/mlflow-artifacts/…` and `/ajax-api/2.0/mlflow-artifacts/…`.
    Artifacts,
    /// Only `/ajax-api/2.0/mlflow/…`, for endpoints of the user interface.
    AjaxV2,
    /// Only `/ajax-api/3.0/mlflow/…`, for endpoints of the user interface.
    AjaxV3,
    /// The path as written, without a prefix.
    Bare,
}

/// A route: method, path, permission and endpoint. A route cannot be created without a permission.
pub struct Route<S> {
    /// Method, in upper case.
    pub method: &'static str,
    /// Path, relative to the prefixes of `paths`.
    pub path: &'static str,
    /// The paths under which the route is served.
    pub paths: Paths,
    /// The path parameter whose values contain one slash, if there is one.
    pub(crate) slashed: Option<&'static str>,
    /// A path parameter, and a value of it that is a literal part in the path of another route
    /// ([`with_word_in`](Self::with_word_in)).
    pub(crate) word: Option<(&'static str, &'static str)>,
    /// The permission that the route requires.
    pub permission: Permission,
    /// The response, if the route belongs to a feature that is switched off.
    pub refusal: Option<Refusal>,
    /// Range of `Retry-After` for throttled clients, in seconds.
    pub(crate) retry_after: RangeInclusive<u16>,
    pub(crate) handler: Handler<S>,
    pub(crate) call_handler: Option<CallHandler<S>>,
}

impl<S: DomainStore> Route<S> {
    /// Creates the route of an endpoint. `permission` is the minimum that the endpoint needs, and
    /// part of the table of routes.
    #[must_use]
    pub fn to<E: Endpoint<Store = S>>(method: &'static str, path: &'static str, permission: Permission) -> Self {
        let handler: Handler<S> = Arc::new(move |frame, incoming| Box::pin(serve::<E>(frame, permission, incoming)));
        let calling: CallHandler<S> =
            Arc::new(move |frame, identity, request| Box::pin(call::<E>(frame, permission, identity, request)));
        Self::new(method, path, Paths::V2, permission, handler, Some(calling))
    }

    /// Creates the route of an endpoint that takes its body as a stream.
    #[must_use]
    pub fn upload<E: Upload<Store = S>>(method: &'static str, path: &'static str, permission: Permission) -> Self {
        let handler: Handler<S> =
            Arc::new(move |frame, incoming| Box::pin(serve_upload::<E>(frame, permission, incoming)));
        Self::new(method, path, Paths::V2, permission, handler, None)
    }

    /// Creates a public route that receives the request with its headers, such as the sign-in page.
    /// Its body is a short form.
    #[must_use]
    pub fn open<F, Answering>(method: &'static str, path: &'static str, answer: F) -> Self
    where
        F: Fn(S, RequestHead, Request) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<EndpointResponse>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        let handler: Handler<S> = Arc::new(move |frame, incoming| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let arrived = incoming.head.clone();
                let request = incoming.read_short_body(MAX_FORM_BYTES).await?;
                answer(frame.store, arrived, request).await
            })
        });
        Self::new(method, path, Paths::Bare, Permission::Open, handler, None)
    }

    /// Creates a route that always responds with the same text.
    #[must_use]
    pub fn text(path: &'static str, permission: Permission, text: &'static str) -> Self {
        Self::constant("GET", path, Paths::Bare, permission, move || EndpointResponse::Text(text))
    }

    /// Creates a route that always responds with the same JSON to authenticated callers. For
    /// endpoints of the user interface.
    #[must_use]
    pub fn json(method: &'static str, path: &'static str, paths: Paths, json: &'static str) -> Self {
        Self::constant(method, path, paths, Permission::SignedIn, move || EndpointResponse::Json(json.into()))
    }

    /// Creates the route of an endpoint whose feature is switched off, which responds to
    /// authenticated callers without reading the body of the request.
    #[must_use]
    pub fn refused(method: &'static str, path: &'static str, paths: Paths, refusal: Refusal) -> Self {
        let answer = move |request: &Request| refusal.response(request);
        let route = Self::answering(method, path, paths, Permission::SignedIn, answer);
        Self { refusal: Some(refusal), ..route }
    }

    fn constant(
        method: &'static str,
        path: &'static str,
        paths: Paths,
        permission: Permission,
        answer: impl Fn() -> EndpointResponse + Send + Sync + 'static,
    ) -> Self {
        Self::answering(method, path, paths, permission, move |_| answer())
    }

    /// Creates a route whose response depends neither on the body of the request nor on the table.
    fn answering(
        method: &'static str,
        path: &'static str,
        paths: Paths,
        permission: Permission,
        answer: impl Fn(&Request) -> EndpointResponse + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        let handler: Handler<S> = Arc::new(move |frame, incoming| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                frame.authorize_constant(permission, &incoming.head).await?;
                Ok(answer(&incoming.request))
            })
        });
        Self::new(method, path, paths, permission, handler, None)
    }

    fn new(
        method: &'static str,
        path: &'static str,
        paths: Paths,
        permission: Permission,
        handler: Handler<S>,
        calling: Option<CallHandler<S>>,
    ) -> Self {
        Self {
            method,
            path,
            paths,
            slashed: None,
            word: None,
            permission,
            refusal: None,
            retry_after: RETRY_AFTER_SECONDS,
            handler,
            call_handler: calling,
        }
    }

    /// Sets the range of `Retry-After` in seconds, for clients that give up earlier than MLflow's
    /// client does.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: RangeInclusive<u16>) -> Self {
        self.retry_after = seconds;
        self
    }

    /// Declares that the values of a path parameter contain one slash. Clients escape it, but API
    /// Gateway resolves the escape, so the route is found by both forms of the path.
    #[must_use]
    pub fn with_slash_in(mut self, parameter: &'static str) -> Self {
        self.slashed = Some(parameter);
        self
    }

    /// Declares that a value of a path parameter (`word`) is a literal part in the path of a route
    /// with another method. For that value, the router prefers the literal path, which does not
    /// have this route's method. This route is therefore registered under the literal path, too.
    #[must_use]
    pub fn with_word_in(mut self, parameter: &'static str, word: &'static str) -> Self {
        self.word = Some((parameter, word));
        self
    }

    /// Returns the patterns under which the router finds the route.
    pub(crate) fn patterns(&self, path: &str) -> Vec<String> {
        let path = path.replace("/@{", &format!("/{AT_SIGN}/{{"));
        let path = path.as_str();
        let worded =
            self.word.and_then(|(name, word)| path.strip_suffix(&format!("/{{{name}}}")).map(|path| (path, word)));
        let unescaped = self.slashed.map(|name| {
            let [first, second] = slashed_parts(name);
            path.replace(&format!("{{{name}}}"), &format!("{{{first}}}/{{{second}}}"))
        });
        let unescaped = unescaped.filter(|pattern| pattern != path);
        // If the parameter follows another one, as a name follows an organization, no literal part
        // of another route is in its place.
        let worded = worded.filter(|(path, _)| !path.ends_with('}')).map(|(path, word)| format!("{path}/{word}"));
        std::iter::once(path.to_owned()).chain(unescaped).chain(worded).collect()
    }

    /// Serves the route under other paths.
    #[must_use]
    pub fn under(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// Returns the full paths, the canonical one first.
    #[must_use]
    pub fn full_paths(&self) -> Vec<String> {
        let path = self.path;
        match self.paths {
            Paths::V2 => vec![format!("/api/2.0/mlflow/{path}"), format!("/ajax-api/2.0/mlflow/{path}")],
            Paths::V3 => vec![format!("/api/3.0/mlflow/{path}"), format!("/ajax-api/3.0/mlflow/{path}")],
            Paths::ApiV3 => vec![format!("/api/3.0/mlflow/{path}")],
            Paths::Artifacts => {
                vec![format!("/api/2.0/mlflow-artifacts/{path}"), format!("/ajax-api/2.0/mlflow-artifacts/{path}")]
            }
            Paths::AjaxV2 => vec![format!("/ajax-api/2.0/mlflow/{path}")],
            Paths::AjaxV3 => vec![format!("/ajax-api/3.0/mlflow/{path}")],
            Paths::Bare => vec![path.to_owned()],
        }
    }
}

/// The part of a path that replaces an at sign before a parameter. The router only supports
/// parameters that are whole parts, so the at sign has to be a part of its own
/// ([`routed_skill_path`]).
const AT_SIGN: &str = "@";

/// Converts the path of a skill to the form that the router supports. The at sign before an
/// organization is separated from it: `skills/@a/b` becomes `skills/@/a/b`. A part that consists
/// only of an at sign becomes `@@`, so that the path `skills/@/a/b`, which is invalid, does not turn
/// into that of a skill. As in MLflow, an encoded slash separates parts. Returns `None` if the path
/// does not change.
pub(crate) fn routed_skill_path(path: &str) -> Option<String> {
    let prefix = SEPARATED_PREFIXES.iter().find(|prefix| path.starts_with(**prefix))?;
    let rest = path.strip_prefix(prefix)?;
    let decoded = rest.replace("%2F", "/").replace("%2f", "/");
    let separated = decoded.split_once('/').and_then(|(first, after)| {
        let name = first.strip_prefix('@').or_else(|| first.strip_prefix("%40"))?;
        let separated = if name.is_empty() { format!("{AT_SIGN}{AT_SIGN}") } else { format!("{AT_SIGN}/{name}") };
        Some(format!("{separated}/{after}"))
    });
    let routed = separated.unwrap_or(decoded);
    (routed != rest).then(|| format!("{prefix}{routed}"))
}

/// Prefixes of the paths in which an at sign may precede a parameter.
const SEPARATED_PREFIXES: [&str; 2] = ["/api/3.0/mlflow/skills/", "/ajax-api/3.0/mlflow/skills/"];

/// Returns the names of the two parts that a path parameter with a slash is split into.
fn slashed_parts(name: &str) -> [String; 2] {
    [format!("{name}_before"), format!("{name}_after")]
}

/// Joins the two parts of a path parameter with a slash.
pub(crate) fn join_slashed(name: &str, path: &mut Vec<(String, String)>) {
    let [first, second] = slashed_parts(name);
    let mut take = |part: &str| {
        let place = path.iter().position(|(name, _)| name == part)?;
        Some(path.remove(place).1)
    };
    if let (Some(before), Some(after)) = (take(&first), take(&second)) {
        path.push((name.to_owned(), format!("{before}/{after}")));
    }
}
