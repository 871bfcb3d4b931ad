//! Conversion of routes to an axum router.

use std::any::Any;
use std::sync::Arc;

use access::{Authorizer, RequestHead};
use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use http::{Extensions, HeaderMap, StatusCode, Version};
use mlflow_api::{Error, ErrorCode};
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

use crate::endpoint::{DomainStore, FunctionContext};
use crate::endpoint_response::{error_response, error_with_retry, html_method_not_allowed, html_unknown_path};
use crate::incoming_request::IncomingRequest;
use crate::request_line::note_route;
use crate::route::{Route, join_slashed};
use crate::router_authentication::PUBLIC_PATH_PREFIXES;
use crate::workspace_rejection::reject_workspaces;

/// Minimum size of a compressed response, in bytes. Applies to clients that accept gzip.
const MIN_COMPRESSED_BYTES: u64 = 4 << 10;
/// Compression level. For a page of 100 runs, level 4 takes 2.4 ms of CPU time. The usual level 6
/// takes 4.3 ms and makes the response only 2 % smaller.
const COMPRESSION_LEVEL: CompressionLevel = CompressionLevel::Precise(4);

/// Builds the router of a function: its routes, MLflow's 404 for all other paths, and a response
/// even if code panics.
pub fn router<S: DomainStore>(routes: Vec<Route<S>>, frame: &FunctionContext<S>) -> Router {
    let mut app = Router::new();
    for route in routes {
        let paths = route.full_paths().into_iter();
        for (path, pattern) in
            paths.flat_map(|path| route.patterns(&path).into_iter().map(move |pattern| (path.clone(), pattern)))
        {
            let (frame, handler) = (frame.clone(), route.handler.clone());
            let (come_back_after, slashed, word) = (route.retry_after.clone(), route.slashed, route.word);
            let told: Arc<str> = format!("{} {path}", route.method).into();
            let serve = move |request: HttpRequest| async move {
                note_route(&told);
                let headers = request.headers().clone();
                let answer = match IncomingRequest::read(request).await {
                    Ok(mut incoming) => {
                        if let Some(name) = slashed {
                            join_slashed(name, &mut incoming.request.path);
                        }
                        if let Some((name, word)) = word.filter(|(name, _)| incoming.request.path_part(name).is_empty())
                        {
                            incoming.request.path.push((name.to_owned(), word.to_owned()));
                        }
                        handler(frame, incoming).await
                    }
                    Err(error) => Err(error),
                };
                answer.map_or_else(
                    |error| error_with_retry(&error, come_back_after),
                    |answer| answer.into_response(&headers),
                )
            };
            app = app.route(&pattern, on(method_filter(route.method), serve));
        }
    }
    let authorizer = Arc::clone(&frame.authorizer);
    let app = app
        .fallback(move |request: HttpRequest| unknown(Arc::clone(&authorizer), request))
        .method_not_allowed_fallback(|| async { html_method_not_allowed() });
    let app = if frame.authorizer.has_workspaces() { app } else { reject_workspaces(app) };
    let compressing = CompressionLayer::new().gzip(true).quality(COMPRESSION_LEVEL);
    with_browser_headers(
        app.layer(compressing.compress_when(SizeAbove::new(MIN_COMPRESSED_BYTES).and(is_compressible)))
            .layer(CatchPanicLayer::custom(panicked)),
    )
}

/// Responds to a path without a route with a 404. As in MLflow, callers have to authenticate first
/// if the server requires authentication. From the 404, stock clients conclude that the server does
/// not have the endpoint.
async fn unknown(authorizer: Arc<dyn Authorizer>, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    if PUBLIC_PATH_PREFIXES.iter().any(|open| parts.uri.path().starts_with(open)) {
        return html_unknown_path();
    }
    match authorizer.authenticate(&RequestHead::of(&parts)).await {
        Err(error) if error.code == ErrorCode::Unauthenticated => error_response(&error),
        _ => html_unknown_path(),
    }
}

/// Builds a router without routes.
pub fn empty_router() -> Router {
    Router::new().fallback(|| async { html_unknown_path() })
}

/// Merges the routers of several functions. The first one answers unknown paths.
pub fn join_routers(first: Router, others: impl IntoIterator<Item = Router>) -> Router {
    others.into_iter().fold(first, |joined, other| joined.merge(other.reset_fallback()))
}

