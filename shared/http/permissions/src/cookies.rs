//! Cookies of browsers with a signed-in user.
//!
//! Scripts cannot access the session cookie itself. The page's script can read and delete a second
//! cookie, because MLflow's user interface signs out by deleting it. Only whether that cookie is
//! present matters, never its value.

use access::RequestHead;
use http::header::{COOKIE, HOST};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::secret::UserSecret;

/// Name of the session cookie, without the prefix or the port of [`scoped_name`].
const SESSION_COOKIE: &str = "mlflow_session";
/// Prefix of cookie names over TLS. It prevents other hosts, and pages without TLS, from setting
/// cookies with these names.
const SECURE_PREFIX: &str = "__Host-";
/// Name of the cookie with the time at which a session has to be renewed, which the page's script
/// reads (`session_renewal.js`).
const RENEWAL_COOKIE: &str = "mlflow_renew_by";
/// Name of the cookie that indicates that a user is signed in (`mlflow/server/js/src/account`).
const USER_COOKIE: &str = "mlflow_user";
/// Characters that `encodeURIComponent` does not escape. The page decodes every cookie.
const ESCAPED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The state that a request's cookies represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// No user is signed in.
    None,
    /// A user is signed in.
    SignedIn(UserSecret),
    /// The user has signed out in the browser, and the session still has to be deleted.
    SignedOut(UserSecret),
}

impl Cookies {
    /// Reads the state from the cookies of a request.
    #[must_use]
    pub fn of(arrived: &RequestHead) -> Self {
        let Some(secret) = cookie_value(arrived, &session_cookie_name(arrived)).and_then(UserSecret::of_cookie) else {
            return Self::None;
        };
        if cookie_value(arrived, USER_COOKIE).is_some() { Self::SignedIn(secret) } else { Self::SignedOut(secret) }
    }
}

/// Returns the `Set-Cookie` values that open a session for the browser that sent this request. The
/// cookies expire after `seconds`.
#[must_use]
pub fn session_cookies(arrived: &RequestHead, secret: &UserSecret, seconds: u64) -> [String; 2] {
    let user = utf8_percent_encode(secret.user().as_str(), ESCAPED_CHARACTERS).to_string();
    set_cookie_values(arrived, &secret.cookie(), &user, seconds)
}

/// Returns the `Set-Cookie` values that delete the cookies of a session.
#[must_use]
pub fn removal_cookies(arrived: &RequestHead) -> [String; 2] {
    set_cookie_values(arrived, "", "", 0)
}

fn set_cookie_values(arrived: &RequestHead, session_value: &str, user: &str, seconds: u64) -> [String; 2] {
    [
        hidden_cookie(arrived, &session_cookie_name(arrived), session_value, seconds),
        readable_cookie(arrived, USER_COOKIE, user, seconds),
    ]
}

/// Returns the `Set-Cookie` value for a cookie that scripts cannot access. The cookie expires after
/// `seconds`; with 0, it is deleted.
#[must_use]
pub fn hidden_cookie(arrived: &RequestHead, name: &str, value: &str, seconds: u64) -> String {
    format!("{}; HttpOnly", readable_cookie(arrived, name, value, seconds))
}

fn readable_cookie(arrived: &RequestHead, name: &str, value: &str, seconds: u64) -> String {
    let secure = if arrived.connection.is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; SameSite=Lax{secure}")
}

/// Returns the `Set-Cookie` value for the cookie with the time at which the session has to be
/// renewed, in seconds since 1970. The cookie expires after `seconds`.
#[must_use]
pub fn renewal_cookie(arrived: &RequestHead, renew_by: i64, seconds: u64) -> String {
    readable_cookie(arrived, RENEWAL_COOKIE, &renew_by.to_string(), seconds)
}

/// Returns the `Set-Cookie` value that deletes the cookie of [`renewal_cookie`], so that the page's
/// script does not renew the session. Returns `None` if the browser does not have the cookie.
#[must_use]
pub fn renewal_removal(arrived: &RequestHead) -> Option<String> {
    has_cookie(arrived, RENEWAL_COOKIE).then(|| readable_cookie(arrived, RENEWAL_COOKIE, "", 0))
}

