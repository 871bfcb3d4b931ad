//! URL of the API.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// Tracking URI of a stack: scheme and authority, without a path.
#[derive(Clone, Debug)]
pub(crate) struct TrackingUri {
    origin: String,
    host: String,
    is_here: bool,
}

impl FromStr for TrackingUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Option<Uri> = text.parse().ok();
        let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?, uri.host()?)));
        let (scheme, authority, host) = parts
            .filter(|(_, authority, host)| !host.is_empty() && !authority.as_str().contains('@'))
            .ok_or("expected a URL such as https://API_ID.execute-api.REGION.amazonaws.com")?;
        let has_more = uri.as_ref().is_some_and(|uri| uri.path() != "/" || uri.query().is_some());
        if has_more {
            return Err("only a scheme and host are allowed: the API of a stack has no path".to_owned());
        }
        let host = host.to_lowercase();
        let is_here = is_loopback(&host);
        match scheme {
            "https" => {}
            "http" if is_here => {}
            _ => return Err("the URL has to start with https://".to_owned()),
        }
        Ok(Self { origin: format!("{scheme}://{}", authority.as_str().to_lowercase()), host, is_here })
    }
}

impl fmt::Display for TrackingUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.origin)
    }
}

impl TrackingUri {
    /// Returns scheme and authority, without a trailing slash.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns whether the API is on this machine, as in tests.
    pub(crate) fn is_here(&self) -> bool {
        self.is_here
    }

    /// Returns the region in an API Gateway host name: public, in China, over IPv6, or through a
    /// VPC endpoint. Other host names do not contain a region.
    pub(crate) fn region(&self) -> Option<String> {
        let rest =
            self.host.split_once("execute-api.").filter(|(before, _)| before.is_empty() || before.ends_with('.'));
        let (region, domain) = rest?.1.split_once('.')?;
        let is_aws = ["amazonaws.com", "amazonaws.com.cn", "vpce.amazonaws.com", "vpce.amazonaws.com.cn", "api.aws"]
            .contains(&domain);
        let is_region = region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        (is_aws && is_region && !region.is_empty()).then(|| region.to_owned())
    }
}

/// Returns whether the host of a URL is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_loopback)
}

/// Returns whether the host of a URL could be this machine, in any spelling.
pub(crate) fn may_be_here(host: &str) -> bool {
    let is_unspecified = |address: IpAddr| address.to_canonical().is_unspecified();
    is_loopback(host) || bare(host).ends_with(".localhost") || bare(host).parse().is_ok_and(is_unspecified)
}

fn bare(host: &str) -> String {
    host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> TrackingUri {
        text.parse().unwrap()
    }

    #[test]
    fn a_region_is_in_hosts_of_aws_only() {
        for (host, region) in [
            ("a1.execute-api.eu-central-1.amazonaws.com", Some("eu-central-1")),
            ("A1.Execute-API.EU-central-1.amazonaws.com", Some("eu-central-1")),
            ("a1.execute-api.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("a1.execute-api.us-east-1.api.aws", Some("us-east-1")),
            ("a1-vpce-0f.execute-api.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("a1.execute-api.us-east-1.amazonaws.com.evil.example", None),
            ("a1.not-execute-api.us-east-1.amazonaws.com", None),
            ("mlflow.example.com", None),
        ] {
            assert_eq!(parsed(&format!("https://{host}")).region().as_deref(), region, "{host}");
        }
    }

    #[test]
    fn keys_go_by_tls_or_stay_on_this_machine() {
        assert_eq!(parsed("https://A1.example/").origin(), "https://a1.example");
        for url in ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9"] {
            assert!(parsed(url).is_here(), "{url}");
        }
        for (url, said) in [
            ("http://a1.example", "https://"),
            ("http://localhost.evil.example", "https://"),
            ("ftp://a1.example", "https://"),
            ("https://a1.example/prod", "no path"),
            ("https://a1.example/?x=1", "no path"),
            ("https://user@a1.example", "expected a URL"),
            ("a1.example", "expected a URL"),
            ("/x", "expected a URL"),
            ("", "expected a URL"),
        ] {
            let refusal = url.parse::<TrackingUri>().unwrap_err();
            assert!(refusal.contains(said), "{url}: {refusal}");
        }
    }
}
