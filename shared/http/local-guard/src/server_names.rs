//! The names under which a server can be reached.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// An additional name of a server, as configured by the operator: a host, optionally with a port or
/// a scheme, or a pattern of hosts such as `*.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName {
    /// The host, or the parts of a pattern before and after the asterisk.
    host: (String, Option<String>),
    /// Origins whose pages belong to the server regardless of `Host`. Empty for a pattern, because
    /// not every page on a matching host belongs to the server.
    origins: Vec<String>,
}

impl ServerName {
    fn matches(&self, host: &str) -> bool {
        match &self.host {
            (whole, None) => host == whole,
            (begin, Some(end)) => host.strip_prefix(&**begin).is_some_and(|rest| rest.ends_with(&**end)),
        }
    }
}

impl FromStr for ServerName {
    type Err = String;

    /// Parses a name.
    ///
    /// # Errors
    /// Returns a message if no request could match the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_lowercase();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest.strip_suffix('/').unwrap_or(rest)),
            Some((scheme, _)) => return Err(format!("the scheme must be http or https, not {scheme}")),
            None => (None, &*text),
        };
        if rest.contains(['/', '?', '#', '@']) {
            return Err("it contains more than a host: write it as ml.example.com, ml.example.com:5000, \
                        https://ml.example.com or *.example.com"
                .to_owned());
        }
        let (host, port) = split(rest)?;
        if let Some((begin, end)) = host.split_once('*') {
            if scheme.is_some() || end.contains('*') {
                return Err("a pattern must have exactly one asterisk and no scheme, such as *.example.com".to_owned());
            }
            return Ok(Self { host: (begin.to_owned(), Some(end.to_owned())), origins: Vec::new() });
        }
        let authority = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let origin = |scheme: &str| match port {
            Some(port) if Some(port) != default_port(scheme) => format!("{scheme}://{authority}:{port}"),
            _ => format!("{scheme}://{authority}"),
        };
        let origins = scheme.map_or_else(|| vec!["http", "https"], |scheme| vec![scheme]);
        Ok(Self { origins: origins.into_iter().map(origin).collect(), host: (host, None) })
    }
}

/// Splits the operator's text into host and port.
fn split(text: &str) -> Result<(String, Option<u16>), String> {
    let is_address = text.parse::<IpAddr>().is_ok();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !is_address && !port.ends_with(']') => (host, port),
        _ => (text, "*"),
    };
    let port = match port {
        // The pattern `<host>:*` allows any port, as does a host without a port. MLflow's
        // `--allowed-hosts` needs the pattern, because it also compares the port.
        "*" => None,
        port => Some(port.parse().map_err(|_| format!("invalid port: {port}"))?),
    };
    let host = canonical(host);
    let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte));
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if !host.is_ascii() {
        return Err("write the name in ASCII as browsers send it, beginning with xn--".to_owned());
    }
    if host.parse::<IpAddr>().is_err() && !is_name(&host) {
        return Err(format!("invalid host name: {host}"));
    }
    Ok((host, port))
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// The names under which a server may be reached.
#[derive(Clone, Debug)]
pub struct AllowedNames {
    /// The host that the server listens on. Addresses of this machine and of private networks are
    /// always allowed.
    host: Arc<str>,
    names: Arc<[ServerName]>,
}

impl AllowedNames {
    /// Creates the allowed names from the host that the server listens on and additional names.
    #[must_use]
    pub fn new(host: &str, names: &[ServerName]) -> Self {
        Self { host: canonical(host).into(), names: names.into() }
    }

    /// Checks whether `Host` may contain this authority. Any port is allowed, because the request
    /// has reached the server's own port.
    pub(crate) fn has_host(&self, authority: &str) -> bool {
        let host = canonical(host_of(authority));
        let is_own = || *host == *self.host || host == "localhost" || host.parse().is_ok_and(is_local);
        !host.is_empty() && (is_own() || self.is_named(&host))
    }

    /// Checks whether pages of this origin belong to the server. The origin must be the one that
    /// the request was sent to, with the same scheme, or one of the names that the operator has
    /// configured.
    pub(crate) fn has_origin(&self, origin: &str, host: Option<&str>, is_secure: bool) -> bool {
        let origin = origin.to_lowercase();
        if self.names.iter().any(|name| name.origins.contains(&origin)) {
            return true;
        }
        let Some((scheme @ ("http" | "https"), authority)) = origin.split_once("://") else { return false };
        let is_host = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
        // Configured names are valid with and without TLS, because a proxy may not report whether
        // the client used TLS.
        let is_reached_so = (scheme == "https") == is_secure || self.is_named(&canonical(host_of(authority)));
        is_host && is_reached_so
    }

    fn is_named(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.matches(host))
    }
}