/// Checks whether a request has a cookie of this name.
#[must_use]
pub fn has_cookie(arrived: &RequestHead, name: &str) -> bool {
    all_cookies(arrived).any(|(other, _)| other == name)
}

fn session_cookie_name(arrived: &RequestHead) -> String {
    scoped_name(arrived, SESSION_COOKIE)
}

/// Returns the name of a cookie that only this server sets and receives. Over TLS, it has a prefix
/// that browsers enforce. Over plain HTTP, the port is appended, because browsers share cookies
/// between all ports of a host.
#[must_use]
pub fn scoped_name(arrived: &RequestHead, name: &str) -> String {
    if arrived.connection.is_secure {
        return format!("{SECURE_PREFIX}{name}");
    }
    let host = arrived.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
    let is_port = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    format!("{name}_{}", if is_port { port } else { "80" })
}

/// Returns the names and values of all cookies of a request.
pub fn all_cookies(arrived: &RequestHead) -> impl Iterator<Item = (&str, &str)> {
    let headers = arrived.headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    headers.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='))
}

/// Returns the value of a cookie that occurs exactly once. If another host has set a second cookie
/// with this name, both are ignored.
#[must_use]
pub fn cookie_value<'a>(arrived: &'a RequestHead, name: &str) -> Option<&'a str> {
    let mut values = all_cookies(arrived).filter_map(|(other, value)| (other == name).then_some(value));
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use access::ConnectionInfo;
    use mlflow_api::UserName;

    use super::*;

    fn arrived(is_secure: bool, host: &str, cookies: &str) -> RequestHead {
        let request = http::Request::builder().header(HOST, host).header(COOKIE, cookies).body(()).unwrap();
        let mut arrived = RequestHead::of(&request.into_parts().0);
        arrived.connection = ConnectionInfo { is_secure, ..ConnectionInfo::default() };
        arrived
    }

    /// Returns the cookies as a browser sends them back.
    fn back(headers: &[String; 2]) -> String {
        headers.iter().map(|header| header.split(';').next().unwrap()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_session_is_what_was_set_until_the_page_deletes_the_companion() {
        let secret = UserSecret::new(UserName::named("anné %").unwrap());
        for (is_secure, host) in [(true, "ml.example"), (false, "127.0.0.1:5000"), (false, "localhost")] {
            let headers = session_cookies(&arrived(is_secure, host, ""), &secret, 60);
            let both = back(&headers);
            let of = |cookies: &str| Cookies::of(&arrived(is_secure, host, cookies));
            assert_eq!(of(&both), Cookies::SignedIn(secret.clone()), "{both}");
            assert_eq!(of(both.split(';').next().unwrap()), Cookies::SignedOut(secret.clone()));
            assert_eq!(of(both.split(';').nth(1).unwrap()), Cookies::None);
            assert_eq!(of(&format!("{both}; {both}")), Cookies::None);
            assert!(headers[1].starts_with("mlflow_user=ann%C3%A9%20%25; Path=/; Max-Age=60; SameSite=Lax"));
            assert!(headers[0].contains("HttpOnly") && !headers[1].contains("HttpOnly"));
            assert_eq!(
                headers.iter().filter(|header| header.contains("; Secure")).count(),
                if is_secure { 2 } else { 0 }
            );
        }
    }

    #[test]
    fn ports_have_their_own_and_tls_takes_none_of_theirs() {
        let secret = UserSecret::new(UserName::named("ann").unwrap());
        let both = back(&session_cookies(&arrived(false, "localhost:5000", ""), &secret, 60));
        assert_eq!(Cookies::of(&arrived(false, "localhost:5001", &both)), Cookies::None);
        assert_eq!(Cookies::of(&arrived(true, "localhost:5000", &both)), Cookies::None);
        let both = back(&session_cookies(&arrived(true, "ml.example", ""), &secret, 60));
        assert!(both.starts_with("__Host-mlflow_session="));
        assert_eq!(Cookies::of(&arrived(false, "ml.example", &both)), Cookies::None);
    }
}
