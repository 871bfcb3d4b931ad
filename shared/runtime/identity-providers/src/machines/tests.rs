//! Which rule a machine's token satisfies.

use std::sync::Arc;

use runtime::clock::SimulatedClock;
use serde_json::{Value, json};

use super::*;
use crate::test_issuer::{CLIENT, FOREIGN_RSA, FakeProvider, ISSUER, RSA, SigningKey, claims_with, key_set, pass};

fn configuration(rules: &str) -> Configuration {
    Configuration::from_toml(&format!("origins = [\"https://mlflow.example.com\"]\n{rules}")).unwrap()
}

fn rule(name: &str, audience: &str, condition: &str) -> String {
    format!(
        "[[machines]]\nname = \"{name}\"\nissuer = \"{ISSUER}\"\naudience = \"{audience}\"\nuser = \"ci\"\n\
         require = [{condition}]\n"
    )
}

/// Returns the name of the rule that a token with these claims satisfies.
async fn found(rules: &str, changes: Value) -> Result<String, MachineError> {
    let issuers = Issuers::new(Arc::new(FakeProvider::new(&[&RSA])));
    let configuration = configuration(rules);
    let token = RSA.token("RS256", &claims_with(changes));
    machine_rule(&configuration, &issuers, &token).await.map(|(rule, _)| rule.name.clone())
}

#[tokio::test]
async fn the_first_rule_that_is_satisfied_is_found() {
    let rules = [
        rule("main", CLIENT, "{claim = \"repository_id\", values = [\"7\"]}, {claim = \"ref\", values = [\"main\"]}"),
        rule("any", CLIENT, "{claim = \"repository_id\", values = [\"7\", \"8\"]}"),
        rule("other", "other", "{claim = \"repository_id\", values = [\"7\"]}"),
    ]
    .concat();
    assert_eq!(found(&rules, json!({"repository_id": "7", "ref": "main"})).await.unwrap(), "main");
    assert_eq!(found(&rules, json!({"repository_id": "7", "ref": "dev"})).await.unwrap(), "any");
    assert_eq!(found(&rules, json!({"repository_id": 8})).await.unwrap(), "any");
    assert_eq!(found(&rules, json!({"aud": "other", "repository_id": "7", "ref": "main"})).await.unwrap(), "other");
    assert_eq!(found(&rules, json!({"repository_id": "9"})).await, Err(MachineError::NoRule));
    assert_eq!(found(&rules, json!({})).await, Err(MachineError::NoRule));
    let refused = found(&rules, json!({"aud": "third", "repository_id": "7"})).await;
    assert!(matches!(refused, Err(MachineError::Token(JwtError::Audience { .. }))), "{refused:?}");
    let refused = found(&rules, json!({"iss": "https://other.example.com"})).await;
    assert_eq!(refused, Err(MachineError::UnknownIssuer));
    let refused = found(&rules, json!({"exp": 1})).await;
    assert!(matches!(refused, Err(MachineError::Token(JwtError::Expired(_)))), "{refused:?}");
}

#[tokio::test]
async fn an_unknown_issuer_is_sent_nothing() {
    let fake = FakeProvider::new(&[&RSA]);
    let issuers = Issuers::new(Arc::new(fake.clone()));
    let configuration = configuration(&rule("ci", CLIENT, "{claim = \"sub\", values = [\"ann\"]}"));
    for issuer in ["https://attacker.example.com", "https://id.example.com/", "http://169.254.169.254"] {
        let token = RSA.token("RS256", &claims_with(json!({"iss": issuer})));
        let refused = machine_rule(&configuration, &issuers, &token).await.map(|_| ());
        assert_eq!(refused, Err(MachineError::UnknownIssuer));
    }
    assert!(machine_rule(&configuration, &issuers, "opaque").await.is_err());
    assert_eq!(fake.count(), 0);
}

#[tokio::test]
async fn clusters_with_the_same_issuer_are_told_apart_by_their_keys() {
    let cluster = |name: &str, key: &SigningKey, quotes: &str| {
        let keys = key_set(&[key]);
        format!("{}keys = {quotes}{keys}{quotes}\n", rule(name, CLIENT, "{claim = \"sub\", values = [\"ann\"]}"))
    };
    let configuration = configuration(&[cluster("one", &FOREIGN_RSA, "'"), cluster("two", &RSA, "'''")].concat());
    let fake = FakeProvider::default();
    let issuers = Issuers::new(Arc::new(fake.clone()));
    for (key, name) in [(&*RSA, "two"), (&*FOREIGN_RSA, "one")] {
        let token = key.token("RS256", &claims_with(json!({})));
        assert_eq!(machine_rule(&configuration, &issuers, &token).await.unwrap().0.name, name);
    }
    let token = SigningKey::p256("p").token("ES256", &claims_with(json!({})));
    let refused = machine_rule(&configuration, &issuers, &token).await.map(|_| ());
    assert_eq!(refused, Err(MachineError::Token(JwtError::UnknownKey)));
    assert_eq!(fake.count(), 0, "static keys are not fetched");
}

#[tokio::test]
async fn many_rules_of_an_issuer_that_is_down_cause_one_fetch_per_minute() {
    let clock = SimulatedClock::begin();
    let fake = FakeProvider::new(&[&RSA]);
    fake.go_down();
    let issuers = Issuers::new(Arc::new(fake.clone()));
    let names = ["a", "b", "c", "d"];
    let rules = names.map(|name| rule(name, CLIENT, "{claim = \"sub\", values = [\"ann\"]}")).concat();
    let configuration = configuration(&rules);
    let token = RSA.token("RS256", &claims_with(json!({})));
    for _ in 0..59 {
        let refused = machine_rule(&configuration, &issuers, &token).await.map(|_| ());
        assert!(matches!(refused, Err(MachineError::Unavailable(_))), "{refused:?}");
        pass(&clock, std::time::Duration::from_secs(1)).await;
    }
    assert_eq!(fake.count(), 1);
}
