//! What a Lambda can answer with.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use mlflow_api::answer_size::{AnswerSize, RESPONSE_BODY, too_long};

use crate::answer::error_response;

/// The same router for a Lambda, whose response has at most 6 MB: a longer answer is refused with a sentence. Without that, the
/// call would fail in API Gateway with a 5xx, which clients repeat in vain.
pub fn within_lambda(router: Router) -> Router {
    router.layer(axum::middleware::map_response(fitting))
}

async fn fitting(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let refusal = || error_response(&too_long("The answer", RESPONSE_BODY));
    let Ok(body) = Limited::new(body, RESPONSE_BODY).collect().await.map(http_body_util::Collected::to_bytes) else {
        return refusal();
    };
    // The adapter of Lambda takes these types for text if they are not compressed, and puts all others in base64.
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_json = content_type.starts_with("application/json") && !parts.headers.contains_key(CONTENT_ENCODING);
    let size = if is_json { AnswerSize::of(&body).as_text() } else { AnswerSize::of(&body).in_response() };
    if size > RESPONSE_BODY { refusal() } else { Response::from_parts(parts, Body::from(body)) }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http::{Request, StatusCode};
    use tower::ServiceExt;

    use super::*;

    async fn status(content_type: &'static str, encoding: Option<&'static str>, body: String) -> StatusCode {
        let answer = move || async move {
            let response = Response::builder().header(CONTENT_TYPE, content_type);
            let response =
                encoding.into_iter().fold(response, |response, name| response.header(CONTENT_ENCODING, name));
            response.body(Body::from(body)).unwrap()
        };
        let app = within_lambda(Router::new().route("/", get(answer)));
        app.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap().status()
    }

    #[tokio::test]
    async fn answers_that_a_lambda_cannot_carry_are_refused() {
        let plain = |bytes: usize| "x".repeat(bytes);
        for (content_type, encoding, body, expected) in [
            ("application/json", None, plain(6_000_000), StatusCode::OK),
            ("application/json", None, plain(RESPONSE_BODY), StatusCode::OK),
            ("application/json", None, plain(RESPONSE_BODY + 1), StatusCode::BAD_REQUEST),
            // Each of them is two characters in a text.
            ("application/json", None, "\"".repeat(3_000_000), StatusCode::OK),
            ("application/json", None, "\"".repeat(RESPONSE_BODY / 2 + 1), StatusCode::BAD_REQUEST),
            // Base64.
            ("application/json", Some("gzip"), plain(4_500_000), StatusCode::OK),
            ("application/json", Some("gzip"), plain(5_000_000), StatusCode::BAD_REQUEST),
            ("image/png", None, plain(5_000_000), StatusCode::BAD_REQUEST),
        ] {
            let bytes = body.len();
            assert_eq!(status(content_type, encoding, body).await, expected, "{content_type} {encoding:?} {bytes}");
        }
    }
}
