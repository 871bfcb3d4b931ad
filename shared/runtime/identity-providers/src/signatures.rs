//! Signatures of JWTs: the accepted algorithms (RFC 7518, RFC 8037), and public keys.
//!
//! AWS-LC checks the signatures. Neither `none` nor an algorithm with a shared secret is accepted.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// An algorithm that issuers sign tokens with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// The algorithms with their names in headers of tokens and in keys.
const NAMES: [(Algorithm, &str); 9] = [
    (Algorithm::RS256, "RS256"),
    (Algorithm::RS384, "RS384"),
    (Algorithm::RS512, "RS512"),
    (Algorithm::PS256, "PS256"),
    (Algorithm::PS384, "PS384"),
    (Algorithm::PS512, "PS512"),
    (Algorithm::ES256, "ES256"),
    (Algorithm::ES384, "ES384"),
    (Algorithm::EdDSA, "EdDSA"),
];

impl Algorithm {
    /// Returns the algorithm of this name, if it is accepted.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm)
    }

    /// Returns the parameters for RSA keys, or `None` if the algorithm does not use such keys.
    fn rsa_parameters(self) -> Option<&'static RsaParameters> {
        match self {
            Self::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::PS256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::PS384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::PS512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::ES256 | Self::ES384 | Self::EdDSA => None,
        }
    }
}

/// A public key.
#[derive(Clone)]
pub(crate) enum PublicKey {
    /// An RSA key, in big-endian bytes.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// A point on P-256, uncompressed.
    P256(Vec<u8>),
    /// A point on P-384, uncompressed.
    P384(Vec<u8>),
    /// An Ed25519 key.
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Returns the algorithms that keys of this type are used with.
    pub(crate) fn algorithms(&self) -> &'static [Algorithm] {
        match self {
            Self::Rsa { .. } => &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            Self::P256(_) => &[Algorithm::ES256],
            Self::P384(_) => &[Algorithm::ES384],
            Self::Ed25519(_) => &[Algorithm::EdDSA],
        }
    }

    /// Checks whether `signature` is this key's signature of `message`. Returns `false` if the key
    /// is not used with the algorithm.
    pub(crate) fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let with = |scheme: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(scheme, key).verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, algorithm) => algorithm.rsa_parameters().is_some_and(|parameters| {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signature).is_ok()
            }),
            (Self::P256(point), Algorithm::ES256) => with(&ECDSA_P256_SHA256_FIXED, point),
            (Self::P384(point), Algorithm::ES384) => with(&ECDSA_P384_SHA384_FIXED, point),
            (Self::Ed25519(key), Algorithm::EdDSA) => with(&ED25519, key),
            (Self::P256(_) | Self::P384(_) | Self::Ed25519(_), _) => false,
        }
    }
}
