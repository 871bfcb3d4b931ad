//! Attacks with tokens, and their limits in time.

use aws_lc_rs::hmac;
use runtime::clock::SimulatedClock;
use serde_json::json;

use super::*;
use crate::test_issuer::{
    CLIENT, FOREIGN_RSA, ISSUER, RSA, SigningKey, claims_with, key_set, keys, now, unsigned, valid_claims,
};

fn expected() -> JwtExpectations<'static> {
    JwtExpectations { issuer: ISSUER, audience: CLIENT, kind: JwtKind::SignIn { nonce: "n" }, now: now() }
}

fn check(token: &str) -> Result<Claims, JwtError> {
    verify(token, &keys(), &expected())
}

/// Checks a valid token with some claims changed.
fn check_with(changes: Value) -> Result<Claims, JwtError> {
    check(&RSA.token("RS256", &claims_with(changes)))
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn a_valid_token_is_accepted_with_every_algorithm() {
    let others = [SigningKey::p256("p256"), SigningKey::p384("p384"), SigningKey::ed25519("ed")];
    let [p256, p384, ed] = &others;
    let set = KeySet::parse(&key_set(&[&RSA, p256, p384, ed])).unwrap();
    for (key, algorithms) in [
        (&*RSA, ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"].as_slice()),
        (p256, &["ES256"]),
        (p384, &["ES384"]),
        (ed, &["EdDSA"]),
    ] {
        for algorithm in algorithms {
            let token = key.token(algorithm, &valid_claims());
            assert_eq!(verify(&token, &set, &expected()).unwrap().text("sub"), Some("ann"), "{algorithm}");
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let mut changed = URL_SAFE_NO_PAD.decode(signature).unwrap();
            changed[7] ^= 1;
            let token = format!("{signed}.{}", encoded(changed));
            assert_eq!(verify(&token, &set, &expected()), Err(JwtError::Signature), "{algorithm}");
        }
    }
}

#[test]
fn a_token_without_a_signature_is_refused() {
    for name in ["none", "None", "NONE", ""] {
        let signed = unsigned(&json!({"alg": name, "kid": "rsa"}), &valid_claims());
        assert_eq!(check(&format!("{signed}.")), Err(JwtError::Algorithm(name.to_owned())));
    }
    let signed = unsigned(&json!({"alg": "RS256", "kid": "rsa"}), &valid_claims());
    assert_eq!(check(&format!("{signed}.")), Err(JwtError::Signature));
    assert!(matches!(check(&signed), Err(JwtError::Malformed(_))));
}

#[test]
fn the_public_key_is_no_shared_secret() {
    let modulus = RSA.jwk()["n"].as_str().unwrap().to_owned();
    let secrets = [RSA.public_der(), modulus.clone().into_bytes(), URL_SAFE_NO_PAD.decode(modulus).unwrap()];
    for secret in secrets {
        let signed = unsigned(&json!({"alg": "HS256", "typ": "JWT", "kid": "rsa"}), &valid_claims());
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), signed.as_bytes());
        let token = format!("{signed}.{}", encoded(tag));
        assert_eq!(check(&token), Err(JwtError::Algorithm("HS256".to_owned())));
    }
}

#[test]
fn a_symmetric_key_in_the_set_is_ignored() {
    let set = json!({"keys": [{"kty": "oct", "kid": "shared", "k": encoded([7; 32])}]});
    let set = KeySet::parse(&set).unwrap();
    assert!(set.is_empty());
    let signed = unsigned(&json!({"alg": "HS256", "kid": "shared"}), &valid_claims());
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]), signed.as_bytes());
    let token = format!("{signed}.{}", encoded(tag));
    assert_eq!(verify(&token, &set, &expected()), Err(JwtError::Algorithm("HS256".to_owned())));
}

#[test]
fn a_key_in_the_header_is_not_used() {
    let attacker = &*FOREIGN_RSA;
    for header in [
        json!({"alg": "RS256", "kid": "rsa", "jwk": attacker.jwk()}),
        json!({"alg": "RS256", "kid": "rsa", "jku": "https://attacker.example.com/keys"}),
        json!({"alg": "RS256", "jwk": attacker.jwk()}),
    ] {
        assert_eq!(check(&attacker.token_with(&header, &valid_claims())), Err(JwtError::Signature));
    }
}

#[test]
fn a_token_that_was_changed_is_refused() {
    let token = RSA.token("RS256", &valid_claims());
    let parts: Vec<_> = token.split('.').collect();
    let other = encoded(claims_with(json!({"sub": "bob"})).to_string());
    assert_eq!(check(&format!("{}.{other}.{}", parts[0], parts[2])), Err(JwtError::Signature));
    let header = encoded(json!({"alg": "PS256", "kid": "rsa"}).to_string());
    assert_eq!(check(&format!("{header}.{}.{}", parts[1], parts[2])), Err(JwtError::Signature));
}

