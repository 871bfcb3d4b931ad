//! The credentials in a request's headers.

use access::{Credentials, RequestHead};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use mlflow_api::UserName;

use crate::cookies::Cookies;
use crate::secret::UserSecret;

/// Returns the credentials of a request, or `None` if there are none or they are malformed. If the
/// `Authorization` header is present, it alone is used; otherwise, the session cookie is.
pub(crate) fn credentials(arrived: &RequestHead) -> Option<Credentials> {
    let Some(header) = arrived.headers.get(AUTHORIZATION) else {
        return match Cookies::of(arrived) {
            Cookies::SignedIn(secret) => Some(Credentials::Session(secret.user().clone(), secret.digest())),
            Cookies::None | Cookies::SignedOut(_) => None,
        };
    };
    let (scheme, rest) = header.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return UserSecret::of_token(rest.trim()).map(|secret| token(&secret));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    let name = UserName::named(name)?;
    // A token can be used in place of its user's password.
    match UserSecret::of_token(password) {
        Some(secret) if *secret.user() == name => Some(token(&secret)),
        _ => Some(Credentials::Password(name, password.to_owned())),
    }
}

fn token(secret: &UserSecret) -> Credentials {
    Credentials::Token(secret.user().clone(), secret.digest())
}

#[cfg(test)]
mod tests {
    use http::header::{COOKIE, HOST};

    use super::*;

    fn sent(headers: &[(http::HeaderName, &str)]) -> Option<Credentials> {
        let request =
            headers.iter().fold(http::Request::builder(), |request, (name, value)| request.header(name, *value));
        credentials(&RequestHead::of(&request.body(()).unwrap().into_parts().0))
    }

    fn basic(text: &str) -> Option<Credentials> {
        sent(&[(AUTHORIZATION, &format!("Basic {}", STANDARD.encode(text)))])
    }

    #[test]
    fn names_and_passwords_are_read() {
        let of = |name: &str, password: &str| {
            Some(Credentials::Password(UserName::named(name).unwrap(), password.to_owned()))
        };
        assert_eq!(basic("ann:a:b"), of("ann", "a:b"));
        assert_eq!(basic("anné:"), of("anné", ""));
        assert_eq!(sent(&[(AUTHORIZATION, &format!("bAsIc  {}", STANDARD.encode("ann:x")))]), of("ann", "x"));
        for wrong in ["Basic", "Basic !", "Bearer abc", &format!("Basic {}", STANDARD.encode("ann"))] {
            assert_eq!(sent(&[(AUTHORIZATION, wrong)]), None, "{wrong}");
        }
        assert_eq!(basic(":x"), None);
        assert_eq!(basic(&format!("{}:x", "a".repeat(300))), None);
    }

    #[test]
    fn tokens_are_read_in_both_places_and_only_for_their_user() {
        let secret = UserSecret::new(UserName::named("ann").unwrap());
        let expected = Some(Credentials::Token(secret.user().clone(), secret.digest()));
        assert_eq!(sent(&[(AUTHORIZATION, &format!("Bearer {}", secret.token()))]), expected);
        assert_eq!(basic(&format!("ann:{}", secret.token())), expected);
        assert!(matches!(basic(&format!("bob:{}", secret.token())), Some(Credentials::Password(..))));
    }

    #[test]
    fn the_header_decides_alone() {
        let secret = UserSecret::new(UserName::named("ann").unwrap());
        let cookies = format!("mlflow_session_5000={}; mlflow_user=ann", secret.cookie());
        let both = [(HOST, "localhost:5000"), (COOKIE, cookies.as_str()), (AUTHORIZATION, "Basic !")];
        assert_eq!(sent(&both[..2]), Some(Credentials::Session(secret.user().clone(), secret.digest())));
        assert_eq!(sent(&both), None);
    }
}
