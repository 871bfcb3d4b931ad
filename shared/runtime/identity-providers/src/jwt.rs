//! Checks JWTs: who has signed them, for whom, and when.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::claims::Claims;
use crate::configuration::expected_issuer;
use crate::keys::KeySet;
use crate::signatures::Algorithm;

/// Maximum length of a JWT in bytes.
pub const MAX_JWT_BYTES: usize = 64 << 10;
/// Maximum difference between the clocks of an issuer and of this machine, in seconds.
const SKEW_S: f64 = 60.0;
/// Maximum length in bytes of a text that an error message repeats.
const MAX_QUOTED_BYTES: usize = 200;

/// What a JWT has to contain.
#[derive(Clone, Copy, Debug)]
pub struct JwtExpectations<'a> {
    /// The issuer. `{tenantid}` stands for the claim `tid`.
    pub issuer: &'a str,
    /// The audience. The token must not have another one.
    pub audience: &'a str,
    /// What kind of token it has to be.
    pub kind: JwtKind<'a>,
    /// The current time in seconds since 1970.
    pub now: i64,
}

/// The kind of a JWT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwtKind<'a> {
    /// An ID token from a sign-in, with the nonce of the attempt.
    SignIn {
        /// The nonce.
        nonce: &'a str,
    },
    /// An ID token from a renewal, which need not have a nonce.
    Renewal,
    /// A token that identifies a machine.
    Machine,
}

/// Why a JWT is refused. Each message is one sentence without a final period.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JwtError {
    /// The text is not a signed JWT.
    #[error("the token is not a signed JWT: {0}")]
    Malformed(&'static str),
    /// The algorithm is not accepted: `none`, an algorithm with a shared secret, or an unknown one.
    #[error("the token is signed with the algorithm {0:?}, which is not accepted")]
    Algorithm(String),
    /// The issuer's keys do not contain the key of the signature. They may have changed since they
    /// were fetched.
    #[error("the token is signed with a key that the issuer does not list")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the token is wrong")]
    Signature,
    /// The token has another issuer.
    #[error("the token has the issuer {found:?} instead of {expected:?}")]
    Issuer {
        /// The issuer of the token.
        found: String,
        /// The expected issuer.
        expected: String,
    },
    /// The token is for another audience, or for several.
    #[error("the token has the audience {found} instead of {expected:?} alone")]
    Audience {
        /// The claim `aud`.
        found: String,
        /// The expected audience.
        expected: String,
    },
    /// The token was issued to another client.
    #[error("the token was issued to another client")]
    AuthorizedParty,
    /// A required claim is missing or has the wrong type.
    #[error("the token has no valid claim {0:?}")]
    Claim(&'static str),
    /// The token has expired.
    #[error("the token expired {0} seconds ago")]
    Expired(i64),
    /// The token is not valid yet.
    #[error("the token is not valid yet; check the clocks of the issuer and of this server")]
    NotYetValid,
    /// The token belongs to another attempt to sign in.
    #[error("the token belongs to another attempt to sign in")]
    Nonce,
}

/// Verifies a JWT, and returns its claims.
///
/// # Errors
/// A [`JwtError`] if anything but the expected token was sent.
pub fn verify(token: &str, keys: &KeySet, expected: &JwtExpectations<'_>) -> Result<Claims, JwtError> {
    let parts = Parts::of(token)?;
    let claims = parts.claims()?;
    check_type(parts.header_text("typ")?, expected.kind)?;
    check_signature(
        &parts,
        keys,
        claims.get("iss").and_then(Value::as_str),
        claims.get("tid").and_then(Value::as_str),
    )?;
    check_issuer(&claims, expected)?;
    check_audience(&claims, expected)?;
    check_times(&claims, expected.now)?;
    if let JwtKind::SignIn { nonce } = expected.kind
        && (nonce.is_empty() || claims.get("nonce").and_then(Value::as_str) != Some(nonce))
    {
        return Err(JwtError::Nonce);
    }
    Ok(Claims::from(claims))
}

/// Returns the issuer of a JWT **without verifying it**, to find out with which
/// keys it has to be verified.
///
/// # Errors
/// [`JwtError::Malformed`], or [`JwtError::Claim`] if it has no issuer.
pub fn unverified_issuer(token: &str) -> Result<String, JwtError> {
    let claims = Parts::of(token)?.claims()?;
    let issuer = claims.get("iss").and_then(Value::as_str).ok_or(JwtError::Claim("iss"))?;
    Ok(issuer.to_owned())
}

/// The parts of a JWT.
struct Parts<'a> {
    header: Map<String, Value>,
    /// The header and the payload as they were sent, which are signed.
    signed: &'a str,
    payload: &'a str,
    signature: &'a str,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Result<Self, JwtError> {
        if token.len() > MAX_JWT_BYTES {
            return Err(JwtError::Malformed("it is too long"));
        }
        let three = || JwtError::Malformed("it does not have three parts");
        let (signed, signature) = token.rsplit_once('.').ok_or_else(three)?;
        let (header, payload) = signed.split_once('.').ok_or_else(three)?;
        if payload.contains('.') {
            return Err(three());
        }
        Ok(Self { header: decoded(header, "its header is not an object in base64url")?, signed, payload, signature })
    }

    fn claims(&self) -> Result<Map<String, Value>, JwtError> {
        decoded(self.payload, "its payload is not an object in base64url")
    }

    fn header_text(&self, name: &str) -> Result<Option<&str>, JwtError> {
        match self.header.get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or(JwtError::Malformed("a member of its header is not a text")),
        }
    }
}

