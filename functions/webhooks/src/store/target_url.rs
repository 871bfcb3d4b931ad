//! Checks of the URLs of webhooks, with MLflow's messages (`_validate_webhook_url`).

use std::time::Duration;

use mlflow_api::webhooks::check_url_text;
use mlflow_api::{Error, Result, python};
use outbound::{OutboundClient, OutboundError, OutboundPolicy, OutboundUrl, UrlError};

/// Timeout for resolving the host of a URL.
const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the URL of a webhook: its scheme, its host, and the addresses of the host.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if requests may not be sent to the URL, or if its host cannot be
/// resolved.
pub(super) async fn check_url(client: &OutboundClient, url: &str) -> Result<()> {
    check_url_text(url)?;
    let parsed = parse(client.policy(), url)?;
    client.check(&parsed, RESOLUTION_TIMEOUT).await.map_err(|error| match error {
        OutboundError::Url(refusal) => refused_url(client.policy(), url, &refusal),
        OutboundError::Address(refused) => refused_address(parsed.host(), refused.address),
        OutboundError::Unresolvable(_) => Error::invalid(format!(
            "Cannot resolve Webhook URL hostname {}: Name or service not known",
            python::repr(parsed.host())
        )),
        OutboundError::TimedOut(_) => {
            Error::invalid(format!("Timed out while resolving Webhook URL hostname {}", python::repr(parsed.host())))
        }
        other => Error::internal(other),
    })
}

fn parse(policy: OutboundPolicy, url: &str) -> Result<OutboundUrl> {
    let refused = |refusal: &UrlError| refused_url(policy, url, refusal);
    let parsed = OutboundUrl::parse(url, policy).map_err(|refusal| refused(&refusal))?;
    // The parser, like browsers, accepts any number of slashes before the host. Python requires
    // exactly two.
    if has_host(url) { Ok(parsed) } else { Err(refused(&UrlError::NoHost)) }
}

/// Checks whether Python's `urlparse` would find a host in a URL.
fn has_host(url: &str) -> bool {
    let after_scheme = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    after_scheme.is_some_and(|rest| !rest.starts_with(['/', '?', '#', ':', '\\']) && !rest.is_empty())
}

fn refused_url(policy: OutboundPolicy, url: &str, refusal: &UrlError) -> Error {
    let shown = python::repr(url);
    Error::invalid(match refusal {
        UrlError::TooLong => format!("The URL of a webhook must be at most {} bytes long.", outbound::MAX_URL_BYTES),
        UrlError::Scheme { scheme } => {
            let allowed = policy.schemes.names().join(", ");
            format!("Invalid webhook URL scheme: {}. Allowed schemes are: {allowed}.", python::repr(scheme))
        }
        UrlError::NoHost => format!("Webhook URL must include a hostname: {shown}"),
        UrlError::Credentials => {
            "Webhook URL must not contain a user name or a password. Use a secret, with which requests are signed."
                .to_owned()
        }
        UrlError::Malformed(reason) => format!("Invalid webhook URL {shown}: {reason}"),
        UrlError::Address(refused) => return refused_address(&host_as_sent(url), refused.address),
    })
}

/// Returns the host of a URL as it was sent, in lower case and without a port, like Python's
/// `urlparse(url).hostname`.
fn host_as_sent(url: &str) -> String {
    let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.to_lowercase()
}

fn refused_address(host: &str, address: std::net::IpAddr) -> Error {
    Error::invalid(format!(
        "Webhook URL must not resolve to a non-public IP address. {} resolves to {address}.",
        python::repr(host)
    ))
}
