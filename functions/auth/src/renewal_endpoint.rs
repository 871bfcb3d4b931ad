//! The endpoint with which the page's script renews a session (`session_renewal.js` in
//! `functions/ui`). MLflow has no such endpoint.

use access::RequestHead;
use http::StatusCode;
use mlflow_api::{Error, ErrorCode, Request, Result};
use permissions::browser_pages::is_of_own_page;
use permissions::{Cookies, cookies};
use serde_json::json;
use service::EndpointResponse;

use crate::response_cookies::with_cookies;
use crate::sign_on::{RenewalOutcome, renew};
use crate::store::{SESSION_SECONDS, Store};

/// Renews the session of the browser, and responds with the time before which it has to be renewed
/// again. Responds with 503 while the provider cannot be reached, and with 401 if the session has
/// ended. The session's cookies are not deleted then, because another tab may have opened a new
/// session in the meantime.
pub(crate) async fn renew_session(store: Store, arrived: RequestHead, _: Request) -> Result<EndpointResponse> {
    if !is_of_own_page(&arrived) {
        return Err(Error::new(ErrorCode::PermissionDenied, "Cross-origin request blocked"));
    }
    let Cookies::SignedIn(secret) = Cookies::of(&arrived) else { return Err(ended()) };
    let (status, renew_by) = match renew(&store, &secret).await? {
        RenewalOutcome::Renewed(renew_by) => (StatusCode::OK, Some(renew_by)),
        RenewalOutcome::NotRenewable => (StatusCode::OK, None),
        RenewalOutcome::Unavailable(renew_by) => (StatusCode::SERVICE_UNAVAILABLE, renew_by),
        RenewalOutcome::Ended => return Err(ended()),
    };
    let body = if status == StatusCode::OK {
        json!({ "renew_by": renew_by })
    } else {
        let message = "The identity provider cannot be reached. The session will be renewed later.";
        json!({ "error_code": "TEMPORARILY_UNAVAILABLE", "message": message })
    };
    let answer = EndpointResponse::OtherProtocol {
        status,
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    };
    Ok(with_cookies(answer, renew_by.map(|renew_by| cookies::renewal_cookie(&arrived, renew_by, SESSION_SECONDS))))
}

fn ended() -> Error {
    Error::new(ErrorCode::Unauthenticated, "Your session has ended. Sign in again.")
}
