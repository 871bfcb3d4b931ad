//! What rules make of claims.

use serde_json::{Value, json};

use super::*;
use crate::person::Person;
use crate::test_issuer::{ISSUER, provider, verified};

const RULES: &str = r#"
[[providers.roles]]
claim = "groups"
values = ["ml", "data"]
role = "editors"
[[providers.roles]]
claim = "groups"
values = ["ml"]
role = "readers"
workspace = "team-a"
[[providers.roles]]
claim = "realm.roles"
values = ["admin"]
administrator = true
"#;

fn of(rules: &str, claims: Value) -> Result<Memberships, ClaimsError> {
    Memberships::of(&provider(rules), &verified(claims))
}

fn role(workspace: &str, name: &str) -> NamedRole {
    NamedRole { workspace: workspace.to_owned(), name: name.to_owned() }
}

#[test]
fn every_rule_that_matches_gives_its_role() {
    let memberships = of(RULES, json!({"groups": ["x", "ml"], "realm": {"roles": ["admin"]}})).unwrap();
    assert_eq!(memberships.roles, [role("default", "editors"), role("team-a", "readers")].into());
    assert!(memberships.is_administrator);
    let memberships = of(RULES, json!({"groups": "data"})).unwrap();
    assert_eq!(memberships, Memberships { roles: [role("default", "editors")].into(), is_administrator: false });
}

#[test]
fn values_are_not_matched_in_part() {
    for groups in [json!("m"), json!("ML"), json!("ml data"), json!(["ml "]), json!([["ml"]]), json!(null), json!([])] {
        assert_eq!(of(RULES, json!({"groups": groups})).unwrap(), Memberships::default());
    }
}

#[test]
fn absent_groups_are_none_but_groups_that_were_left_out_are_refused() {
    assert_eq!(of(RULES, json!({})).unwrap(), Memberships::default());
    for claims in [json!({"_claim_names": {"groups": "src1"}}), json!({"hasgroups": true})] {
        assert_eq!(of(RULES, claims).unwrap_err(), ClaimsError::Overflow { claim: "groups".to_owned() });
    }
    let roles = "[[providers.roles]]\nclaim = \"roles\"\nvalues = [\"a\"]\nrole = \"r\"";
    assert!(of(roles, json!({"hasgroups": true})).is_ok(), "app roles do not overflow with groups");
}

#[test]
fn nobody_gets_roles_without_being_admitted() {
    let rules = format!("require = [{{claim = \"hd\", values = [\"example.com\"]}}]\n{RULES}");
    let refused = of(&rules, json!({"groups": ["ml"]}));
    assert_eq!(refused, Err(ClaimsError::NotAdmitted { claim: "hd".to_owned() }));
    assert_eq!(of(&rules, json!({"groups": ["ml"], "hd": "example.com"})).unwrap().roles.len(), 2);
    // All conditions have to be satisfied.
    let rules = format!(
        "require = [{{claim = \"hd\", values = [\"example.com\"]}}, {{claim = \"groups\", values = [\"x\"]}}]\n{RULES}"
    );
    assert!(of(&rules, json!({"groups": ["ml"], "hd": "example.com"})).is_err());
    assert!(of(&rules, json!({"groups": ["ml", "x"], "hd": "example.com"})).is_ok());
}

#[test]
fn a_person_of_entra_is_identified_by_tenant_and_object() {
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    let issuer = template.replace("{tenantid}", "t-1");
    let mut provider = provider("require = [{claim = \"tid\", values = [\"t-1\", \"t-2\"]}]");
    provider.issuer = template.to_owned();
    let person = |claims: Value| Person::of(&provider, &verified(claims));
    let found = person(json!({"iss": issuer, "tid": "t-1", "oid": "o", "sub": "s"})).unwrap();
    assert_eq!(found, Person { issuer: issuer.clone(), subject: "o".to_owned() });
    let missing = person(json!({"iss": issuer, "tid": "t-1", "sub": "s"}));
    assert_eq!(missing, Err(ClaimsError::Missing { claim: "oid".to_owned() }));
    let other = person(json!({"iss": issuer, "tid": "t-2", "oid": "o", "sub": "s"}));
    assert_eq!(other, Err(ClaimsError::OtherTenant));
    let foreign = person(json!({"iss": template.replace("{tenantid}", "t-3"), "tid": "t-3", "oid": "o"}));
    assert_eq!(foreign, Err(ClaimsError::NotAdmitted { claim: "tid".to_owned() }));
}

#[test]
fn names_do_not_identify_a_person() {
    let provider = provider("");
    let person = |claims: Value| Person::of(&provider, &verified(claims)).unwrap();
    let before = person(json!({"iss": ISSUER, "sub": "1", "email": "ann@example.com"}));
    assert_eq!(before, person(json!({"iss": ISSUER, "sub": "1", "email": "ann.b@example.com"})));
    assert_ne!(before, person(json!({"iss": ISSUER, "sub": "2", "email": "ann@example.com"})));
}

#[test]
fn the_configured_claim_names_a_new_user() {
    let provider = provider("");
    let name = |claims: Value| provider.name_of_new_user(&verified(claims)).map_err(|error| error.to_string());
    assert_eq!(name(json!({"email": "ann@example.com"})).unwrap(), "ann@example.com");
    assert_eq!(name(json!({"email": "ann@example.com", "email_verified": true})).unwrap(), "ann@example.com");
    for claims in [
        json!({}),
        json!({"email": 7}),
        json!({"email": ""}),
        json!({"email": " ann"}),
        json!({"email": "a:b"}),
        json!({"email": "a\u{0}b"}),
        json!({"email": "a".repeat(201)}),
        json!({"email": "ann@example.com", "email_verified": false}),
        json!({"email": "ann@example.com", "email_verified": "false"}),
    ] {
        assert!(name(claims.clone()).is_err(), "{claims}");
    }
}
