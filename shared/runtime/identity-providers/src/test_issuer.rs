//! For tests: keys that sign tokens, and a provider without a network.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use runtime::clock::SimulatedClock;
use serde_json::{Map, Value, json};

use crate::claims::Claims;
use crate::configuration::{Configuration, Provider};
use crate::keys::KeySet;
use crate::transport::{ProviderRequest, ProviderResponse, ProviderTransport, TransportError};

/// The issuer of most tests.
pub(crate) const ISSUER: &str = "https://id.example.com";
/// The client id, and the audience, of most tests.
pub(crate) const CLIENT: &str = "mlflow";

/// A key of an issuer.
pub(crate) struct SigningKey {
    /// The key id.
    pub(crate) id: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
}

/// RSA keys, whose generation takes a while.
pub(crate) static RSA: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::rsa("rsa"));
/// A key of an attacker.
pub(crate) static FOREIGN_RSA: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::rsa("rsa"));

impl SigningKey {
    fn rsa(id: &'static str) -> Self {
        Self { id, pair: Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()) }
    }

    pub(crate) fn p256(id: &'static str) -> Self {
        Self { id, pair: Pair::Ec(ec(&ECDSA_P256_SHA256_FIXED_SIGNING), "P-256") }
    }

    pub(crate) fn p384(id: &'static str) -> Self {
        Self { id, pair: Pair::Ec(ec(&ECDSA_P384_SHA384_FIXED_SIGNING), "P-384") }
    }

    pub(crate) fn ed25519(id: &'static str) -> Self {
        Self { id, pair: Pair::Ed(Ed25519KeyPair::generate().unwrap()) }
    }

    /// Returns the public key in DER format.
    pub(crate) fn public_der(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_der().unwrap().as_ref().to_vec(),
            Pair::Ec(pair, _) => pair.public_key().as_ref().to_vec(),
            Pair::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// Returns the public key as a JWK.
    pub(crate) fn jwk(&self) -> Value {
        let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::Rsa(pair) => {
                // `RSAPublicKey` of PKCS #1 for a modulus of 2048 bits and the exponent 65537: nine bytes
                // of headers, the modulus, two bytes of a header, the exponent.
                let key = pair.public_key().as_ref();
                assert_eq!(key.len(), 270);
                json!({"kty": "RSA", "kid": self.id, "use": "sig", "n": encoded(&key[9..265]), "e": encoded(&key[267..])})
            }
            Pair::Ec(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "kid": self.id, "x": encoded(x), "y": encoded(y)})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": encoded(pair.public_key().as_ref())})
            }
        }
    }

    /// Returns a token with the algorithm, and further members of the header.
    pub(crate) fn token(&self, algorithm: &str, claims: &Value) -> String {
        self.token_with(&json!({"alg": algorithm, "typ": "JWT", "kid": self.id}), claims)
    }

    /// Returns a token with this header, which names the algorithm.
    pub(crate) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let signature = self.sign(header["alg"].as_str().unwrap(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let encoding: &dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    // RS256. Tests of other headers have a valid signature of the key, too.
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Pair::Ec(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

fn ec(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    EcdsaKeyPair::generate(algorithm).unwrap()
}

/// Returns the first two parts of a token.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", encoded(header), encoded(claims))
}

/// Returns the keys in a JWK set.
pub(crate) fn key_set(keys: &[&SigningKey]) -> Value {
    json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()})
}

/// Returns the keys of [`ISSUER`].
pub(crate) fn keys() -> KeySet {
    KeySet::parse(&key_set(&[&RSA])).unwrap()
}

/// Returns the current time in seconds.
pub(crate) fn now() -> i64 {
    runtime::clock::now_ms() / 1000
}

/// Returns the claims of a valid token of [`ISSUER`].
pub(crate) fn valid_claims() -> Value {
    let now = now();
    json!({"iss": ISSUER, "aud": CLIENT, "sub": "ann", "nonce": "n", "iat": now, "exp": now + 300})
}

