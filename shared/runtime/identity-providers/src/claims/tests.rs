//! Looking up claims.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_issuer::verified;

#[test]
fn a_dot_leads_into_an_object() {
    let claims = verified(json!({
        "realm_access": {"roles": ["a", "b"]},
        "resource_access": {"my.client": {"roles": "c"}},
        "a.b": 1,
        "a": {"b": 2, "c": {"d.e": true}},
    }));
    assert_eq!(claims.values("realm_access.roles"), ["a", "b"]);
    assert_eq!(claims.values("resource_access.my.client.roles"), ["c"]);
    assert_eq!(claims.values("a.b"), ["1"], "the claim with a dot in its name is found first");
    assert_eq!(claims.values("a.c.d.e"), ["true"]);
    for path in ["", ".", "a.", ".a", "a..b", "a.x", "realm_access", "realm_access.roles.0"] {
        assert!(claims.values(path).is_empty(), "{path}");
    }
}

#[test]
fn names_with_dots_that_are_urls_are_found() {
    let claims = verified(json!({"https://example.com/roles": ["a"]}));
    assert_eq!(claims.values("https://example.com/roles"), ["a"]);
}

#[test]
fn only_scalars_are_values() {
    let claims = verified(json!({"a": [1, "x", true, null, ["y"], {"z": 1}, 1.5], "b": null, "c": {}}));
    assert_eq!(claims.values("a"), ["1", "x", "true", "1.5"]);
    assert!(claims.values("b").is_empty() && claims.values("c").is_empty());
}

#[test]
fn a_claim_that_was_left_out_is_noticed() {
    let distributed = verified(json!({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}}));
    assert!(distributed.overflows("groups") && !distributed.overflows("roles"));
    assert!(distributed.overflows("groups.names"));
    assert_eq!(distributed.rule_values("groups"), Err(ClaimsError::Overflow { claim: "groups".to_owned() }));
    for flag in [json!(true), json!("true")] {
        let claims = verified(json!({"hasgroups": flag}));
        assert!(claims.overflows("groups") && !claims.overflows("roles"));
    }
    assert!(!verified(json!({"hasgroups": false})).overflows("groups"));
    assert!(!verified(json!({"hasgroups": true, "groups": ["a"]})).overflows("groups"));
    assert_eq!(verified(json!({})).rule_values("groups"), Ok(Vec::new()));
}

#[test]
fn claims_of_the_token_take_precedence() {
    let token = verified(json!({"sub": "ann", "groups": []}));
    let claims = token.or(verified(json!({"sub": "bob", "groups": ["admins"], "email": "a@example.com"})));
    assert_eq!(claims.text("sub"), Some("ann"));
    assert!(claims.values("groups").is_empty());
    assert_eq!(claims.text("email"), Some("a@example.com"));
}

#[test]
fn personal_data_is_not_printed() {
    let printed = format!("{:?}", verified(json!({"email": "ann@example.com"})));
    assert_eq!(printed, r#"Claims(["email"])"#);
}

#[test]
fn an_identifier_has_to_be_a_short_text() {
    for (value, message) in [
        (json!(null), "the provider did not send the claim \"sub\"; request a scope that contains it"),
        (json!(""), "the provider did not send the claim \"sub\"; request a scope that contains it"),
        (json!(7), "the provider did not send the claim \"sub\"; request a scope that contains it"),
        (json!("a\nb"), "the claim \"sub\" contains control characters"),
        (json!("a".repeat(256)), "the claim \"sub\" is too long"),
    ] {
        assert_eq!(verified(json!({"sub": value})).identifier("sub").unwrap_err().to_string(), message);
    }
    assert_eq!(verified(json!({"sub": "a".repeat(255)})).identifier("sub").unwrap().len(), 255);
}

/// Names of claims, some of which contain dots, or look like paths of others.
fn name() -> impl Strategy<Value = String> {
    "[ab]{0,2}(\\.[ab]{0,2}){0,2}"
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[xy]{1,3}".prop_map(Value::from)];
    let value = leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::vec((name(), value), 0..5).prop_map(|members| members.into_iter().collect())
}

/// Returns all paths of an object with their values, in no order.
fn paths(object: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (name, value) in object {
        found.push((name.clone(), value));
        if let Value::Object(inner) = value {
            found.extend(paths(inner).into_iter().map(|(path, value)| (format!("{name}.{path}"), value)));
        }
    }
    found
}

proptest! {
    #[test]
    fn exactly_the_paths_of_an_object_are_found(object in object(), path in name()) {
        let claims = Claims::from(object.clone());
        let all = paths(&object);
        for (path, _) in &all {
            let candidates: Vec<_> = all.iter().filter(|(other, _)| other == path).map(|(_, value)| *value).collect();
            let found = claims.get(path).unwrap();
            prop_assert!(candidates.contains(&found), "{path}");
            if let Some(literal) = object.get(path) {
                prop_assert_eq!(found, literal);
            }
        }
        prop_assert_eq!(claims.get(&path).is_some(), all.iter().any(|(other, _)| *other == path));
    }

    #[test]
    fn looking_up_never_fails(object in object(), path in "\\PC{0,20}") {
        let claims = Claims::from(object);
        let values = claims.values(&path);
        prop_assert!(claims.get(&path).is_some() || values.is_empty());
        prop_assert!(!claims.overflows(&path) || values.is_empty());
    }

    #[test]
    fn values_are_compared_exactly(value in "\\PC{1,10}", other in "\\PC{1,10}") {
        let rule = crate::ClaimRule { claim: "c".to_owned(), values: vec![value.clone()] };
        let (alone, listed) = (verified(json!({"c": value})), verified(json!({"c": [1, value]})));
        prop_assert!(rule.matches(&alone) && rule.matches(&listed));
        prop_assert_eq!(rule.matches(&verified(json!({"c": other}))), value == other);
    }
}
