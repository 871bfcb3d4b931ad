//! Rules for the paths of all routers: duplicate slashes, and `OPTIONS`.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ALLOW, LOCATION};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri};
use tower::{ServiceExt, service_fn};

use crate::endpoint_response::{UnknownPath, html_not_found};
use crate::route::routed_skill_path;
use crate::router::with_browser_headers;

/// Prefixes of the paths that MLflow serves with `FastAPI`, which does not redirect requests.
const FASTAPI_PREFIXES: [&str; 8] = [
    "/ajax-api/3.0/jobs/",
    "/ajax-api/3.0/mlflow/assistant/",
    "/ajax-api/3.0/mlflow/mcp-servers",
    "/ajax-api/3.0/mlflow/skills",
    "/api/3.0/mlflow/mcp-servers",
    "/api/3.0/mlflow/skills",
    "/gateway/",
    "/v1/",
];

/// Wraps a router in the rules for the paths that clients send. Clients are configured with a base
/// URL and append paths to it.
///
/// - If the base URL ends in a slash, paths begin with two. They are handled like paths with one.
/// - If a path contains duplicate slashes elsewhere, and is known without them, the client is
///   redirected there (308), like in MLflow. Paths that MLflow serves with `FastAPI` are unknown
///   (404) with duplicate slashes.
/// - The path of a skill is converted to the form that the router supports.
/// - A path of MCP servers or skills that does not have the method is unknown (404), as in MLflow.
/// - `OPTIONS` of a known path returns the methods that it supports.
/// - Each response has headers for browsers.
pub fn normalize_paths(router: Router) -> Router {
    with_browser_headers(normalize_paths_only(router))
}

/// Wraps a router like [`normalize_paths`], but does not add headers for browsers.
pub(crate) fn normalize_paths_only(router: Router) -> Router {
    Router::new().fallback_service(service_fn(move |request| answer(router.clone(), request)))
}

async fn answer(router: Router, mut request: Request) -> Result<Response, Infallible> {
    if let Some(uri) = without_duplicate_slashes(request.uri()) {
        *request.uri_mut() = uri;
    }
    if let Some(uri) = with_routed_skill_path(request.uri()) {
        *request.uri_mut() = uri;
    }
    let uri = request.uri().clone();
    let is_options = request.method() == Method::OPTIONS;
    let response = router.clone().oneshot(request).await?;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        if !is_options && is_of_registry(uri.path()) {
            return Ok(html_not_found());
        }
        return Ok(with_options(response, is_options.then(|| uri.path())));
    }
    if uri.path().contains("//") && response.extensions().get::<UnknownPath>().is_some() {
        return Ok(redirect(router, &uri).await?.unwrap_or(response));
    }
    Ok(response)
}

/// Checks whether a path belongs to MCP servers or skills. MLflow serves them with another framework
/// than other paths. If no method of that framework fits, it looks for further routes, and finds
/// none.
fn is_of_registry(path: &str) -> bool {
    let path = path.strip_prefix("/ajax-api/").or_else(|| path.strip_prefix("/api/")).unwrap_or_default();
    let path = path.strip_prefix("3.0/mlflow/").unwrap_or_default();
    matches!(path.split('/').next(), Some("mcp-servers" | "skills"))
}

/// Removes duplicate leading slashes. Returns `None` if there are none.
fn without_duplicate_slashes(uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query()?.as_str();
    let rest = path.strip_prefix("//")?.trim_start_matches('/');
    with_path(uri, &format!("/{rest}"))
}

/// Applies [`routed_skill_path`] to the path of a URI. Returns `None` if the path does not change.
fn with_routed_skill_path(uri: &Uri) -> Option<Uri> {
    let path = routed_skill_path(uri.path())?;
    match uri.query() {
        Some(query) => with_path(uri, &format!("{path}?{query}")),
        None => with_path(uri, &path),
    }
}

fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns a redirect to the path without duplicate slashes, if that path is known and MLflow would
/// redirect the request.
async fn redirect(router: Router, uri: &Uri) -> Result<Option<Response>, Infallible> {
    let mut path = String::with_capacity(uri.path().len());
    path.extend(
        uri.path()
            .chars()
            .scan('\0', |last, next| {
                let is_double = *last == '/' && next == '/';
                *last = next;
                Some((!is_double).then_some(next))
            })
            .flatten(),
    );
    if FASTAPI_PREFIXES.iter().any(|prefix| path.starts_with(prefix)) {
        return Ok(None);
    }
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let (Some(merged), Ok(location)) = (with_path(uri, &path), HeaderValue::from_str(&path)) else { return Ok(None) };
    // No route has this method. The response therefore shows whether the path exists, without side
    // effects.
    let mut question = Request::new(Body::empty());
    (*question.method_mut(), *question.uri_mut()) = (Method::OPTIONS, merged);
    if router.oneshot(question).await?.status() != StatusCode::METHOD_NOT_ALLOWED {
        return Ok(None);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, location);
    Ok(Some(response))
}

