//! Rejection of requests that name a workspace although workspaces are disabled, as in MLflow.

use access::WORKSPACE_HEADER as HEADER;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::HeaderMap;
use mlflow_api::{Error, ErrorCode, Result};

use crate::endpoint_response::error_response;

/// End of the path of the endpoint that clients request first. They do so even in a workspace, and
/// the request is then not rejected.
const SERVER_INFO_SUFFIX: &str = "/mlflow/server-info";

/// Wraps a router so that requests that name a workspace are rejected, whether or not their path is
/// known. Otherwise, such a request would write into the only workspace there is instead of the one
/// that it names.
pub fn reject_workspaces(router: Router) -> Router {
    router.layer(from_fn(refuse))
}

async fn refuse(request: Request, next: Next) -> Response {
    match check(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error_response(&error),
    }
}

/// Rejects a request that names a workspace, as MLflow does if workspaces are disabled
/// (`resolve_workspace_for_request_if_enabled`). The name of the default workspace is rejected,
/// too. A blank name is ignored.
///
/// # Errors
/// `FEATURE_DISABLED` if the request names a workspace.
fn check(path: &str, headers: &HeaderMap) -> Result<()> {
    let is_blank = |value: &http::HeaderValue| value.as_bytes().trim_ascii().is_empty();
    if path.trim_end_matches('/').ends_with(SERVER_INFO_SUFFIX) || headers.get_all(HEADER).iter().all(is_blank) {
        return Ok(());
    }
    let message = "Workspace APIs are not available: workspaces are not enabled on this server";
    Err(Error::new(ErrorCode::FeatureDisabled, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_blank_name_is_no_workspace() {
        let named = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, http::HeaderValue::from_bytes(value).unwrap());
            }
            headers
        };
        let path = "/api/2.0/mlflow/experiments/get";
        for none in [&[][..], &[&b""[..]], &[&b" \t"[..]], &[&b""[..], &b" "[..]]] {
            assert_eq!(check(path, &named(none)), Ok(()), "{none:?}");
        }
        for some in [&[&b"team-a"[..]][..], &[&b"default"[..]], &[&b" x "[..]], &[&b"\xe9"[..]], &[&b""[..], &b"x"[..]]]
        {
            let error = check(path, &named(some)).unwrap_err();
            assert_eq!((error.code.name(), error.code.http_status()), ("FEATURE_DISABLED", 501));
            for info in ["/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/server-info/"] {
                assert_eq!(check(info, &named(some)), Ok(()));
            }
        }
    }
}