#[test]
fn an_algorithm_of_another_key_type_is_refused() {
    let header = json!({"alg": "ES256", "kid": "rsa"});
    assert_eq!(check(&RSA.token_with(&header, &valid_claims())), Err(JwtError::UnknownKey));
    // The key names its only algorithm.
    let mut jwk = RSA.jwk();
    jwk["alg"] = json!("RS256");
    let set = KeySet::parse(&json!({"keys": [jwk]})).unwrap();
    assert!(verify(&RSA.token("RS256", &valid_claims()), &set, &expected()).is_ok());
    assert_eq!(verify(&RSA.token("RS512", &valid_claims()), &set, &expected()), Err(JwtError::UnknownKey));
}

#[test]
fn keys_for_encryption_and_short_keys_are_ignored() {
    for (member, value) in [("use", json!("enc")), ("key_ops", json!(["encrypt"])), ("n", json!(encoded([0xff; 128])))]
    {
        let mut jwk = RSA.jwk();
        jwk[member] = value;
        assert!(KeySet::parse(&json!({"keys": [jwk]})).unwrap().is_empty(), "{member}");
    }
    assert!(KeySet::parse(&json!({"keys": "none"})).is_none());
    assert!(KeySet::parse(&json!([])).is_none());
}

#[test]
fn a_token_without_a_key_id_is_checked_with_all_keys() {
    let header = json!({"alg": "RS256"});
    let set = KeySet::parse(&key_set(&[&FOREIGN_RSA, &RSA])).unwrap();
    assert!(verify(&RSA.token_with(&header, &valid_claims()), &set, &expected()).is_ok());
    let header = json!({"alg": "RS256", "kid": "another"});
    assert_eq!(verify(&RSA.token_with(&header, &valid_claims()), &set, &expected()), Err(JwtError::UnknownKey));
}

#[test]
fn a_key_that_names_an_issuer_signs_for_no_other() {
    let jwk = |issuer: &str| {
        let mut jwk = RSA.jwk();
        jwk["issuer"] = json!(issuer);
        KeySet::parse(&json!({"keys": [jwk]})).unwrap()
    };
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    let expected = JwtExpectations { issuer: template, ..expected() };
    let issuer = "https://login.microsoftonline.com/t-1/v2.0";
    let token = RSA.token("RS256", &claims_with(json!({"iss": issuer, "tid": "t-1"})));
    assert!(verify(&token, &jwk(template), &expected).is_ok());
    assert!(verify(&token, &jwk(issuer), &expected).is_ok());
    let other = jwk("https://login.microsoftonline.com/t-2/v2.0");
    assert_eq!(verify(&token, &other, &expected), Err(JwtError::Signature));
}

#[test]
fn the_tenant_completes_the_issuer() {
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    let check = |issuer: &str, tenant: Value| {
        let token = RSA.token("RS256", &claims_with(json!({"iss": issuer, "tid": tenant})));
        verify(&token, &keys(), &JwtExpectations { issuer: template, ..expected() })
    };
    let issuer = "https://login.microsoftonline.com/t-1/v2.0";
    assert!(check(issuer, json!("t-1")).is_ok());
    for (issuer, tenant) in [
        (issuer, json!("t-2")),
        (issuer, Value::Null),
        (template, json!("{tenantid}")),
        ("https://login.microsoftonline.com/x/../y/v2.0", json!("x/../y")),
        ("https://login.microsoftonline.com//v2.0", json!("")),
    ] {
        assert!(matches!(check(issuer, tenant), Err(JwtError::Issuer { .. })), "{issuer}");
    }
}

#[test]
fn an_almost_equal_issuer_is_refused() {
    for issuer in [
        "https://id.example.com/",
        "https://id.example.com.",
        "https://ID.example.com",
        "http://id.example.com",
        "https://id.example.com:443",
        "https://id.example.com ",
        "https://id.example.com@attacker.example.com",
        "https://id.example.com\u{0}",
        "id.example.com",
        "",
    ] {
        let refused = check_with(json!({"iss": issuer}));
        assert!(matches!(refused, Err(JwtError::Issuer { .. })), "{issuer}: {refused:?}");
    }
    assert_eq!(check_with(json!({"iss": null})), Err(JwtError::Claim("iss")));
    assert_eq!(check_with(json!({"iss": [ISSUER]})), Err(JwtError::Claim("iss")));
}

#[test]
fn a_wrong_or_a_second_audience_is_refused() {
    assert!(check_with(json!({"aud": [CLIENT]})).is_ok());
    for audience in [
        json!("other"),
        json!("mlflo"),
        json!("MLflow"),
        json!(["other"]),
        json!([CLIENT, "other"]),
        json!([CLIENT, CLIENT]),
        json!([]),
        json!({"mlflow": true}),
        json!(""),
    ] {
        let refused = check_with(json!({"aud": audience}));
        assert!(matches!(refused, Err(JwtError::Audience { .. })), "{refused:?}");
    }
    assert_eq!(check_with(json!({"aud": null})), Err(JwtError::Claim("aud")));
}

