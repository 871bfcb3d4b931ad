//! Files that operators write, with and without mistakes.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::test_issuer::{RSA, key_set};

/// A file with every key.
const FILE: &str = r#"
origins = ["https://mlflow.example.com", "http://localhost:5000"]
renewal_minutes = 10
grace_minutes = 30
token_days = 7

[[providers]]
name = "entra"
title = "Example Inc."
issuer = "https://login.microsoftonline.com/8eaef023-2b34-4da1-9baa-8bc8c9d6a490/v2.0"
client_id = "0b5e…"
scopes = ["profile", "email", "offline_access"]
authorize = { prompt = "select_account" }
name_claim = "preferred_username"
new_users = "refuse"
sign_out = true

[[providers.require]]
claim = "roles"
values = ["mlflow"]

[[providers.roles]]
claim = "roles"
values = ["mlflow-editors", "mlflow-admins"]
role = "editors"

[[providers.roles]]
claim = "roles"
values = ["mlflow-readers"]
role = "readers"
workspace = "team-a"

[[providers.roles]]
claim = "roles"
values = ["mlflow-admins"]
administrator = true

[[machines]]
name = "github"
issuer = "https://token.actions.githubusercontent.com"
audience = "https://mlflow.example.com"
user = "ci"
only = "ingest"
experiment = "7"
minutes = 15
require = [
    { claim = "repository_id", values = ["74"] },
    { claim = "ref", values = ["refs/heads/main"] },
]
"#;

/// The beginning of a file with one provider.
const PROVIDER: &str = "origins = [\"https://mlflow.example.com\"]\n[[providers]]\nname = \"p\"\ntitle = \"P\"\n\
                        issuer = \"https://id.example.com\"\nclient_id = \"c\"\n";
/// A file with one machine rule.
const MACHINE: &str = "origins = [\"https://mlflow.example.com\"]\n[[machines]]\nname = \"m\"\n\
                       issuer = \"https://id.example.com\"\naudience = \"a\"\nuser = \"ci\"\n\
                       require = [{claim = \"sub\", values = [\"x\"]}]\n";

fn sentence(text: &str) -> String {
    Configuration::from_toml(text).unwrap_err().to_string()
}

/// Returns the sentence about the file with every key, in which a text was replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from}");
    sentence(&FILE.replacen(from, to, 1))
}

#[test]
fn a_file_with_every_key_is_read() {
    let configuration = Configuration::from_toml(FILE).unwrap();
    let [provider] = configuration.providers.as_slice() else { panic!("one provider") };
    assert_eq!(provider.new_users, NewUsers::Refuse);
    assert_eq!(provider.authorize["prompt"], "select_account");
    let gives: Vec<_> = provider.roles.iter().map(|rule| rule.gives.clone()).collect();
    let role =
        |role: &str, workspace: &str| RoleTarget::Role { role: role.to_owned(), workspace: workspace.to_owned() };
    assert_eq!(gives, [role("editors", "default"), role("readers", "team-a"), RoleTarget::Administrator]);
    let roles: Vec<_> = configuration.roles().map(|role| (role.workspace, role.name)).collect();
    let expected = [("default", "editors"), ("team-a", "readers")];
    assert_eq!(roles, expected.map(|(workspace, name)| (workspace.to_owned(), name.to_owned())));
    assert_eq!(configuration.machines[0].require.len(), 2);
    assert_eq!(configuration.provider("entra"), Some(provider));
    assert_eq!(configuration.provider("okta"), None);
}

#[test]
fn defaults_are_filled_in() {
    let configuration = Configuration::from_toml(PROVIDER).unwrap();
    assert_eq!((configuration.renewal_minutes, configuration.grace_minutes, configuration.token_days), (15, 60, 30));
    let provider = &configuration.providers[0];
    assert_eq!(provider.scopes, ["profile", "email"]);
    assert_eq!(
        (provider.name_claim.as_str(), provider.new_users, provider.sign_out),
        ("email", NewUsers::Create, false)
    );
    let rule = &Configuration::from_toml(MACHINE).unwrap().machines[0];
    assert_eq!((rule.only.as_str(), rule.minutes), ("everything", 60));
}

#[test]
fn what_is_stored_is_what_was_written() {
    for text in [FILE, PROVIDER, MACHINE] {
        let configuration = Configuration::from_toml(text).unwrap();
        assert_eq!(Configuration::from_json(&configuration.to_json()).unwrap(), configuration);
    }
    assert!(Configuration::from_json("{}").is_err());
    let mut invalid = Configuration::from_toml(PROVIDER).unwrap();
    invalid.providers[0].issuer = "http://id.example.com".to_owned();
    assert!(Configuration::from_json(&invalid.to_json()).is_err());
}