/// Adds `OPTIONS` to the allowed methods of a response. If the request was an `OPTIONS` request to
/// the path `asked`, the response becomes a success.
fn with_options(mut response: Response, asked: Option<&str>) -> Response {
    let allowed = response.headers().get(ALLOW).and_then(|allowed| allowed.to_str().ok());
    let Some(allowed) = allowed.and_then(|allowed| HeaderValue::from_str(&format!("{allowed},OPTIONS")).ok()) else {
        return response;
    };
    if let Some(path) = asked {
        // The status is that of MLflow's `fastapi_security.py`.
        let is_api = path.starts_with("/api/") || path.starts_with("/ajax-api/");
        response = Response::new(Body::empty());
        *response.status_mut() = if is_api { StatusCode::NO_CONTENT } else { StatusCode::OK };
    }
    response.headers_mut().insert(ALLOW, allowed);
    response
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use http_body_util::BodyExt;

    use super::*;
    use crate::endpoint_response::html_unknown_path;

    async fn send(method: &str, uri: &str) -> Response {
        let of_uri = |uri: Uri| async move { uri.to_string() };
        let app = Router::new()
            .route("/health", get(of_uri))
            .route("/api/2.0/mlflow/runs/get", get(of_uri).post(of_uri))
            .route("/api/2.0/mlflow/runs/create", post(of_uri))
            .route("/api/3.0/mlflow/skills/{name}", get(of_uri))
            .route("/api/3.0/mlflow/skills/@/{organization}/{name}", get(of_uri))
            .route("/api/2.0/files/{*path}", get(|| async { (StatusCode::NOT_FOUND, "no file") }))
            .fallback(|| async { html_unknown_path() });
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        normalize_paths(app).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn a_base_url_may_end_in_a_slash() {
        for (uri, expected) in [
            ("//health", "/health"),
            ("///health?a=//b", "/health?a=//b"),
            ("//api/2.0/mlflow/runs/get?run_id=x", "/api/2.0/mlflow/runs/get?run_id=x"),
            ("http://host.example//health", "http://host.example/health"),
        ] {
            let response = send("GET", uri).await;
            assert_eq!(response.status(), StatusCode::OK, "{uri}");
            assert_eq!(&response.into_body().collect().await.unwrap().to_bytes()[..], expected.as_bytes());
        }
        assert_eq!(send("GET", "//nothing").await.status(), StatusCode::NOT_FOUND);
        assert_eq!(send("GET", "//").await.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn slashes_doubled_further_inside_lead_to_where_they_are_not() {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let response = send(method, "//api//2.0/mlflow///runs/get?run_id=a//b").await;
            assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT, "{method}");
            assert_eq!(response.headers()[LOCATION], "/api/2.0/mlflow/runs/get?run_id=a//b");
        }
        for uri in ["/api//2.0/nothing", "/api/2.0/files/a//b", "/api/2.0/mlflow/runs/get//"] {
            assert_eq!(send("GET", uri).await.status(), StatusCode::NOT_FOUND, "{uri}");
        }
    }

    #[tokio::test]
    async fn paths_of_fastapi_are_not_redirected() {
        for path in ["/skills//review", "//skills/review", "/skills//@acme/review", "/skills/@acme//review"] {
            let response = send("GET", &format!("/api/3.0/mlflow{path}")).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        }
        for path in ["/skills/review", "/skills/@acme/review"] {
            assert_eq!(send("GET", &format!("/api/3.0/mlflow{path}")).await.status(), StatusCode::OK, "{path}");
        }
    }

    #[tokio::test]
    async fn each_answer_has_headers_for_browsers() {
        for (method, uri) in
            [("GET", "/health"), ("OPTIONS", "/health"), ("GET", "//api//2.0/mlflow/runs/get"), ("GET", "/nothing")]
        {
            let response = send(method, uri).await;
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{method} {uri}");
            assert_eq!(response.headers()["cache-control"], "no-store", "{method} {uri}");
        }
    }

    #[tokio::test]
    async fn a_path_says_which_methods_it_has() {
        for (method, uri, status, allow) in [
            ("OPTIONS", "/health", StatusCode::OK, "GET,HEAD,OPTIONS"),
            ("OPTIONS", "//api/2.0/mlflow/runs/get", StatusCode::NO_CONTENT, "GET,HEAD,POST,OPTIONS"),
            ("OPTIONS", "/api/2.0/mlflow/runs/create", StatusCode::NO_CONTENT, "POST,OPTIONS"),
            ("DELETE", "/api/2.0/mlflow/runs/create", StatusCode::METHOD_NOT_ALLOWED, "POST,OPTIONS"),
        ] {
            let response = send(method, uri).await;
            assert_eq!((response.status(), &response.headers()[ALLOW].to_str().unwrap()), (status, &allow), "{uri}");
        }
        assert_eq!(send("OPTIONS", "/api/2.0/nothing").await.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn paths_of_skills_have_their_own_rules() {
        for (method, uri, status) in [
            ("GET", "/api/3.0/mlflow/skills/@a/b", StatusCode::OK),
            ("GET", "/api/3.0/mlflow/skills/%40a%2Fb", StatusCode::OK),
            ("GET", "/api/3.0/mlflow/skills/@/a/b", StatusCode::NOT_FOUND),
            ("POST", "/api/3.0/mlflow/skills/@a/b", StatusCode::NOT_FOUND),
            ("OPTIONS", "/api/3.0/mlflow/skills/@a/b", StatusCode::NO_CONTENT),
        ] {
            assert_eq!(send(method, uri).await.status(), status, "{method} {uri}");
        }
    }
}