#[test]
fn a_token_of_another_client_is_refused() {
    assert!(check_with(json!({"azp": CLIENT})).is_ok());
    assert_eq!(check_with(json!({"azp": "other"})), Err(JwtError::AuthorizedParty));
    let token = RSA.token("RS256", &claims_with(json!({"azp": "1234"})));
    assert!(verify(&token, &keys(), &JwtExpectations { kind: JwtKind::Machine, ..expected() }).is_ok());
}

#[test]
fn clocks_may_differ_by_a_minute() {
    // The clock of this thread stands still.
    let _clock = SimulatedClock::begin();
    let now = now();
    for (changes, outcome) in [
        (json!({"exp": now - 50}), "valid"),
        (json!({"exp": now - 70}), "expired"),
        (json!({"exp": now}), "valid"),
        (json!({"nbf": now + 50}), "valid"),
        (json!({"nbf": now + 70}), "early"),
        (json!({"iat": now + 50}), "valid"),
        (json!({"iat": now + 70}), "early"),
        (json!({"iat": null}), "valid"),
    ] {
        let found = match check_with(changes.clone()) {
            Ok(_) => "valid",
            Err(JwtError::Expired(seconds)) => {
                assert_eq!(seconds, 70);
                "expired"
            }
            Err(JwtError::NotYetValid) => "early",
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, outcome, "{changes}");
    }
}

#[test]
fn times_that_are_no_numbers_are_refused() {
    let text = now() + 300;
    for (changes, claim) in [
        (json!({"exp": null}), "exp"),
        (json!({"exp": text.to_string()}), "exp"),
        (json!({"nbf": "0"}), "nbf"),
        (json!({"iat": true}), "iat"),
    ] {
        assert_eq!(check_with(changes), Err(JwtError::Claim(claim)));
    }
    // Fractions of seconds are allowed, and no number overflows.
    assert!(check_with(json!({"exp": 1e300, "iat": 1.5})).is_ok());
    assert_eq!(check_with(json!({"exp": -1e300})), Err(JwtError::Expired(i64::MAX)));
}

#[test]
fn a_token_of_another_attempt_is_refused() {
    for changes in [json!({"nonce": "other"}), json!({"nonce": null}), json!({"nonce": ["n"]})] {
        assert_eq!(check_with(changes), Err(JwtError::Nonce));
    }
    let token = RSA.token("RS256", &claims_with(json!({"nonce": ""})));
    let kind = JwtKind::SignIn { nonce: "" };
    assert_eq!(verify(&token, &keys(), &JwtExpectations { kind, ..expected() }), Err(JwtError::Nonce));
    let token = RSA.token("RS256", &claims_with(json!({"nonce": null})));
    assert!(verify(&token, &keys(), &JwtExpectations { kind: JwtKind::Renewal, ..expected() }).is_ok());
}

#[test]
fn tokens_of_other_types_are_refused() {
    let check = |header: Value, kind| {
        let token = RSA.token_with(&header, &valid_claims());
        verify(&token, &keys(), &JwtExpectations { kind, ..expected() })
    };
    let of_type = |name: &str| json!({"alg": "RS256", "kid": "rsa", "typ": name});
    for kind in [JwtKind::Renewal, JwtKind::Machine] {
        assert!(check(of_type("jwt"), kind).is_ok());
        assert!(matches!(check(of_type("logout+jwt"), kind), Err(JwtError::Malformed(_))));
        let extended = json!({"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false});
        assert!(matches!(check(extended, kind), Err(JwtError::Malformed(_))));
    }
    assert!(check(of_type("at+jwt"), JwtKind::Machine).is_ok());
    assert!(matches!(check(of_type("at+jwt"), JwtKind::Renewal), Err(JwtError::Malformed(_))));
}

#[test]
fn texts_that_are_no_tokens_are_refused() {
    let token = RSA.token("RS256", &valid_claims());
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    for text in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{token}."),
        format!("{token}.{signature}"),
        format!(" {token}"),
        format!("{header}=.{payload}.{signature}"),
        format!("{header}.{}.{signature}", encoded("[]")),
        format!("{}.{payload}.{signature}", encoded("{")),
        format!("{}.{payload}.{signature}", encoded(r#"{"alg":["RS256"]}"#)),
        format!("{}.{payload}.{signature}", encoded(r#"{"kid":"rsa"}"#)),
        "a".repeat(MAX_JWT_BYTES + 1),
        format!("{header}.{}.{signature}", encoded("[".repeat(20_000))),
    ] {
        assert!(matches!(check(&text), Err(JwtError::Malformed(_))), "{text:.100}");
        assert!(unverified_issuer(&text).is_err() || text.contains(payload));
    }
    assert!(matches!(check(&format!("{header}.{payload}.!")), Err(JwtError::Signature)));
    assert_eq!(unverified_issuer(&token).unwrap(), ISSUER);
}

#[test]
fn messages_repeat_only_the_beginning_of_a_claim() {
    let error = check_with(json!({"iss": "ä".repeat(5000)})).unwrap_err();
    assert!(error.to_string().len() < 400, "{error}");
}
