//! How often documents are fetched.

use runtime::clock::SimulatedClock;
use serde_json::json;

use super::*;
use crate::test_issuer::{
    CLIENT, FOREIGN_RSA, FakeProvider, ISSUER, RSA, SigningKey, discovery_document, key_set, pass, valid_claims,
};
use crate::transport::TransportError;

const MINUTE: Duration = Duration::from_mins(1);

fn issuers(fake: &FakeProvider) -> Issuers {
    Issuers::new(Arc::new(fake.clone()))
}

/// Verifies a machine's token that is signed with a key.
async fn machine(issuers: &Issuers, key: &SigningKey) -> Result<Claims, ProviderError> {
    let token = key.token(if key.id.starts_with("rsa") { "RS256" } else { "ES256" }, &valid_claims());
    issuers.verify(ISSUER, &token, (CLIENT, JwtKind::Machine), FetchLimit::PerMinute).await
}

#[tokio::test]
async fn documents_are_fetched_once_an_hour() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    for _ in 0..3 {
        machine(&issuers, &RSA).await.unwrap();
        pass(&clock, 19 * MINUTE).await;
    }
    assert_eq!(fake.count(), 2);
    pass(&clock, 5 * MINUTE).await;
    machine(&issuers, &RSA).await.unwrap();
    assert_eq!(fake.count(), 4);
}

#[tokio::test]
async fn concurrent_requests_share_a_fetch() {
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    let all = futures::future::join_all((0..30).map(|_| machine(&issuers, &RSA))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(fake.count(), 2);
}

#[tokio::test]
async fn a_new_key_is_found() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    machine(&issuers, &RSA).await.unwrap();
    let new = SigningKey::p256("new");
    fake.answer(&format!("{ISSUER}/keys"), 200, &key_set(&[&new]));
    pass(&clock, MINUTE).await;
    machine(&issuers, &new).await.unwrap();
    assert_eq!(fake.requests("/keys").len(), 2);
    assert_eq!(machine(&issuers, &RSA).await, Err(JwtError::UnknownKey.into()), "the old key was withdrawn");
}

#[tokio::test]
async fn unknown_keys_cause_one_fetch_per_minute() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    machine(&issuers, &RSA).await.unwrap();
    let before = fake.count();
    for second in 0..600 {
        let key = SigningKey::p256(Box::leak(format!("key-{second}").into_boxed_str()));
        assert_eq!(machine(&issuers, &key).await, Err(JwtError::UnknownKey.into()));
        pass(&clock, Duration::from_secs(1)).await;
    }
    let fetches = fake.count() - before;
    assert!((8..=10).contains(&fetches), "{fetches}");
    machine(&issuers, &RSA).await.unwrap();
}

#[tokio::test]
async fn a_flood_of_unknown_keys_while_the_issuer_is_down_causes_one_fetch_per_minute() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    machine(&issuers, &RSA).await.unwrap();
    fake.go_down();
    let before = fake.count();
    let unknown = SigningKey::p256("unknown");
    for _ in 0..10 {
        let flood = futures::future::join_all((0..50).map(|_| machine(&issuers, &unknown))).await;
        assert!(flood.iter().all(|refused| *refused == Err(JwtError::UnknownKey.into())));
        machine(&issuers, &RSA).await.unwrap();
        pass(&clock, Duration::from_secs(30)).await;
    }
    let fetches = fake.count() - before;
    assert!((4..=5).contains(&fetches), "{fetches}");
}

#[tokio::test]
async fn a_flood_before_anything_was_fetched_causes_one_fetch_per_minute() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    fake.go_down();
    let issuers = issuers(&fake);
    for _ in 0..10 {
        for refused in futures::future::join_all((0..50).map(|_| machine(&issuers, &RSA))).await {
            assert!(matches!(refused, Err(ProviderError::Unavailable(_))), "{refused:?}");
        }
        pass(&clock, Duration::from_secs(30)).await;
    }
    assert_eq!(fake.count(), 5);
}

#[tokio::test]
async fn a_flood_does_not_keep_people_from_signing_in_with_a_new_key() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    machine(&issuers, &RSA).await.unwrap();
    pass(&clock, MINUTE).await;
    machine(&issuers, &FOREIGN_RSA).await.unwrap_err();
    let new = SigningKey::p256("new");
    machine(&issuers, &new).await.unwrap_err();
    fake.answer(&format!("{ISSUER}/keys"), 200, &key_set(&[&RSA, &new]));
    pass(&clock, Duration::from_secs(6)).await;
    let token = new.token("ES256", &valid_claims());
    let kind = JwtKind::SignIn { nonce: "n" };
    issuers.verify(ISSUER, &token, (CLIENT, kind), FetchLimit::PerFiveSeconds).await.unwrap();
}

#[tokio::test]
async fn documents_are_used_for_a_day_while_the_issuer_is_down() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = issuers(&fake);
    machine(&issuers, &RSA).await.unwrap();
    fake.go_down();
    pass(&clock, 23 * 60 * MINUTE).await;
    machine(&issuers, &RSA).await.unwrap();
    pass(&clock, 2 * 60 * MINUTE).await;
    let error = machine(&issuers, &RSA).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider cannot be reached: no connection: refused");
}

#[tokio::test]
async fn an_issuer_that_is_up_again_is_found_after_some_seconds() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    fake.go_down();
    let issuers = issuers(&fake);
    let discovery = async || issuers.discovery(ISSUER, FetchLimit::PerFiveSeconds).await;
    let error = discovery().await.unwrap_err();
    fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &discovery_document());
    assert_eq!(discovery().await.unwrap_err(), error, "the reason is remembered");
    pass(&clock, Duration::from_secs(5)).await;
    discovery().await.unwrap();
}

#[tokio::test]
async fn each_problem_has_a_sentence() {
    for (url, answer, sentence) in [
        (
            "/.well-known/openid-configuration",
            Ok((404, String::new())),
            "the provider is not set up correctly: https://id.example.com/.well-known/openid-configuration responded \
             with status 404; check the issuer",
        ),
        (
            "/.well-known/openid-configuration",
            Ok((302, String::new())),
            "the provider is not set up correctly: https://id.example.com/.well-known/openid-configuration responded \
             with status 302; check the issuer",
        ),
        (
            "/keys",
            Ok((503, String::new())),
            "the provider cannot be reached: https://id.example.com/keys responded with status 503",
        ),
        (
            "/keys",
            Ok((200, json!({"key": []}).to_string())),
            "the provider is not set up correctly: https://id.example.com/keys is not a JWK set",
        ),
        (
            "/keys",
            Err(TransportError::TooLarge),
            "the provider cannot be reached: the response is larger than 1048576 bytes",
        ),
    ] {
        let fake = FakeProvider::new(&[&RSA]);
        fake.answer_with(&format!("{ISSUER}{url}"), answer);
        assert_eq!(machine(&issuers(&fake), &RSA).await.unwrap_err().to_string(), sentence);
    }
}
