//! Strict transport security for servers with passwords.

use access::ConnectionInfo;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;

/// Policy with a duration of one year. It covers only this host, because subdomains may belong to
/// others.
const HSTS_POLICY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Wraps a router so that browsers that have connected over TLS use only TLS for the next year (RFC
/// 6797).
pub fn with_hsts(router: Router) -> Router {
    router.layer(from_fn(|request: Request, next: Next| async move {
        let is_secure = request.extensions().get::<ConnectionInfo>().is_some_and(|entry| entry.is_secure);
        let mut response: Response = next.run(request).await;
        if is_secure {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS_POLICY);
        }
        response
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn an_answer_over_tls_says_that_it_stays_so() {
        let app = with_hsts(Router::new().route("/", get(|| async { "page" })));
        for (path, is_secure) in [("/", true), ("/missing", true), ("/", false)] {
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            request.extensions_mut().insert(ConnectionInfo { is_secure, ..ConnectionInfo::default() });
            let response = app.clone().oneshot(request).await.unwrap();
            let policy = response.headers().get(STRICT_TRANSPORT_SECURITY).map(|policy| policy.to_str().unwrap());
            assert_eq!(policy, is_secure.then_some("max-age=31536000"), "{path}");
        }
        let without = app.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert!(!without.headers().contains_key(STRICT_TRANSPORT_SECURITY));
    }
}