fn method_filter(method: &str) -> MethodFilter {
    match method {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

/// Excludes files from compression. Most are already compressed, and clients could not request a
/// range of a compressed response.
fn is_compressible(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !headers.contains_key(CONTENT_DISPOSITION)
}

/// Responds to a panic, which is always a defect, and logs its message.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over")]
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
    error_response(&Error::internal(text))
}

/// Adds headers for browsers to each response: the content type must not be guessed, and the
/// response must not be cached.
pub(crate) fn with_browser_headers(router: Router) -> Router {
    router.layer(axum::middleware::map_response(protect))
}

async fn protect(mut response: Response<Body>) -> Response<Body> {
    let header = http::HeaderValue::from_static("nosniff");
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, header);
    // A response is meant for one caller only, and becomes stale quickly.
    response.headers_mut().entry(CACHE_CONTROL).or_insert(http::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use access::{
        AccessCheck, AllowAll, Authorizer, AuthorizerItems, Identity, Needs, Permission, RequestHead, Resource, Scope,
        Visibility,
    };
    use bytes::Bytes;
    use futures::future::BoxFuture;
    use futures::{StreamExt, TryStreamExt};
    use http::header::CONTENT_TYPE;
    use http_body_util::BodyExt;
    use mlflow_api::{ErrorCode, Request, Result};
    use serde_json::{Value, json};
    use table::Table;
    use tower::ServiceExt;

    use super::*;
    use crate::incoming_request::MAX_BODY_BYTES;
    use crate::{BodyStream, Endpoint, Paths, Upload};

    #[derive(Clone)]
    struct EchoStore {
        prefix: &'static str,
        table: Table,
    }

    impl DomainStore for EchoStore {
        fn table(&self) -> &Table {
            &self.table
        }

        fn for_request(&self, _: &Scope) -> Self {
            self.clone()
        }
    }

    /// An endpoint that returns its input.
    struct Echo {
        fail: Option<String>,
        body: String,
        name: String,
    }

    impl Endpoint for Echo {
        type Store = EchoStore;
        type Answer = Value;

        fn read(request: &Request) -> Result<Self> {
            let fail = request.argument("fail").map(str::to_owned);
            let body = String::from_utf8_lossy(&request.body).into_owned();
            Ok(Self { fail, body, name: request.path_part("name").to_owned() })
        }

        fn needs(&self) -> Needs {
            Needs::nothing()
        }

        async fn act(self, _: &Scope, store: &EchoStore) -> Result<Value> {
            match self.fail.as_deref() {
                None => Ok(json!({ "prefix": store.prefix, "body": self.body, "name": self.name })),
                Some("panic") => panic!("of the test"),
                Some(message) => Err(Error::invalid(message)),
            }
        }
    }

    /// An endpoint that requires a `GET` with arguments.
    struct Arguments;

    impl Endpoint for Arguments {
        type Store = EchoStore;
        type Answer = Value;

        fn read(request: &Request) -> Result<Self> {
            let has_arguments = request.method == "GET" && !request.query.is_empty();
            if has_arguments { Ok(Self) } else { Err(Error::invalid("Without arguments.")) }
        }

        fn needs(&self) -> Needs {
            Needs::nothing()
        }

        async fn act(self, _: &Scope, _: &EchoStore) -> Result<Value> {
            Ok(json!({}))
        }
    }

    /// An endpoint that returns the length of its body.
    struct Count;

    impl Upload for Count {
        type Store = EchoStore;
        type Answer = Value;

        fn read(request: &Request) -> Result<Self> {
            assert!(request.body.is_empty());
            Ok(Self)
        }

        fn needs(&self) -> Needs {
            Needs::nothing()
        }

        async fn act(self, _: &Scope, _: &EchoStore, body: BodyStream) -> Result<Value> {
            let length = body.length;
            let read = body.chunks.try_fold(0, |read, chunk| async move { Ok(read + chunk.len()) }).await?;
            Ok(json!({ "length": length, "read": read }))
        }
    }

    fn frame() -> FunctionContext<EchoStore> {
        let engine = embedded_engine::Engine::memory().unwrap();
        FunctionContext::new(EchoStore { prefix: "p", table: Table::new(engine.client(), "none") }, Arc::new(AllowAll))
    }

    #[tokio::test]
    async fn bodies_that_are_streamed_have_no_limit_and_are_not_read_before_the_caller_is_known() {
        let routes = || vec![Route::upload::<Count>("PUT", "count", Permission::SignedIn)];
        let put = |body| http::Request::put("/api/2.0/mlflow/count").body(body).unwrap();
        let chunk = Bytes::from(vec![0; 1 << 20]);
        let chunks = futures::stream::iter(std::iter::repeat_n(chunk, 40)).map(Ok::<_, std::convert::Infallible>);
        let app = router(routes(), &frame());
        let response = app.clone().oneshot(put(Body::from_stream(chunks))).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], br#"{"length":null,"read":41943040}"#);
        let response = app.oneshot(put(Body::from("four"))).await.unwrap();
        assert_eq!(&response.into_body().collect().await.unwrap().to_bytes()[..], br#"{"length":4,"read":4}"#);
        let closed = router(routes(), &FunctionContext::new(frame().store, Arc::new(Closed)));
        let unread =
            futures::stream::poll_fn(|_| -> std::task::Poll<Option<std::io::Result<Bytes>>> { panic!("is read") });
        let response = closed.oneshot(put(Body::from_stream(unread))).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    }

    async fn call(method: &str, uri: &str, body: Body) -> (StatusCode, String, String) {
        let routes = vec![
            Route::to::<Echo>("GET", "things/get", Permission::SignedIn),
            Route::to::<Echo>("POST", "things/get", Permission::SignedIn),
            Route::to::<Echo>("GET", "only", Permission::SignedIn).under(Paths::AjaxV2),
            Route::to::<Echo>("DELETE", "things/{name}", Permission::SignedIn),
            Route::to::<Echo>("GET", "slashed/{name}", Permission::SignedIn).with_slash_in("name"),
            Route::to::<Echo>("GET", "slashed/{name}/versions/{*version}", Permission::SignedIn).with_slash_in("name"),
            Route::to::<Arguments>("GET", "arguments", Permission::SignedIn),
            Route::text("/health", Permission::Open, "OK"),
        ];
        let request = http::Request::builder().method(method).uri(uri).body(body).unwrap();
        let response = router(routes, &frame()).oneshot(request).await.unwrap();
        let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, content_type, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn rows_stand_under_both_prefixes() {
        for path in ["/api/2.0/mlflow/things/get", "/ajax-api/2.0/mlflow/things/get"] {
            for method in ["GET", "POST"] {
                let (status, content_type, body) = call(method, path, Body::from("x")).await;
                assert_eq!((status, content_type.as_str()), (StatusCode::OK, "application/json"));
                assert_eq!(body, r#"{"prefix":"p","body":"x","name":""}"#);
            }
        }
        assert_eq!(call("GET", "/ajax-api/2.0/mlflow/only", Body::empty()).await.0, StatusCode::OK);
        assert_eq!(call("GET", "/api/2.0/mlflow/only", Body::empty()).await.0, StatusCode::NOT_FOUND);
        assert_eq!(call("GET", "/health", Body::empty()).await.2, "OK");
    }

    #[tokio::test]
    async fn a_head_is_a_get_without_a_body() {
        for (uri, expected) in [
            ("/api/2.0/mlflow/arguments?name=x", StatusCode::OK),
            ("/api/2.0/mlflow/arguments", StatusCode::BAD_REQUEST),
        ] {
            let (status, content_type, body) = call("HEAD", uri, Body::empty()).await;
            assert_eq!((status, content_type.as_str(), body.as_str()), (expected, "application/json", ""), "{uri}");
            assert_eq!(call("GET", uri, Body::empty()).await.0, expected, "{uri}");
        }
    }

    #[tokio::test]
    async fn parts_of_paths_are_decoded() {
        let (status, _, body) = call("DELETE", "/api/2.0/mlflow/things/a%20b%2F%C3%A9", Body::empty()).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["name"], "a b/é");
        let (status, _, _) = call("DELETE", "/api/2.0/mlflow/things/%ff", Body::empty()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn an_escaped_slash_in_a_name_is_one_of_its_path() {
        for path in ["a%2Fb", "a/b", "a%2Fb/versions/1/2", "a/b/versions/1"] {
            let (status, _, body) = call("GET", &format!("/api/2.0/mlflow/slashed/{path}"), Body::empty()).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["name"], "a/b", "{path}");
        }
        assert_eq!(call("GET", "/api/2.0/mlflow/slashed/a/b/c", Body::empty()).await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn unknown_paths_and_methods_are_answered_without_json() {
        let (status, content_type, _) = call("GET", "/api/2.0/mlflow/nothing", Body::empty()).await;
        assert_eq!((status, content_type.as_str()), (StatusCode::NOT_FOUND, "text/html; charset=utf-8"));
        let (status, content_type, _) = call("DELETE", "/api/2.0/mlflow/things/get", Body::empty()).await;
        assert_eq!((status, content_type.as_str()), (StatusCode::METHOD_NOT_ALLOWED, "text/html; charset=utf-8"));
    }

    /// An authorizer that rejects every caller.
    struct Closed;

    impl Authorizer for Closed {
        fn authenticate<'a>(&'a self, _: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
            let error = Error::new(ErrorCode::Unauthenticated, "Who are you?");
            Box::pin(async { Err(error.with_header("www-authenticate", "Basic realm=\"mlflow\"")) })
        }

        fn authorize<'a>(
            &'a self,
            _: &'a Identity,
            asked: &'a [AccessCheck],
            _: &'a AuthorizerItems,
        ) -> BoxFuture<'a, Result<Vec<bool>>> {
            Box::pin(async { Ok(vec![false; asked.len()]) })
        }

        fn visibility<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
            Box::pin(async { Ok(Visibility::Everything) })
        }
    }

    #[tokio::test]
    async fn who_is_not_known_gets_401_but_from_what_is_open() {
        let routes = vec![
            Route::to::<Echo>("GET", "things/get", Permission::SignedIn),
            Route::text("/version", Permission::SignedIn, "1"),
            Route::json("POST", "told", Paths::AjaxV3, "{}"),
            Route::text("/health", Permission::Open, "OK"),
            Route::to::<Echo>("GET", "open", Permission::Open),
        ];
        let app = router(routes, &FunctionContext::new(frame().store, Arc::new(Closed)));
        let page = Router::new()
            .route("/", axum::routing::get(|| async { "page" }))
            .route("/static-files/{name}", axum::routing::get(|| async { "file" }));
        let app = app.merge(crate::require_sign_in(page, Arc::new(Closed)));
        for (method, path, expected) in [
            ("GET", "/api/2.0/mlflow/things/get?fail=panic", StatusCode::UNAUTHORIZED),
            ("GET", "/version", StatusCode::UNAUTHORIZED),
            ("POST", "/ajax-api/3.0/mlflow/told", StatusCode::UNAUTHORIZED),
            ("GET", "/", StatusCode::UNAUTHORIZED),
            ("GET", "/static-files/a.js", StatusCode::OK),
            ("GET", "/health", StatusCode::OK),
            ("GET", "/api/2.0/mlflow/open", StatusCode::OK),
            ("GET", "/nothing", StatusCode::UNAUTHORIZED),
            ("GET", "/static-files/nothing/there", StatusCode::NOT_FOUND),
        ] {
            let request = http::Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected, "{path}");
            let challenge = response.headers().get(http::header::WWW_AUTHENTICATE).cloned();
            assert_eq!(challenge.is_some(), expected == StatusCode::UNAUTHORIZED, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            if expected == StatusCode::UNAUTHORIZED {
                assert_eq!(body, "Who are you?", "{path}");
            }
        }
    }

    /// Also tested in release builds, because a missing permission must be detected there too, not
    /// only by a `debug_assert`.
    #[tokio::test]
    async fn a_row_that_is_guarded_does_not_answer_where_nothing_is_needed() {
        let routes = vec![
            Route::to::<Echo>("GET", "things/get", Permission::Read(Resource::Run)),
            Route::text("/text", Permission::Read(Resource::Run), "text"),
        ];
        let app = router(routes, &frame());
        for path in ["/api/2.0/mlflow/things/get", "/text"] {
            let response = app.clone().oneshot(http::Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        }
    }

    #[test]
    fn answers_may_carry_headers_several_of_one_name() {
        let cookie = |value| (http::header::SET_COOKIE, http::HeaderValue::from_static(value));
        let [first, second] = [cookie("a=1"), cookie("b=2")];
        let answer = crate::EndpointResponse::Empty.with_header(first.0, first.1).with_header(second.0, second.1);
        let response = answer.into_response(&HeaderMap::new());
        let cookies: Vec<_> = response.headers().get_all(http::header::SET_COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
    }

    #[tokio::test]
    async fn joined_routers_answer_for_each_other() {
        let routes = |path| vec![Route::to::<Echo>("GET", path, Permission::SignedIn)];
        let frame = frame();
        let app = join_routers(router(routes("a"), &frame), [router(routes("b"), &frame), router(routes("c"), &frame)]);
        for (method, path, expected) in [
            ("GET", "/api/2.0/mlflow/a", StatusCode::OK),
            ("GET", "/ajax-api/2.0/mlflow/c", StatusCode::OK),
            ("POST", "/api/2.0/mlflow/b", StatusCode::METHOD_NOT_ALLOWED),
            ("GET", "/api/2.0/mlflow/d", StatusCode::NOT_FOUND),
        ] {
            let request = http::Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected, "{path}");
            assert_eq!(response.headers()[http::header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }

    #[tokio::test]
    async fn errors_are_mlflows() {
        let (status, _, body) = call("GET", "/api/2.0/mlflow/things/get?fail=so%20it%20is", Body::empty()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(
            serde_json::from_str::<Value>(&body).unwrap(),
            json!({
                "error_code": "INVALID_PARAMETER_VALUE",
                "message": "so it is",
                "sqlstate": "KAM00",
                "error_class": "INVALID_PARAMETER_VALUE",
            })
        );
    }

    #[tokio::test]
    async fn a_panic_and_a_long_body_get_an_answer() {
        let (status, _, body) = call("GET", "/api/2.0/mlflow/things/get?fail=panic", Body::empty()).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(body.contains("INTERNAL_ERROR") && !body.contains("of the test"));
        let (status, _, _) = call("POST", "/api/2.0/mlflow/things/get", Body::from(vec![0; MAX_BODY_BYTES + 1])).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