/// Returns the host in an authority, without the port.
fn host_of(authority: &str) -> &str {
    match authority.find(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Returns the canonical form of a host: an address without brackets, or a name in lower case
/// without the trailing dot.
fn canonical(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_lowercase(),
    }
}

/// Checks whether an address belongs to this machine, its link, a private network, or the range
/// that providers share among their customers, such as for pods. A page cannot make an address of
/// these ranges lead to another machine, as it could with a domain name.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && second & 0xc0 == 64;
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || is_shared
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(host: &str, names: &[&str]) -> AllowedNames {
        let names: Vec<ServerName> = names.iter().map(|name| name.parse().unwrap()).collect();
        AllowedNames::new(host, &names)
    }

    #[test]
    fn names_match_the_hosts_they_mean() {
        for (name, hosts, others) in [
            ("mlflow.ns.svc:5000", &["mlflow.ns.svc", "mlflow.ns.svc:5000", "MLFLOW.ns.svc.:80"][..], &["ns.svc"][..]),
            ("http://mlflow.ns.svc", &["mlflow.ns.svc:5000"], &["mlflow.ns.svc.evil.example"]),
            ("https://ml.example/", &["ml.example"], &["xml.example", "ml.example.com"]),
            (
                "*.example.com",
                &["a.example.com", "a.b.example.com:80"],
                &["example.com", "example.com.evil", "xexample.com"],
            ),
            ("ml-*", &["ml-", "ml-1:5000"], &["xml-1"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("*", &["anything", "8.8.8.8:1", "[2001:db8::1]"], &[""]),
            ("ml.example:*", &["ml.example:7"], &["ml"]),
            ("a_b", &["a_b"], &["a-b"]),
            ("2001:DB8:0::1", &["[2001:db8::1]:5000"], &["[2001:db8::2]"]),
            ("[2001:db8::1]:5000", &["[2001:db8::1]"], &["2001"]),
            ("8.8.8.8", &["8.8.8.8:5000"], &["8.8.4.4"]),
        ] {
            let allowed = allowed("127.0.0.1", &[name]);
            for host in hosts {
                assert!(allowed.has_host(host), "{name} {host}");
            }
            for host in others {
                assert!(!allowed.has_host(host), "{name} {host}");
            }
        }
    }

    #[test]
    fn what_no_request_could_match_is_no_name() {
        for text in [
            "",
            " ",
            ":5000",
            "ml.example/mlflow",
            "https://ml.example/mlflow",
            "ftp://ml.example",
            "user@ml.example",
            "ml example",
            "ml.example:http",
            "ml.example:70000",
            "münchen.example",
            "https://*.example.com",
            "*.*.example.com",
            "[::1",
            "a:b:c",
        ] {
            assert!(text.parse::<ServerName>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_that_lead_to_no_other_machine_need_no_name() {
        let allowed = allowed("2001:db8::1", &[]);
        for host in [
            "127.0.0.1:5000",
            "127.8.9.1",
            "0.0.0.0:5000",
            "[::1]:5000",
            "10.1.2.3:5000",
            "172.16.0.1",
            "192.168.1.7",
            "169.254.1.2",
            "100.64.3.4:5000",
            "100.127.255.255",
            "[fe80::1]:5000",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
            "localhost",
            "[2001:db8:0::1]:5000",
        ] {
            assert!(allowed.has_host(host), "{host}");
        }
        for host in
            ["8.8.8.8", "100.63.0.1", "100.128.0.1", "172.32.0.1", "[2001:db8::2]", "10.evil.example", "10.1", ""]
        {
            assert!(!allowed.has_host(host), "{host}");
        }
    }

    #[test]
    fn origins_are_exact() {
        let named =
            |name: &str, origin: &str| allowed("127.0.0.1", &[name]).has_origin(origin, Some("127.0.0.1:5000"), false);
        for (name, origin, expected) in [
            ("ml.example", "https://ml.example", true),
            ("ml.example", "http://ML.example", true),
            ("ml.example", "https://ml.example:8443", false),
            ("ml.example", "http://ml.example:8888", false),
            ("ml.example:8443", "https://ml.example:8443", true),
            ("ml.example:8443", "https://ml.example", false),
            ("ml.example:443", "https://ml.example", true),
            ("https://ml.example", "https://ml.example", true),
            ("https://ml.example", "http://ml.example", false),
            ("https://ml.example:8443", "https://ml.example:8443", true),
            ("[2001:db8::1]:80", "http://[2001:db8::1]", true),
            ("*.example", "https://ml.example", false),
            ("*", "https://ml.example", false),
            ("ml.example", "null", false),
            ("ml.example", "ml.example", false),
        ] {
            assert_eq!(named(name, origin), expected, "{name} {origin}");
        }
        for (names, host, origin, is_secure, expected) in [
            (&[][..], "localhost:5000", "http://localhost:5000", false, true),
            (&[], "localhost:5000", "http://localhost:5001", false, false),
            (&[], "localhost", "https://localhost", false, false),
            (&[], "localhost", "https://localhost", true, true),
            (&[], "localhost", "http://localhost", true, false),
            (&[], "localhost", "capacitor://localhost", false, false),
            (&["*.example"], "ml.example", "https://ml.example", false, true),
            (&["*.example"], "ml.example", "https://other.example", false, false),
            (&["*.example"], "ml.example:5000", "https://ml.example", false, false),
        ] {
            let outcome = allowed("127.0.0.1", names).has_origin(origin, Some(host), is_secure);
            assert_eq!(outcome, expected, "{names:?} {host} {origin}");
        }
    }
}
