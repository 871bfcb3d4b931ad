//! Login with a code that the user enters in a browser on any machine (RFC 8628).

use std::time::Duration;

use serde::Deserialize;

use crate::Failure;
use crate::login::oauth_client::{IssuedToken, OauthClient};
use crate::output::print_note;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// By how many seconds the interval grows if the server requests it (RFC 8628, section 3.5).
const SLOWER_BY_SECONDS: u64 = 5;
/// Number of failed requests in a row after which the login is abandoned.
const MAX_FAILURES: u32 = 10;

#[derive(Deserialize)]
struct DeviceLogin {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    #[serde(default = "default_interval")]
    interval: u64,
}

fn default_interval() -> u64 {
    5
}

/// Shows a code, and waits until the user has entered it.
///
/// # Errors
/// Returns an error if the user denies the login or does not approve it in time, or if the server
/// cannot be reached.
pub(crate) async fn log_in(client: &OauthClient, name: &str) -> Result<IssuedToken, Failure> {
    let login: DeviceLogin =
        client.post("/oauth/device", &[("name", name)]).await?.map_err(|refusal| refusal.failure())?;
    print_note(&format!(
        "Open {} in a browser, and enter the code {}.\nOr open {}",
        login.verification_uri, login.user_code, login.verification_uri_complete
    ));
    let form = [("grant_type", GRANT_TYPE), ("device_code", login.device_code.as_str())];
    let (mut interval, mut failures) = (login.interval, 0);
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        match client.token(&form).await {
            Ok(Ok(issued)) => return Ok(issued),
            Ok(Err(refusal)) if refusal.error == "authorization_pending" => failures = 0,
            Ok(Err(refusal)) if refusal.error == "slow_down" => interval += SLOWER_BY_SECONDS,
            Ok(Err(refusal)) => return Err(refusal.failure()),
            // A server that restarts does not end the login.
            Err(failure) if failures + 1 == MAX_FAILURES => return Err(failure),
            Err(_) => failures += 1,
        }
    }
}
