//! Documents that are wrong, or are meant to mislead.

use serde_json::json;

use super::*;
use crate::test_issuer::{ISSUER, discovery_document};

fn parse(document: &Value) -> Result<Discovery, ProviderError> {
    Discovery::parse(ISSUER, document.to_string().as_bytes())
}

/// Returns the sentence about a document in which one member was replaced.
fn refusal(member: &str, value: &Value) -> String {
    let mut document = discovery_document();
    document[member] = value.clone();
    parse(&document).unwrap_err().to_string()
}

#[test]
fn a_document_is_read() {
    let discovery = parse(&discovery_document()).unwrap();
    assert_eq!(discovery.issuer, ISSUER);
    assert_eq!(discovery.token_endpoint.unwrap().as_str(), "https://id.example.com/token");
    assert_eq!(discovery.authentication, Some(ClientAuthentication::Form));
    assert!(!discovery.names_itself);
}

#[test]
fn an_issuer_of_machine_tokens_has_no_endpoints() {
    let issuer = "https://token.actions.githubusercontent.com";
    let document = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/.well-known/jwks")});
    let discovery = Discovery::parse(issuer, document.to_string().as_bytes()).unwrap();
    assert!(discovery.token_endpoint.is_none() && discovery.authorization_endpoint.is_none());
}

#[test]
fn a_document_of_another_issuer_is_refused() {
    for issuer in ["https://id.example.com/", "https://attacker.example.com", "http://id.example.com", ""] {
        let sentence = refusal("issuer", &json!(issuer));
        assert!(sentence.contains(&format!("names the issuer \"{issuer}\"")), "{sentence}");
    }
}

#[test]
fn endpoints_without_tls_are_refused() {
    for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "end_session_endpoint", "jwks_uri"] {
        for url in [
            "http://id.example.com/x",
            "http://127.0.0.1:9/x",
            "http://169.254.169.254/latest",
            "https://user:password@id.example.com/",
            "https://id.example.com/#fragment",
            "file:///etc/passwd",
            "/token",
            "",
        ] {
            let sentence = refusal(name, &json!(url));
            let expected = format!("{name} in the discovery document is {url:?}, which is not an https URL");
            assert!(sentence.ends_with(&expected), "{sentence}");
        }
    }
    let long = format!("https://id.example.com/{}", "a".repeat(3000));
    assert!(refusal("jwks_uri", &json!(long)).len() < 400);
}

#[test]
fn a_local_issuer_may_do_without_tls() {
    for issuer in ["http://localhost:9000", "http://127.0.0.1:9000/realm", "http://[::1]:9000"] {
        let mut document = json!({"issuer": issuer, "jwks_uri": "http://localhost:9000/keys"});
        assert!(Discovery::parse(issuer, document.to_string().as_bytes()).is_ok());
        document["jwks_uri"] = json!("http://id.example.com/keys");
        assert!(Discovery::parse(issuer, document.to_string().as_bytes()).is_err());
    }
    assert!(Discovery::url("http://id.example.com").is_err());
    assert!(Discovery::url("nothing").is_err());
}

#[test]
fn the_tenants_of_entra_share_a_document() {
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    let document = json!({"issuer": template, "jwks_uri": "https://login.microsoftonline.com/common/keys"});
    let body = document.to_string();
    for (issuer, url) in [
        (template, "https://login.microsoftonline.com/common/v2.0/.well-known/openid-configuration"),
        (
            "https://login.microsoftonline.com/organizations/v2.0",
            "https://login.microsoftonline.com/organizations/v2.0/.well-known/openid-configuration",
        ),
    ] {
        assert_eq!(Discovery::url(issuer).unwrap().as_str(), url);
        assert_eq!(Discovery::parse(issuer, body.as_bytes()).unwrap().issuer, template);
    }
    let tenant = "https://login.microsoftonline.com/8eaef023-2b34-4da1-9baa-8bc8c9d6a490/v2.0";
    assert!(Discovery::parse(tenant, body.as_bytes()).is_err());
}

#[test]
fn the_client_secret_is_sent_as_the_provider_supports_it() {
    for (methods, expected) in [
        (json!(["private_key_jwt", "client_secret_basic"]), Some(ClientAuthentication::Header)),
        (json!(["client_secret_basic", "client_secret_post"]), Some(ClientAuthentication::Form)),
        (json!(["none", "private_key_jwt"]), None),
        (json!(null), Some(ClientAuthentication::Header)),
    ] {
        let mut document = discovery_document();
        document["token_endpoint_auth_methods_supported"] = methods;
        assert_eq!(parse(&document).unwrap().authentication, expected);
    }
}

#[test]
fn incomplete_documents_are_refused() {
    assert!(Discovery::parse(ISSUER, b"<html>").unwrap_err().to_string().contains("is not a JSON object"));
    assert!(Discovery::parse(ISSUER, b"[]").is_err());
    let sentence = refusal("jwks_uri", &json!(7));
    assert!(sentence.contains("is not complete"), "{sentence}");
}
