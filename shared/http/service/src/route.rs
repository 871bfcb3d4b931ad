//! Routes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use access::{Arrived, Identity, Permission};
use futures::future::BoxFuture;
use mlflow_api::{Request, Result};

use crate::answer::{Answer, COME_BACK_AFTER};
use crate::endpoint::{Endpoint, Frame, Store, Upload, call, serve, serve_upload};
use crate::incoming::Incoming;

/// Longest body of a form that anybody may send, in bytes.
const LONGEST_FORM: usize = 8 << 10;

type Handler<S> = Arc<dyn Fn(Frame<S>, Incoming) -> BoxFuture<'static, Result<Answer>> + Send + Sync>;

/// The same from a caller and a request that are known, of an endpoint that takes no stream.
type Calling<S> = Arc<dyn Fn(Frame<S>, Identity, Request) -> BoxFuture<'static, Result<Answer>> + Send + Sync>;

/// The paths at which an endpoint is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// `/api/2.0/mlflow/…` and `/ajax-api/2.0/mlflow/…`.
    V2,
    /// `/api/3.0/mlflow/…` and `/ajax-api/3.0/mlflow/…`.
    V3,
    /// `/api/2.0/mlflow-artifacts/…` and `/ajax-api/2.0/mlflow-artifacts/…`.
    Artifacts,
    /// `/ajax-api/2.0/mlflow/…` only: made for the UI.
    AjaxV2,
    /// `/ajax-api/3.0/mlflow/…` only: made for the UI.
    AjaxV3,
    /// As written.
    Bare,
}

/// A route: method, path, permission, endpoint. There is no way to make one without a permission.
pub struct Route<S> {
    /// Method, in upper case.
    pub method: &'static str,
    /// Path below those of `paths`.
    pub path: &'static str,
    /// The paths at which it is served.
    pub paths: Paths,
    /// The permission that the caller needs.
    pub permission: Permission,
    /// After how many seconds a client is to come back that was throttled.
    pub(crate) come_back_after: RangeInclusive<u16>,
    pub(crate) handler: Handler<S>,
    pub(crate) calling: Option<Calling<S>>,
}

impl<S: Store> Route<S> {
    /// A route of an endpoint. The permission is the least that it needs, for the reader of the table.
    #[must_use]
    pub fn to<E: Endpoint<Store = S>>(method: &'static str, path: &'static str, permission: Permission) -> Self {
        let handler: Handler<S> = Arc::new(move |frame, incoming| Box::pin(serve::<E>(frame, permission, incoming)));
        let calling: Calling<S> =
            Arc::new(move |frame, identity, request| Box::pin(call::<E>(frame, permission, identity, request)));
        Self::new(method, path, Paths::V2, permission, handler, Some(calling))
    }

    /// A route of an endpoint that takes its body as a stream.
    #[must_use]
    pub fn upload<E: Upload<Store = S>>(method: &'static str, path: &'static str, permission: Permission) -> Self {
        let handler: Handler<S> =
            Arc::new(move |frame, incoming| Box::pin(serve_upload::<E>(frame, permission, incoming)));
        Self::new(method, path, Paths::V2, permission, handler, None)
    }

    /// A route that is open to everybody and has to know how the request arrived: where one signs in. Its body is a short form.
    #[must_use]
    pub fn open<F, Answering>(method: &'static str, path: &'static str, answer: F) -> Self
    where
        F: Fn(S, Arrived, Request) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<Answer>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        let handler: Handler<S> = Arc::new(move |frame, incoming| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let arrived = incoming.arrived.clone();
                let request = incoming.short(LONGEST_FORM).await?;
                answer(frame.store, arrived, request).await
            })
        });
        Self::new(method, path, Paths::Bare, Permission::Open, handler, None)
    }

    /// A route that always answers with the same text.
    #[must_use]
    pub fn text(path: &'static str, permission: Permission, text: &'static str) -> Self {
        Self::constant("GET", path, Paths::Bare, permission, move || Answer::Text(text))
    }

    /// A route that always answers those who are signed in with the same JSON, under the paths that are made for the UI.
    #[must_use]
    pub fn json(method: &'static str, path: &'static str, paths: Paths, json: &'static str) -> Self {
        Self::constant(method, path, paths, Permission::SignedIn, move || Answer::Json(json.into()))
    }

    fn constant(
        method: &'static str,
        path: &'static str,
        paths: Paths,
        permission: Permission,
        answer: impl Fn() -> Answer + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        let handler: Handler<S> = Arc::new(move |frame, incoming| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                frame.constant(permission, &incoming.arrived).await?;
                Ok(answer())
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
        calling: Option<Calling<S>>,
    ) -> Self {
        Self { method, path, paths, permission, come_back_after: COME_BACK_AFTER, handler, calling }
    }

    /// The same route for clients that wait less long than MLflow's: they are to come back after so many seconds when they are throttled.
    #[must_use]
    pub fn coming_back_after(mut self, seconds: RangeInclusive<u16>) -> Self {
        self.come_back_after = seconds;
        self
    }

    /// The same route under other paths.
    #[must_use]
    pub fn under(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// The full paths, the canonical one first.
    #[must_use]
    pub fn full_paths(&self) -> Vec<String> {
        let path = self.path;
        match self.paths {
            Paths::V2 => vec![format!("/api/2.0/mlflow/{path}"), format!("/ajax-api/2.0/mlflow/{path}")],
            Paths::V3 => vec![format!("/api/3.0/mlflow/{path}"), format!("/ajax-api/3.0/mlflow/{path}")],
            Paths::Artifacts => {
                vec![format!("/api/2.0/mlflow-artifacts/{path}"), format!("/ajax-api/2.0/mlflow-artifacts/{path}")]
            }
            Paths::AjaxV2 => vec![format!("/ajax-api/2.0/mlflow/{path}")],
            Paths::AjaxV3 => vec![format!("/ajax-api/3.0/mlflow/{path}")],
            Paths::Bare => vec![path.to_owned()],
        }
    }
}
