//! URL of the server to log in to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// URL of a server: an origin, and the path below which a reverse proxy serves it.
#[derive(Clone, Debug)]
pub(crate) struct ServerUrl {
    origin: String,
    path: String,
    is_exposed: bool,
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Option<Uri> = text.parse().ok();
        let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
        let (scheme, authority) = parts
            .filter(|(scheme, authority)| {
                matches!(*scheme, "http" | "https") && !authority.host().is_empty() && !authority.as_str().contains('@')
            })
            .ok_or("expected a URL such as https://mlflow.example.com")?;
        if uri.as_ref().is_some_and(|uri| uri.query().is_some()) {
            return Err("the URL must not contain a query".to_owned());
        }
        let host = authority.host().to_ascii_lowercase();
        let default_port = if scheme == "https" { 443 } else { 80 };
        let port = authority.port_u16().filter(|port| *port != default_port);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = uri.as_ref().map_or("", Uri::path).trim_end_matches('/').to_owned();
        let is_exposed = scheme == "http" && !is_loopback(&host);
        Ok(Self { origin: format!("{scheme}://{host}{port}"), path, is_exposed })
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.origin, self.path)
    }
}

impl ServerUrl {
    /// Returns scheme, host and port, by which tokens are stored. In lower case, and without the
    /// default port.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns whether requests are sent over a network without TLS.
    pub(crate) fn is_exposed(&self) -> bool {
        self.is_exposed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_one_spelling() {
        for (text, origin, url) in [
            ("https://ML.example", "https://ml.example", "https://ml.example"),
            ("https://ml.example:443/", "https://ml.example", "https://ml.example"),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5000", "http://127.0.0.1:5000"),
            ("https://ml.example:8443/team/", "https://ml.example:8443", "https://ml.example:8443/team"),
            ("http://[::1]:5000", "http://[::1]:5000", "http://[::1]:5000"),
        ] {
            let parsed: ServerUrl = text.parse().unwrap();
            assert_eq!((parsed.origin(), parsed.to_string().as_str()), (origin, url));
        }
        for wrong in ["", "ml.example", "sqlite:///mlflow.db", "https://ann@ml.example", "https://ml.example/?a=b"] {
            assert!(wrong.parse::<ServerUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_tls_and_this_machine_keep_a_token_secret() {
        for (text, is_exposed) in [
            ("https://ml.example", false),
            ("http://localhost:5000", false),
            ("http://[::1]:5000", false),
            ("http://127.0.0.1", false),
            ("http://192.168.1.7:5000", true),
            ("http://localhost.example", true),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().is_exposed(), is_exposed, "{text}");
        }
    }
}