fn decoded<T: DeserializeOwned>(part: &str, problem: &'static str) -> Result<T, JwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Malformed(problem))?;
    serde_json::from_slice(&bytes).map_err(|_| JwtError::Malformed(problem))
}

/// Checks the signature with the keys that the header allows. Keys in the header itself (`jwk`,
/// `x5c`) and addresses of keys (`jku`, `x5u`) are ignored: anyone can write a header.
fn check_signature(
    parts: &Parts<'_>,
    keys: &KeySet,
    issuer: Option<&str>,
    tenant: Option<&str>,
) -> Result<(), JwtError> {
    if parts.header.contains_key("crit") {
        return Err(JwtError::Malformed("its header requires an extension"));
    }
    let name = parts.header_text("alg")?.ok_or(JwtError::Malformed("its header has no algorithm"))?;
    let algorithm = Algorithm::from_name(name).ok_or_else(|| JwtError::Algorithm(quoted(name)))?;
    let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| JwtError::Signature)?;
    let candidates = keys.candidates(parts.header_text("kid")?, algorithm);
    if candidates.is_empty() {
        return Err(JwtError::UnknownKey);
    }
    let is_signed = candidates.iter().any(|candidate| {
        let may_sign = candidate.issuer.is_none_or(|of_key| expected_issuer(of_key, tenant).as_deref() == issuer);
        may_sign && candidate.key.has_signed(algorithm, parts.signed.as_bytes(), &signature)
    });
    if is_signed { Ok(()) } else { Err(JwtError::Signature) }
}

/// Checks the type in the header. Tokens of other types, such as those of back-channel logout, are
/// signed with the same keys. Machines may send access tokens, people must not.
fn check_type(written: Option<&str>, kind: JwtKind<'_>) -> Result<(), JwtError> {
    let Some(written) = written.map(str::to_ascii_lowercase) else { return Ok(()) };
    let accepted = match written.strip_prefix("application/").unwrap_or(&written) {
        "jwt" => true,
        "at+jwt" => kind == JwtKind::Machine,
        _ => false,
    };
    if accepted { Ok(()) } else { Err(JwtError::Malformed("its header names another type")) }
}

fn check_issuer(claims: &Map<String, Value>, expected: &JwtExpectations<'_>) -> Result<(), JwtError> {
    let found = claims.get("iss").and_then(Value::as_str).ok_or(JwtError::Claim("iss"))?;
    let tenant = claims.get("tid").and_then(Value::as_str);
    if expected_issuer(expected.issuer, tenant).as_deref() == Some(found) {
        return Ok(());
    }
    Err(JwtError::Issuer { found: quoted(found), expected: expected.issuer.to_owned() })
}

fn check_audience(claims: &Map<String, Value>, expected: &JwtExpectations<'_>) -> Result<(), JwtError> {
    let audience = claims.get("aud").ok_or(JwtError::Claim("aud"))?;
    let only = match audience {
        Value::String(audience) => Some(audience.as_str()),
        Value::Array(audiences) => match audiences.as_slice() {
            [audience] => audience.as_str(),
            _ => None,
        },
        _ => None,
    };
    if only != Some(expected.audience) || expected.audience.is_empty() {
        return Err(JwtError::Audience {
            found: quoted(&audience.to_string()),
            expected: expected.audience.to_owned(),
        });
    }
    // Issuers of machine tokens use the claim for other purposes.
    match claims.get("azp") {
        Some(party) if expected.kind != JwtKind::Machine && party.as_str() != Some(expected.audience) => {
            Err(JwtError::AuthorizedParty)
        }
        _ => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "times in seconds are far below 2^53")]
#[expect(clippy::cast_possible_truncation, reason = "the number is for a message only, and casts saturate")]
fn check_times(claims: &Map<String, Value>, now: i64) -> Result<(), JwtError> {
    let now = now as f64;
    let time = |claim: &'static str| match claims.get(claim) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(JwtError::Claim(claim)),
    };
    let expires = time("exp")?.ok_or(JwtError::Claim("exp"))?;
    if now >= expires + SKEW_S {
        return Err(JwtError::Expired((now - expires) as i64));
    }
    for claim in ["nbf", "iat"] {
        if time(claim)?.is_some_and(|time| time > now + SKEW_S) {
            return Err(JwtError::NotYetValid);
        }
    }
    Ok(())
}

/// Returns the beginning of a text.
fn quoted(text: &str) -> String {
    let end = (0..=MAX_QUOTED_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    if text.len() <= MAX_QUOTED_BYTES { text.to_owned() } else { format!("{}…", text.get(..end).unwrap_or_default()) }
}

#[cfg(test)]
mod tests;
