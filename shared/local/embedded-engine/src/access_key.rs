//! The access key of a server, and verification of requests signed with it (AWS Signature Version
//! 4).

use std::fmt;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::config::Credentials;
use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use http::HeaderMap;
use http::request::Parts;
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::aws_json::EngineResponse;

/// Maximum difference between a request's time and the clock of this machine, as in AWS.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_mins(15);

/// An access key of a server, which rejects requests that are signed with any other key.
#[derive(Clone)]
pub struct AccessKey {
    id: String,
    secret: String,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl AccessKey {
    /// Returns a new key from the operating system's random numbers, as long as AWS's.
    pub(crate) fn random() -> Self {
        Self { id: format!("LOCAL{:015X}", rand::random::<u64>() >> 4), secret: hex(&rand::random::<[u8; 20]>()) }
    }

    /// Returns the access key id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the secret access key.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub(crate) fn credentials(&self) -> Credentials {
        Credentials::new(&self.id, &self.secret, None, None, "embedded-engine")
    }

    /// Checks that a request was recently signed with this key, and was not changed since.
    /// Otherwise returns the reason, which becomes DynamoDB's error.
    pub(crate) fn check(&self, now: SystemTime, request: &Parts, body: &[u8]) -> Result<(), SignatureRefusal> {
        let authorization = header(&request.headers, "authorization").ok_or(SignatureRefusal::Missing)?;
        let signed = AuthorizationHeader::read(authorization).ok_or(SignatureRefusal::Incomplete)?;
        let time = header(&request.headers, "x-amz-date").ok_or(SignatureRefusal::Incomplete)?;
        let at = instant(time).filter(|_| time.starts_with(signed.date)).ok_or(SignatureRefusal::Incomplete)?;
        if signed.key_id != self.id {
            return Err(SignatureRefusal::UnknownKey);
        }
        if now.duration_since(at).unwrap_or_else(|early| early.duration()) > MAX_CLOCK_DIFFERENCE {
            return Err(SignatureRefusal::WrongTime);
        }
        let canonical = signed.canonical(request, body).ok_or(SignatureRefusal::WrongSignature)?;
        let scope = format!("{}/{}/{}/aws4_request", signed.date, signed.region, signed.service);
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", digest(canonical.as_bytes()));
        let key = generate_signing_key(&self.secret, at, signed.region, signed.service);
        let expected = calculate_signature(key, to_sign.as_bytes());
        if !bool::from(expected.as_bytes().ct_eq(signed.signature.as_bytes())) {
            return Err(SignatureRefusal::WrongSignature);
        }
        Ok(())
    }
}

/// The reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureRefusal {
    Missing,
    Incomplete,
    UnknownKey,
    WrongTime,
    WrongSignature,
}

impl SignatureRefusal {
    /// Returns the error response, in DynamoDB's words.
    pub(crate) fn into_answer(self) -> EngineResponse {
        let (kind, message) = match self {
            Self::Missing => ("MissingAuthenticationTokenException", "Request is missing Authentication Token"),
            Self::Incomplete => (
                "IncompleteSignatureException",
                "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters and an 'X-Amz-Date' header.",
            ),
            Self::UnknownKey => {
                ("UnrecognizedClientException", "The security token included in the request is invalid.")
            }
            Self::WrongTime => (
                "InvalidSignatureException",
                "Signature expired, or not yet current: the clocks differ by more than 15 minutes.",
            ),
            Self::WrongSignature => (
                "InvalidSignatureException",
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
            ),
        };
        let body = json!({ "__type": format!("com.amazon.coral.service#{kind}"), "message": message });
        EngineResponse { status: 403, body: body.to_string() }
    }
}

/// The parts of the `Authorization` header.
struct AuthorizationHeader<'a> {
    key_id: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    /// Names of the signed headers, in lower case and sorted.
    headers: &'a str,
    signature: &'a str,
}

impl<'a> AuthorizationHeader<'a> {
    fn read(authorization: &'a str) -> Option<Self> {
        let parameters = authorization.strip_prefix("AWS4-HMAC-SHA256 ")?;
        let parameter =
            |name: &str| parameters.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        let scope: Vec<_> = parameter("Credential")?.split('/').collect();
        let [key_id, date, region, service, "aws4_request"] = scope[..] else { return None };
        let (headers, signature) = (parameter("SignedHeaders")?, parameter("Signature")?);
        Some(Self { key_id, date, region, service, headers, signature })
    }

    /// Returns the canonical request, which the signature is computed from. It leaves out unsigned
    /// headers. `None` if an essential part of the request was not signed.
    fn canonical(&self, request: &Parts, body: &[u8]) -> Option<String> {
        // DynamoDB's requests have a single path and no query.
        if request.uri.path() != "/" || request.uri.query().is_some() {
            return None;
        }
        let names: Vec<_> = self.headers.split(';').collect();
        if !["host", "x-amz-date", "x-amz-target"].iter().all(|needed| names.contains(needed)) {
            return None;
        }
        let mut canonical = format!("{}\n/\n\n", request.method);
        for name in names {
            let value = header(&request.headers, name)?;
            let words: Vec<_> = value.split(' ').filter(|word| !word.is_empty()).collect();
            writeln!(canonical, "{name}:{}", words.join(" ")).ok()?;
        }
        write!(canonical, "\n{}\n{}", self.headers, digest(body)).ok()?;
        Some(canonical)
    }
}

/// Returns the value of a header that occurs exactly once.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// Parses a time such as `20260102T030405Z`.
fn instant(time: &str) -> Option<SystemTime> {
    let (date, time) = time.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
    let date = [part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, date.len())?].join("-");
    let time = [part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, time.len())?].join(":");
    DateTime::from_str(&format!("{date}T{time}Z"), Format::DateTime).ok()?.try_into().ok()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
