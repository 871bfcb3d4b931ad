//! Attempts to sign in at an identity provider. While the browser is at the provider, the state of
//! the attempt is in a signed cookie. Each attempt has its own, so that several tabs can sign in at
//! the same time. The server stores nothing.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngExt;
use runtime::clock::now_ms;
use serde::{Deserialize, Serialize};

/// Lifetime of an attempt in seconds. Users may have to enter a password and a code at the provider.
pub(crate) const ATTEMPT_SECONDS: u64 = 10 * 60;
/// Length of an attempt's id and of a nonce in bytes.
const ID_BYTES: usize = 16;
/// Maximum length of a cookie's value in bytes.
const MAX_VALUE_BYTES: usize = 2 << 10;

/// An attempt to sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// Random id. Part of the cookie's name and of the `state` that the provider returns.
    pub(crate) id: String,
    /// Name of the provider.
    pub(crate) provider: String,
    /// Random value that the ID token has to contain.
    pub(crate) nonce: String,
    /// The PKCE verifier.
    pub(crate) verifier: String,
    /// The origin of this server that the redirect URI begins with.
    pub(crate) origin: String,
    /// The page to return to.
    pub(crate) next: String,
    /// Key under which the tab has stored the fragment of the page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fragment: Option<String>,
    /// When the attempt expires, in ms since 1970.
    pub(crate) expires: i64,
}

impl Attempt {
    /// Starts an attempt at a provider.
    pub(crate) fn new(provider: &str, origin: &str, next: &str, fragment: Option<String>) -> Self {
        let random = || URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; ID_BYTES]>());
        Self {
            id: random(),
            provider: provider.to_owned(),
            nonce: random(),
            verifier: URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>()),
            origin: origin.to_owned(),
            next: next.to_owned(),
            fragment,
            expires: now_ms() + i64::try_from(ATTEMPT_SECONDS * 1_000).unwrap_or_default(),
        }
    }
}

/// Signs attempts, and checks their signatures.
pub(crate) struct AttemptSigner(hmac::Key);

impl AttemptSigner {
    /// Creates a signer with a secret that all processes share.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns the value of the attempt's cookie.
    ///
    /// # Errors
    /// The attempt cannot be serialized.
    pub(crate) fn cookie_value(&self, attempt: &Attempt) -> Result<String, serde_json::Error> {
        let content = URL_SAFE_NO_PAD.encode(serde_json::to_vec(attempt)?);
        let tag = URL_SAFE_NO_PAD.encode(self.tag("cookie", &content));
        Ok(format!("{content}.{tag}"))
    }

    /// Returns the attempt in a cookie with this id and value. Returns `None` if the signature is
    /// wrong, or if the attempt has expired.
    pub(crate) fn attempt(&self, id: &str, value: &str) -> Option<Attempt> {
        let (content, tag) = value.split_once('.').filter(|_| value.len() <= MAX_VALUE_BYTES)?;
        self.check("cookie", content, tag)?;
        let attempt: Attempt = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()?;
        (attempt.id == id && attempt.expires > now_ms()).then_some(attempt)
    }

    /// Returns the `state` of an attempt, with which the provider redirects the browser back.
    pub(crate) fn state(&self, attempt: &Attempt) -> String {
        format!("{}.{}", attempt.id, URL_SAFE_NO_PAD.encode(self.tag("state", &attempt.id)))
    }

    /// Returns the id of the attempt that a `state` belongs to, or `None` if this server has not
    /// issued it.
    pub(crate) fn attempt_id<'a>(&self, state: &'a str) -> Option<&'a str> {
        let (id, tag) = state.split_once('.').filter(|_| state.len() <= MAX_VALUE_BYTES)?;
        self.check("state", id, tag)?;
        Some(id)
    }

    /// Returns the authentication tag of a text. The purpose separates cookies from states.
    fn tag(&self, purpose: &str, text: &str) -> hmac::Tag {
        hmac::sign(&self.0, format!("{purpose}:{text}").as_bytes())
    }

    fn check(&self, purpose: &str, text: &str, tag: &str) -> Option<()> {
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, format!("{purpose}:{text}").as_bytes(), &tag).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt::new("keycloak", "https://ml.example", "/tokens", Some("a1".to_owned()))
    }

    #[test]
    fn an_attempt_is_read_as_it_was_written() {
        let (signer, attempt) = (AttemptSigner::new(b"secret"), attempt());
        let value = signer.cookie_value(&attempt).unwrap();
        assert_eq!(signer.attempt(&attempt.id, &value), Some(attempt.clone()));
        assert_eq!(signer.attempt_id(&signer.state(&attempt)), Some(attempt.id.as_str()));
        assert!(value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{value}");
        assert_eq!((attempt.id.len(), attempt.nonce.len(), attempt.verifier.len()), (22, 22, 43));
    }

    #[test]
    fn nothing_that_was_changed_or_mixed_up_is_accepted() {
        let (signer, one, other) = (AttemptSigner::new(b"secret"), attempt(), attempt());
        assert!(one.id != other.id && one.nonce != other.nonce && one.verifier != other.verifier);
        let value = signer.cookie_value(&one).unwrap();
        assert_eq!(signer.attempt(&other.id, &value), None);
        assert_eq!(AttemptSigner::new(b"another").attempt(&one.id, &value), None);
        let (content, tag) = value.split_once('.').unwrap();
        let forged = serde_json::to_vec(&Attempt { next: "/".to_owned(), ..one.clone() }).unwrap();
        for forged in [content, "", ".", &format!("{}.{tag}", URL_SAFE_NO_PAD.encode(forged)), &format!("{value}A")] {
            assert_eq!(signer.attempt(&one.id, forged), None, "{forged}");
        }
        let state = signer.state(&one);
        let (_, tag) = state.split_once('.').unwrap();
        let cookie_tag = value.split_once('.').unwrap().1;
        for forged in ["", &one.id, &format!("{}.{tag}", other.id), &format!("{}.{cookie_tag}", one.id), &value] {
            assert_eq!(signer.attempt_id(forged), None, "{forged}");
        }
    }

    #[test]
    fn an_attempt_expires() {
        let (signer, attempt) = (AttemptSigner::new(b"secret"), attempt());
        let expired = Attempt { expires: now_ms(), ..attempt };
        assert_eq!(signer.attempt(&expired.id, &signer.cookie_value(&expired).unwrap()), None);
    }
}
