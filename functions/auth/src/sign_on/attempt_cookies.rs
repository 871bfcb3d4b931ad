//! The cookies of attempts to sign in.

use access::RequestHead;
use permissions::cookies::{all_cookies, cookie_value, hidden_cookie, scoped_name};

use super::attempts::{ATTEMPT_SECONDS, Attempt, AttemptSigner};

/// Name of the cookies, without the prefix or port and without the id.
const COOKIE: &str = "mlflow_attempt";
/// Maximum number of attempts of a browser. Further attempts drop the oldest ones, because a gateway
/// accepts about 10 KB of headers.
const MAX_ATTEMPTS: usize = 5;
/// Maximum number of cookies that a response deletes.
const MAX_DELETIONS: usize = 20;

/// Returns the attempt with this id, if the browser has sent its cookie.
pub(crate) fn find(arrived: &RequestHead, signer: &AttemptSigner, id: &str) -> Option<Attempt> {
    signer.attempt(id, cookie_value(arrived, &name(arrived, id))?)
}

/// Returns the `Set-Cookie` values that add an attempt. They also delete the cookies of expired
/// attempts, and of the oldest ones if there are too many.
///
/// # Errors
/// The attempt cannot be serialized.
pub(crate) fn added(
    arrived: &RequestHead,
    signer: &AttemptSigner,
    attempt: &Attempt,
) -> Result<Vec<String>, serde_json::Error> {
    let prefix = name(arrived, "");
    let mut earlier: Vec<_> = all_cookies(arrived)
        .filter_map(|(name, value)| {
            let id = name.strip_prefix(&prefix)?;
            // A cookie that is invalid or expired counts as the oldest.
            Some((signer.attempt(id, value).map_or(0, |attempt| attempt.expires), id))
        })
        .collect();
    earlier.sort_unstable();
    let valid = earlier.iter().filter(|(expires, _)| *expires > 0).count();
    let dropped = earlier.len() - valid + (valid + 1).saturating_sub(MAX_ATTEMPTS);
    let dropped = earlier.iter().take(dropped.min(MAX_DELETIONS)).map(|(_, id)| removed(arrived, id));
    let new = hidden_cookie(arrived, &name(arrived, &attempt.id), &signer.cookie_value(attempt)?, ATTEMPT_SECONDS);
    Ok(dropped.chain([new]).collect())
}

/// Returns the `Set-Cookie` value that deletes the cookie of an attempt.
pub(crate) fn removed(arrived: &RequestHead, id: &str) -> String {
    hidden_cookie(arrived, &name(arrived, id), "", 0)
}

fn name(arrived: &RequestHead, id: &str) -> String {
    format!("{}_{id}", scoped_name(arrived, COOKIE))
}

#[cfg(test)]
mod tests {
    use access::ConnectionInfo;
    use http::header::{COOKIE as COOKIE_HEADER, HOST};

    use super::*;

    fn arrived(is_secure: bool, cookies: &str) -> RequestHead {
        let request =
            http::Request::builder().header(HOST, "127.0.0.1:5000").header(COOKIE_HEADER, cookies).body(()).unwrap();
        let mut arrived = RequestHead::of(&request.into_parts().0);
        arrived.connection = ConnectionInfo { is_secure, ..ConnectionInfo::default() };
        arrived
    }

    /// Applies `Set-Cookie` values to the cookies of a browser.
    fn applied(cookies: &str, headers: &[String]) -> String {
        let mut kept: Vec<_> = cookies.split("; ").filter(|cookie| !cookie.is_empty()).map(str::to_owned).collect();
        for header in headers {
            let (cookie, rest) = header.split_once("; ").unwrap();
            let name = cookie.split_once('=').unwrap().0;
            kept.retain(|other| other.split_once('=').unwrap().0 != name);
            if !rest.contains("Max-Age=0;") {
                kept.push(cookie.to_owned());
            }
        }
        kept.join("; ")
    }

    fn attempt(expires: i64) -> Attempt {
        let attempt = Attempt::new("keycloak", "https://ml.example", "/", None);
        Attempt { expires: attempt.expires + expires, ..attempt }
    }

    #[test]
    fn attempts_are_found_and_the_oldest_are_dropped() {
        let signer = AttemptSigner::new(b"secret");
        for is_secure in [true, false] {
            let attempts: Vec<_> = (0..8).map(attempt).collect();
            let mut cookies = "mlflow_attempt_5000_x=invalid; __Host-mlflow_attempt_x=invalid".to_owned();
            for attempt in &attempts {
                let headers = added(&arrived(is_secure, &cookies), &signer, attempt).unwrap();
                assert!(headers.iter().all(|header| header.contains("; HttpOnly") && header.contains("SameSite=Lax")));
                assert!(headers.iter().all(|header| header.contains("; Secure") == is_secure));
                cookies = applied(&cookies, &headers);
            }
            let found = |attempt: &&Attempt| find(&arrived(is_secure, &cookies), &signer, &attempt.id).is_some();
            assert!(attempts[..3].iter().all(|attempt| !found(&attempt)), "{cookies}");
            assert!(attempts[3..].iter().all(|attempt| found(&attempt)), "{cookies}");
            // One of the two invalid cookies is that of the other scheme.
            assert_eq!(cookies.split("; ").count(), 6, "{cookies}");
            let after = applied(&cookies, &[removed(&arrived(is_secure, &cookies), &attempts[5].id)]);
            assert_eq!(find(&arrived(is_secure, &after), &signer, &attempts[5].id), None);
            assert_eq!(find(&arrived(!is_secure, &cookies), &signer, &attempts[4].id), None);
        }
    }

    #[test]
    fn all_attempts_fit_into_the_headers_of_a_request() {
        let signer = AttemptSigner::new(b"secret");
        let origin = format!("https://{}", "o".repeat(253));
        let next = format!("/?{}", "n".repeat(super::super::start::MAX_NEXT_BYTES - 2));
        let attempt = Attempt::new(&"p".repeat(32), &origin, &next, Some("f".repeat(32)));
        let [cookie] = added(&arrived(true, ""), &signer, &attempt).unwrap().try_into().unwrap();
        assert!(cookie.len() * MAX_ATTEMPTS < 7 << 10, "{}", cookie.len());
    }
}