#[test]
fn a_typo_in_a_key_names_the_line_and_the_key() {
    for (from, to, expected) in [
        ("title", "titles", "line 9: unknown key \"titles\"; did you mean \"title\"?"),
        ("[[providers]]", "[[provider]]", "line 7: unknown key \"provider\"; did you mean \"providers\"?"),
        ("token_days", "tokens_days", "line 5: unknown key \"tokens_days\"; did you mean \"token_days\"?"),
        ("audience", "audiences", "line 41: unknown key \"audiences\"; did you mean \"audience\"?"),
        ("administrator", "administrators", "line 36: unknown key \"administrators\"; did you mean \"administrator\"?"),
        (
            "workspace",
            "project",
            "line 31: unknown key \"project\"; the keys here are \"claim\", \"values\", \"role\", \"workspace\", \
             \"administrator\"",
        ),
    ] {
        assert_eq!(changed(from, to), expected);
    }
}

#[test]
fn a_missing_key_is_named() {
    assert_eq!(changed("user = \"ci\"", ""), "line 38: the key \"user\" is missing; add it to this table");
    assert_eq!(changed("client_id = \"0b5e…\"", ""), "line 7: the key \"client_id\" is missing; add it to this table");
    let without = sentence("renewal_minutes = 5");
    assert!(without.ends_with("the key \"origins\" is missing; add it to this table"), "{without}");
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    for (from, to, expected) in [
        ("= 10", "= \"10\"", "line 3: renewal_minutes has the wrong type: string \"10\", expected a whole number"),
        ("= 10", "= -1", "line 3: renewal_minutes has the wrong type: integer `-1`, expected a whole number"),
        (
            "[\"profile\", \"email\", \"offline_access\"]",
            "\"profile\"",
            "line 12: scopes has the wrong type: string \"profile\", expected a list in brackets",
        ),
        (
            "sign_out = true",
            "sign_out = \"yes\"",
            "line 16: sign_out has the wrong type: string \"yes\", expected a boolean",
        ),
        ("\"refuse\"", "\"never\"", "line 15: new_users cannot be \"never\"; write \"create\" or \"refuse\""),
    ] {
        assert_eq!(changed(from, to), expected);
    }
}

#[test]
fn a_rule_gives_one_thing() {
    for (from, to, expected) in [
        ("role = \"editors\"", "", "a rule has to give either \"role\" or \"administrator = true\""),
        (
            "administrator = true",
            "administrator = false",
            "\"administrator = false\" has no effect; remove the rule, or write \"administrator = true\"",
        ),
        (
            "administrator = true",
            "administrator = true\nrole = \"r\"",
            "a rule gives either \"role\" or \"administrator\"; write two rules to give both",
        ),
        (
            "administrator = true",
            "administrator = true\nworkspace = \"w1\"",
            "an administrator has no \"workspace\"; remove it",
        ),
    ] {
        let sentence = changed(from, to);
        assert!(sentence.starts_with("line ") && sentence.ends_with(expected), "{sentence}");
    }
}

