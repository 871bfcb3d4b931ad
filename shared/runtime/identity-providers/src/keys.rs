//! The keys with which an issuer signs tokens (a JWK set).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use crate::signatures::{Algorithm, PublicKey};

/// Maximum number of keys of a set. Further keys are ignored.
const MAX_KEYS: usize = 100;
/// Maximum number of keys with which a token is checked that names no key, or one of several.
const MAX_CANDIDATES: usize = 8;
/// Minimum length of an RSA modulus in bytes.
const MIN_MODULUS_BYTES: usize = 2048 / 8;

/// The keys of an issuer that can check signatures. Symmetric keys are never among them.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<IssuerKey>,
}

/// A public key.
#[derive(Clone)]
struct IssuerKey {
    id: Option<String>,
    /// The algorithms that the type of the key, and the key's own `alg`, allow.
    algorithms: Vec<Algorithm>,
    key: PublicKey,
    /// The issuer whose tokens the key may sign, which Entra names because its tenants share a set.
    issuer: Option<String>,
}

/// The members of a JWK that are used.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(rename = "use", default)]
    purpose: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    issuer: Option<String>,
}

/// A key that may have signed a token.
pub(crate) struct Candidate<'a> {
    pub(crate) key: &'a PublicKey,
    pub(crate) issuer: Option<&'a str>,
}

impl KeySet {
    /// Reads a JWK set. Keys of unknown types, keys for encryption and symmetric keys are ignored.
    ///
    /// Returns `None` if the value is not a JWK set.
    #[must_use]
    pub fn parse(value: &Value) -> Option<Self> {
        let keys = value.get("keys")?.as_array()?;
        Some(Self { keys: keys.iter().take(MAX_KEYS).filter_map(IssuerKey::parse).collect() })
    }

    /// Checks whether the set has no key that can check signatures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the keys that may have signed a token with this header.
    pub(crate) fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<Candidate<'_>> {
        let fits = |key: &&IssuerKey| {
            key.algorithms.contains(&algorithm) && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        };
        // A key without an id may only be the one if the set has no other.
        let named =
            self.keys.iter().filter(fits).filter(|key| id.is_none() || key.id.is_some() || self.keys.len() == 1);
        named.take(MAX_CANDIDATES).map(|key| Candidate { key: &key.key, issuer: key.issuer.as_deref() }).collect()
    }
}

impl IssuerKey {
    fn parse(value: &Value) -> Option<Self> {
        let jwk = Jwk::deserialize(value).ok()?;
        if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if jwk.key_ops.as_ref().is_some_and(|operations| !operations.iter().any(|operation| operation == "verify")) {
            return None;
        }
        let key = jwk.key()?;
        let mut algorithms = key.algorithms().to_vec();
        if let Some(only) = &jwk.alg {
            algorithms.retain(|algorithm| Algorithm::from_name(only) == Some(*algorithm));
        }
        (!algorithms.is_empty()).then_some(Self { id: jwk.kid, algorithms, key, issuer: jwk.issuer })
    }
}

impl Jwk {
    /// Returns the key, if its type is known and its length is that of the type.
    fn key(&self) -> Option<PublicKey> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let (modulus, exponent) = (integer(self.n.as_deref())?, integer(self.e.as_deref())?);
                (modulus.len() >= MIN_MODULUS_BYTES).then_some(PublicKey::Rsa { modulus, exponent })
            }
            ("EC", Some("P-256")) => self.point(32).map(PublicKey::P256),
            ("EC", Some("P-384")) => self.point(48).map(PublicKey::P384),
            ("OKP", Some("Ed25519")) => bytes(self.x.as_deref()).filter(|key| key.len() == 32).map(PublicKey::Ed25519),
            _ => None,
        }
    }

    /// Returns an uncompressed point whose coordinates have this number of bytes.
    fn point(&self, length: usize) -> Option<Vec<u8>> {
        let (x, y) = (bytes(self.x.as_deref())?, bytes(self.y.as_deref())?);
        let is_point = x.len() == length && y.len() == length;
        is_point.then(|| [&[4], x.as_slice(), &y].concat())
    }
}

impl fmt::Debug for IssuerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IssuerKey")
            .field("id", &self.id)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}

/// Returns an integer in big-endian bytes, without leading zeros, which AWS-LC refuses.
fn integer(text: Option<&str>) -> Option<Vec<u8>> {
    Some(bytes(text)?.into_iter().skip_while(|byte| *byte == 0).collect())
}

fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok()
}