/// Returns valid claims, changed by some others. `null` removes a claim.
pub(crate) fn claims_with(changes: Value) -> Value {
    let mut claims = valid_claims();
    let Value::Object(changes) = changes else { panic!("not an object") };
    for (name, value) in changes {
        let claims = claims.as_object_mut().unwrap();
        if value.is_null() {
            claims.remove(&name)
        } else {
            claims.insert(name, value)
        };
    }
    claims
}

/// Returns claims as they are after verification.
pub(crate) fn verified(claims: Value) -> Claims {
    let Value::Object(claims) = claims else { panic!("not an object") };
    Claims::from(Map::from_iter(claims))
}

/// Returns the only provider of a configuration, whose table continues with this text.
pub(crate) fn provider(rest: &str) -> Provider {
    let configuration = Configuration::from_toml(&format!(
        "origins = [\"https://mlflow.example.com\"]\n[[providers]]\nname = \"example\"\ntitle = \"Example\"\n\
         issuer = \"{ISSUER}\"\nclient_id = \"{CLIENT}\"\n{rest}"
    ));
    configuration.unwrap().providers.remove(0)
}

/// Lets time pass on a simulated clock.
pub(crate) async fn pass(clock: &SimulatedClock, time: Duration) {
    tokio::select! {
        () = clock.drive() => {}
        () = runtime::clock::sleep(time) => {}
    }
}

type Answer = Result<(u16, String), TransportError>;

/// A provider whose responses the test determines by URL. Other URLs respond with 404.
#[derive(Clone, Default)]
pub(crate) struct FakeProvider {
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<SentRequest>>>,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentRequest {
    pub(crate) url: String,
    pub(crate) authorization: Option<String>,
    pub(crate) form: Option<String>,
}

impl FakeProvider {
    /// Returns a provider at [`ISSUER`] with a discovery document and keys.
    pub(crate) fn new(keys: &[&SigningKey]) -> Self {
        let fake = Self::default();
        fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &discovery_document());
        fake.answer(&format!("{ISSUER}/keys"), 200, &key_set(keys));
        fake
    }

    /// Sets the response of a URL.
    pub(crate) fn answer(&self, url: &str, status: u16, body: &Value) {
        self.answer_with(url, Ok((status, body.to_string())));
    }

    /// Sets the response of a URL, or the failure.
    pub(crate) fn answer_with(&self, url: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(url.to_owned(), answer);
    }

    /// Makes all URLs unreachable.
    pub(crate) fn go_down(&self) {
        for answer in self.answers.lock().unwrap().values_mut() {
            *answer = Err(TransportError::NotSent("refused".to_owned()));
        }
    }

    /// Returns the requests that were sent to a URL with this end.
    pub(crate) fn requests(&self, end: &str) -> Vec<SentRequest> {
        self.requests.lock().unwrap().iter().filter(|request| request.url.ends_with(end)).cloned().collect()
    }

    /// Returns the number of all requests.
    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FakeProvider")
    }
}

impl ProviderTransport for FakeProvider {
    fn send(&self, request: ProviderRequest) -> BoxFuture<'_, Result<ProviderResponse, TransportError>> {
        let url = request.url.to_string();
        let authorization = request.authorization.map(|text| text.to_string());
        let form = request.form.map(|text| text.to_string());
        let answer = self.answers.lock().unwrap().get(&url).cloned().unwrap_or_else(|| Ok((404, String::new())));
        self.requests.lock().unwrap().push(SentRequest { url, authorization, form });
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer.map(|(status, body)| ProviderResponse { status, body: body.into() })
        })
    }
}

/// Returns the discovery document of [`ISSUER`].
pub(crate) fn discovery_document() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": format!("{ISSUER}/authorize?tenant=1"),
        "token_endpoint": format!("{ISSUER}/token"),
        "userinfo_endpoint": format!("{ISSUER}/userinfo"),
        "end_session_endpoint": format!("{ISSUER}/logout"),
        "jwks_uri": format!("{ISSUER}/keys"),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    })
}