#[test]
fn errors_of_syntax_are_one_line() {
    for (from, to) in [
        ("\"entra\"", "entra"),
        ("\"entra\"", "\"entra"),
        ("[[providers]]", "[[providers]"),
        ("token_days = 7", "token_days"),
        ("token_days = 7", "token_days = 7\ntoken_days = 8"),
        ("[[machines]]", "[machines]"),
        ("\"entra\"", "\"\u{7}\""),
    ] {
        let sentence = changed(from, to);
        assert!(sentence.starts_with("line ") && !sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn each_problem_of_a_provider_has_a_sentence() {
    let provider = |from: &str, to: &str| {
        assert!(PROVIDER.contains(from));
        sentence(&PROVIDER.replacen(from, to, 1))
    };
    let issuer = "https://id.example.com";
    for (from, to, expected) in [
        ("\"p\"", "\"My IdP\"", "the name has to consist of 1 to 32 lower-case letters, digits and hyphens"),
        ("\"P\"", "\"\"", "\"title\" is empty; fill it in"),
        ("\"c\"", "\" c\"", "\"client_id\" begins or ends with a space, or contains a control character; remove it"),
        (issuer, "http://id.example.com", "has to begin with \"https://\" (\"http://\" only for localhost)"),
        (issuer, "id.example.com", "it is not a URL (relative URL without a base); write \"https://…\""),
        (issuer, "https://id.example.com?x", "must not contain credentials, a query or a fragment"),
        (
            issuer,
            "https://id.example.com/.well-known/openid-configuration",
            "is the URL of the discovery document; remove \"/.well-known/…\"",
        ),
        (issuer, "https://id.example.com/{tenantid}", "contains {tenantid}, which only Entra has"),
        (
            issuer,
            "https://accounts.google.com",
            "anyone can have an account at Google; add a \"require\" rule for the claim \"hd\" or \"sub\"",
        ),
        (
            issuer,
            "https://login.microsoftonline.com/common/v2.0",
            "anyone can have an account at Entra with accounts of any tenant; add a \"require\" rule for the claim \"tid\"",
        ),
        (
            issuer,
            "https://gitlab.com",
            "anyone can have an account at GitLab; add a \"require\" rule for the claim \"groups_direct\" or \"groups\" or \
             \"sub\"",
        ),
    ] {
        let sentence = provider(from, to);
        assert!(sentence.starts_with("provider \"") && sentence.ends_with(expected), "{sentence}");
    }
    let twice = format!("{PROVIDER}{}", PROVIDER.split_once('\n').unwrap().1);
    assert_eq!(sentence(&twice), "two providers are named \"p\"; rename or remove one");
    assert_eq!(
        sentence(&format!("{PROVIDER}{}", PROVIDER.split_once('\n').unwrap().1.replace("\"p\"", "\"q\""))),
        "provider \"q\": another provider has the issuer \"https://id.example.com\"; merge the two"
    );
}

#[test]
fn each_problem_of_a_rule_has_a_sentence() {
    let rule = |lines: &str| sentence(&format!("{PROVIDER}{lines}"));
    for (lines, expected) in [
        ("scopes = [\"a b\"]", "scope \"a b\" contains a space or a quote; write each scope as its own text"),
        ("authorize = {state = \"x\"}", "\"authorize\" cannot set \"state\", which the server sets; remove it"),
        ("authorize = {scope = \"x\"}", "\"authorize\" cannot set \"scope\", which the server sets; remove it"),
        (
            "require = [{claim = \"a\", values = []}]",
            "the rule for the claim \"a\" has no values; add at least one to \"values\"",
        ),
        ("require = [{claim = \"\", values = [\"x\"]}]", "\"claim\" is empty; fill it in"),
        ("require = [{claim = \"a\", values = [\"\"]}]", "\"values\" is empty; fill it in"),
        (
            "roles = [{claim = \"a\", values = [\"x\"], role = \"__user_1\"}]",
            "role \"__user_1\" has the reserved prefix \"__user_\"; choose another role",
        ),
        (
            "roles = [{claim = \"a\", values = [\"x\"], role = \"r\", workspace = \"Team A\"}]",
            "workspace \"Team A\" cannot exist; write the name of the role's workspace",
        ),
    ] {
        assert_eq!(rule(lines), format!("provider \"p\": {expected}"));
    }
}

#[test]
fn signing_out_at_okta_is_refused() {
    let file = |issuer: &str, more: &str| {
        assert!(PROVIDER.contains("https://id.example.com"));
        format!("{}{more}", PROVIDER.replacen("https://id.example.com", issuer, 1))
    };
    for issuer in [
        "https://example.okta.com",
        "https://example.OKTA.com/oauth2/default",
        "https://example.oktapreview.com",
        "https://example.okta-emea.com",
    ] {
        assert_eq!(
            sentence(&file(issuer, "sign_out = true")),
            "provider \"p\": \"sign_out\" cannot be used with Okta, which requires an ID token that the server does not \
             store; remove it"
        );
        assert!(Configuration::from_toml(&file(issuer, "")).is_ok());
    }
    for issuer in ["https://id.example.com", "https://okta.com.example.com", "https://notokta.com"] {
        assert!(Configuration::from_toml(&file(issuer, "sign_out = true")).is_ok(), "{issuer}");
    }
}

#[test]
fn each_problem_of_a_machine_rule_has_a_sentence() {
    let rule = |from: &str, to: &str| {
        assert!(MACHINE.contains(from));
        sentence(&MACHINE.replacen(from, to, 1))
    };
    let (issuer, require) = ("https://id.example.com", "[{claim = \"sub\", values = [\"x\"]}]");
    for (from, to, expected) in [
        (require, "[]", "\"require\" is empty; name the claims that identify the machine"),
        (
            issuer,
            "https://login.microsoftonline.com/organizations/v2.0",
            "the issuer stands for all tenants of Entra; name the tenant's id",
        ),
        (
            issuer,
            "https://token.actions.githubusercontent.com",
            "the claim \"sub\" of GitHub has several forms; require \"repository_id\", and \"ref\" or \"environment\"",
        ),
        ("\"ci\"", "\"ci\"\nminutes = 61", "\"minutes\" is 61; write a number from 1 to 60"),
        (
            "\"ci\"",
            "\"ci\"\nonly = \"write\"",
            "\"only\" cannot be \"write\"; write \"everything\" or \"read\" or \"ingest\"",
        ),
        (
            "\"ci\"",
            "\"ci\"\nexperiment = \"my-runs\"",
            "\"experiment\" is \"my-runs\"; write the experiment's id, a number in quotes",
        ),
        (
            "\"ci\"",
            "\"ci\"\nkeys = \"nothing\"",
            "\"keys\" is not valid JSON (expected ident at line 1 column 2); paste the issuer's JWK set",
        ),
        (
            "\"ci\"",
            "\"ci\"\nkeys = {keys = []}",
            "\"keys\" has no key that can be used; paste the issuer's JWK set with RSA, EC or Ed25519 keys",
        ),
    ] {
        assert_eq!(rule(from, to), format!("machine rule \"m\": {expected}"));
    }
    let public = MACHINE.replace(issuer, "https://token.actions.githubusercontent.com").replace("\"sub\"", "\"ref\"");
    assert_eq!(
        sentence(&public),
        "machine rule \"m\": anyone can obtain a token of GitHub Actions; require the claim \"repository_id\" or \
         \"repository_owner_id\" or \"enterprise_id\""
    );
}

#[test]
fn keys_may_be_a_table_or_json_in_a_text() {
    let keys = key_set(&[&RSA]);
    let configuration = Configuration::from_toml(&format!("{MACHINE}keys = '''{keys}'''")).unwrap();
    assert_eq!(configuration.machines[0].keys, Some(keys.clone()));
    let key = &keys["keys"][0];
    let (n, e) = (&key["n"], &key["e"]);
    let table =
        format!("{MACHINE}keys = {{keys = [{{kty = \"RSA\", kid = \"rsa\", use = \"sig\", n = {n}, e = {e}}}]}}");
    assert_eq!(Configuration::from_toml(&table).unwrap().machines[0].keys, Some(keys));
}

#[test]
fn each_problem_of_an_origin_has_a_sentence() {
    for (origins, expected) in [
        ("[]", "\"origins\" is empty; name the URL of the server, such as \"https://mlflow.example.com\""),
        ("[\"https://a.example/\"]", "origin \"https://a.example/\" has to be written as \"https://a.example\""),
        ("[\"https://A.example:443\"]", "origin \"https://A.example:443\" has to be written as \"https://a.example\""),
        (
            "[\"http://a.example\"]",
            "origin \"http://a.example\" has to begin with \"https://\" (\"http://\" only for localhost)",
        ),
        ("[\"a.example\"]", "origin \"a.example\": it is not a URL (relative URL without a base); write \"https://…\""),
        (
            "[\"https://a.example\", \"https://a.example\"]",
            "two origins are named \"https://a.example\"; rename or remove one",
        ),
    ] {
        assert_eq!(sentence(&format!("origins = {origins}")), expected);
    }
    assert_eq!(
        sentence("origins = [\"https://a.example\"]\nrenewal_minutes = 0"),
        "\"renewal_minutes\" is 0; write a number from 1 to 1440"
    );
}

#[test]
fn the_origin_is_chosen_by_host_among_the_configured_ones() {
    let configuration = Configuration::from_toml(FILE).unwrap();
    for (host, origin) in [
        (None, "https://mlflow.example.com"),
        (Some("mlflow.example.com"), "https://mlflow.example.com"),
        (Some("LOCALHOST:5000"), "http://localhost:5000"),
        (Some("localhost"), "https://mlflow.example.com"),
        (Some("attacker.example.com"), "https://mlflow.example.com"),
        (Some(""), "https://mlflow.example.com"),
    ] {
        assert_eq!(configuration.origin(host), origin);
    }
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let text = format!("{PROVIDER}# {}", "a".repeat(MAX_CONFIGURATION_BYTES));
    let expected = format!("the configuration has {} bytes, but may have at most 307200", text.len());
    assert_eq!(sentence(&text), expected);
    let values = vec!["x".repeat(1000); 201];
    let text = format!("{PROVIDER}require = [{{claim = \"a\", values = {}}}]", json!(values));
    assert_eq!(sentence(&text), "provider \"p\": \"values\" has 201 items, but may have at most 200");
}

proptest! {
    #[test]
    fn every_error_is_one_sentence(place in 0..FILE.len(), inserted in "[a-z\"\\[\\]{}=., \\n0-9]{1,3}") {
        let place = (0..=place).rev().find(|place| FILE.is_char_boundary(*place)).unwrap_or_default();
        let (before, after) = FILE.split_at(place);
        if let Err(error) = Configuration::from_toml(&format!("{before}{inserted}{after}")) {
            let sentence = error.to_string();
            prop_assert!(!sentence.contains('\n') && !sentence.ends_with('.') && sentence.len() < 2000, "{}", sentence);
        }
    }
}
