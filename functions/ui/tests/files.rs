//! Tests which files of a build are served.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

/// Creates a build, and a file next to it.
fn build() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    let build = parent.path().join("build");
    for (name, content) in [
        ("build/index.html", "<html><head><title>MLflow</title></head></html>"),
        ("build/manifest.json", "{}"),
        ("build/static/js/main.0a1b2c3d.js", "script"),
        ("build/static/js/main.0a1b2c3d.js.gz", "compressed"),
        ("build/lib/notebook-trace-renderer/index.html", "<html>trace</html>"),
        ("secret", "secret"),
    ] {
        let path = parent.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    assert!(build.is_dir());
    parent
}

async fn get(directory: &tempfile::TempDir, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, String) {
    let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let router = ui::router(&directory.path().join("build"), None);
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    (parts.status, parts.headers, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn the_page_is_never_kept_and_is_recognised() {
    let build = build();
    let (status, headers, page) = get(&build, "/", &[]).await;
    assert_eq!((status, headers["cache-control"].to_str().unwrap()), (StatusCode::OK, "no-store"));
    assert!(page.starts_with("<html>") && headers["content-type"] == "text/html; charset=utf-8");
    for file in [
        "static-files/absent.css",
        "static-files/absent.js",
        "static-files/preview.js",
        "static-files/session_renewal.js",
    ] {
        assert!(page.contains(&format!("=\"{file}\"")), "{page}");
        assert_eq!(get(&build, &format!("/{file}"), &[]).await.0, StatusCode::OK);
    }
    let tag = headers["etag"].to_str().unwrap();
    assert_eq!(get(&build, "/", &[("if-none-match", tag)]).await.0, StatusCode::NOT_MODIFIED);
    fs::write(build.path().join("build/index.html"), "<html>\n</html>").unwrap();
    assert_eq!(get(&build, "/", &[("if-none-match", tag)]).await.0, StatusCode::OK);
}

#[tokio::test]
async fn files_with_a_digest_in_their_name_are_kept_for_a_year() {
    let build = build();
    for (path, expected) in [
        ("/static-files/static/js/main.0a1b2c3d.js", "public, max-age=31536000, immutable"),
        ("/static-files/manifest.json", "no-cache"),
        ("/static-files/static/js/main.missing.js", "no-store"),
    ] {
        assert_eq!(get(&build, path, &[]).await.1["cache-control"], expected, "{path}");
    }
}

#[tokio::test]
async fn a_browser_that_takes_gzip_gets_the_compressed_file() {
    let build = build();
    let path = "/static-files/static/js/main.0a1b2c3d.js";
    let (_, headers, body) = get(&build, path, &[("accept-encoding", "gzip, br")]).await;
    assert_eq!((body.as_str(), &headers["content-encoding"]), ("compressed", &http::HeaderValue::from_static("gzip")));
    assert_eq!(headers["content-type"], "text/javascript");
    let (_, headers, body) = get(&build, path, &[]).await;
    assert_eq!((body.as_str(), headers.get("content-encoding")), ("script", None));
    let tag = headers["etag"].to_str().unwrap();
    assert_eq!(get(&build, path, &[("if-none-match", tag)]).await.0, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn answers_say_what_a_page_may_do() {
    let build = build();
    for path in ["/", "/static-files/manifest.json", "/static-files/missing"] {
        let (_, headers, _) = get(&build, path, &[]).await;
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["x-frame-options"], "SAMEORIGIN", "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("object-src 'none'") && policy.contains("connect-src 'self' data: blob:;"), "{path}");
    }
    let (status, headers, _) = get(&build, "/static-files/lib/notebook-trace-renderer/index.html", &[]).await;
    assert_eq!((status, headers.get("x-frame-options")), (StatusCode::OK, None));
}

/// The preview of an HTML artifact, whose author is not trusted, must have a different policy
/// from the page. This policy must not allow requests to this server.
#[tokio::test]
async fn the_preview_of_html_has_a_policy_of_its_own() {
    let (status, headers, page) = get(&build(), "/static-files/preview.html", &[]).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(page.contains("<script>"));
    let policy = headers["content-security-policy"].to_str().unwrap();
    let directives: Vec<_> = policy.split("; ").collect();
    for expected in [
        "sandbox allow-scripts",
        "default-src 'none'",
        "connect-src data: blob:",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'self'",
    ] {
        assert!(directives.contains(&expected), "{policy}");
    }
    let sources = |name: &str| directives.iter().find(|directive| directive.starts_with(name)).copied().unwrap();
    assert!(["'unsafe-inline'", "'unsafe-eval'"].iter().all(|source| sources("script-src").contains(source)));
    assert!(
        directives.iter().all(|directive| !directive.contains("'self'") || directive.starts_with("frame-ancestors"))
    );
    assert_eq!(
        (&headers["x-frame-options"], &headers["referrer-policy"]),
        (&"SAMEORIGIN".parse().unwrap(), &"no-referrer".parse().unwrap())
    );
    let (_, headers, _) = get(&build(), "/", &[]).await;
    assert!(!headers["content-security-policy"].to_str().unwrap().contains("script-src 'self' 'unsafe-inline'"));
}

#[tokio::test]
async fn nothing_beside_the_build_is_served() {
    let build = build();
    for path in [
        "/static-files/../secret",
        "/static-files/%2e%2e/secret",
        "/static-files/..%2fsecret",
        "/static-files/%2e%2e%2fsecret",
        "/static-files/static/../../secret",
        "/static-files/..%5csecret",
        "/static-files//secret",
        "/static-files/static",
        "/static-files/",
        "/secret",
    ] {
        let (status, _, body) = get(&build, path, &[]).await;
        assert!(status.is_client_error() && !body.contains("secret"), "{path}: {status} {body}");
    }
}

#[tokio::test]
async fn a_name_that_no_file_can_have_is_not_there() {
    let build = build();
    for name in ["n".repeat(300), format!("static/{}", "n".repeat(300)), "a/".repeat(2_500), "%00".to_owned()] {
        let (status, ..) = get(&build, &format!("/static-files/{name}"), &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
    }
}

#[tokio::test]
async fn where_no_build_is_the_page_says_how_to_get_it() {
    let empty = tempfile::tempdir().unwrap();
    let (status, _, body) = get(&empty, "/", &[]).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(body.contains("make ui"), "{body}");
}
