//! Signing in and renewing, at a provider without a network.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;

use super::*;
use crate::claims::ClaimsError;
use crate::configuration::Configuration;
use crate::jwt::JwtError;
use crate::machines::machine_rule;
use crate::test_issuer::{
    CLIENT, FOREIGN_RSA, FakeProvider, ISSUER, RSA, claims_with, discovery_document, provider, valid_claims,
};

const VERIFIER: &str = "0123456789012345678901234567890123456789012";
const EXCHANGE: CodeExchange<'_> = CodeExchange {
    code: "c&d",
    issuer: None,
    redirect_uri: "https://mlflow.example.com/signin",
    nonce: "n",
    code_verifier: VERIFIER,
};
const SECRET: &str = "s+e/c&r et";

/// Fails to compile if futures of this crate cannot be awaited in handlers.
#[expect(dead_code, reason = "it only has to compile")]
fn futures_can_be_sent(
    client: &ProviderClient,
    (configuration, issuers): (&Configuration, &Issuers),
    (exchange, token, person): (&CodeExchange<'_>, &RefreshToken, &Person),
) {
    fn sent<T: Send>(_: T) {}
    sent(client.exchange_code(exchange));
    sent(client.refresh(token, person));
    sent(client.end_session_url(""));
    sent(client.check());
    sent(machine_rule(configuration, issuers, ""));
}

/// Returns a client of a provider whose configuration continues with this text.
fn client(fake: &FakeProvider, rest: &str) -> ProviderClient {
    let issuers = Arc::new(Issuers::new(Arc::new(fake.clone())));
    ProviderClient::new(provider(rest), ClientSecret::new(SECRET).unwrap(), issuers)
}

/// Returns a provider that issues a token with these claims.
fn issuing(claims: &Value) -> FakeProvider {
    let fake = FakeProvider::new(&[&RSA]);
    let token = RSA.token("RS256", claims);
    fake.answer(
        &format!("{ISSUER}/token"),
        200,
        &json!({"id_token": token, "access_token": "access", "refresh_token": "next", "token_type": "Bearer"}),
    );
    fake
}

fn ann() -> Person {
    Person { issuer: ISSUER.to_owned(), subject: "ann".to_owned() }
}

fn fields(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

async fn refreshed(fake: &FakeProvider, rest: &str) -> RefreshOutcome {
    client(fake, rest).refresh(&RefreshToken::new("first").unwrap(), &ann()).await
}

#[tokio::test]
async fn the_browser_is_sent_to_the_provider() {
    let client = client(&FakeProvider::new(&[&RSA]), "scopes = [\"groups\"]\nauthorize = {prompt = \"consent\"}");
    let request = AuthorizeRequest {
        redirect_uri: "https://mlflow.example.com/signin",
        state: "s",
        nonce: "n",
        code_verifier: VERIFIER,
    };
    let url = client.authorize_url(&request).await.unwrap();
    let sent = fields(url.query().unwrap());
    let expected = [
        ("client_id", CLIENT),
        ("code_challenge", &URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()))),
        ("code_challenge_method", "S256"),
        ("nonce", "n"),
        ("prompt", "consent"),
        ("redirect_uri", "https://mlflow.example.com/signin"),
        ("response_type", "code"),
        ("scope", "openid groups"),
        ("state", "s"),
        ("tenant", "1"),
    ];
    assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert!(url.as_str().starts_with("https://id.example.com/authorize?tenant=1&"), "{url}");
    assert!(!url.as_str().contains(VERIFIER));
}

#[tokio::test]
async fn a_code_is_exchanged_for_a_person() {
    let fake = issuing(&valid_claims());
    let signed_in = client(&fake, "").exchange_code(&EXCHANGE).await.unwrap();
    assert_eq!(signed_in.person, ann());
    assert_eq!(signed_in.claims.text("sub"), Some("ann"));
    assert_eq!(signed_in.refresh_token.unwrap().expose(), "next");
    let [request] = fake.requests("/token").try_into().unwrap();
    let sent = fields(request.form.as_deref().unwrap());
    let expected = [
        ("client_id", CLIENT),
        ("client_secret", SECRET),
        ("code", "c&d"),
        ("code_verifier", VERIFIER),
        ("grant_type", "authorization_code"),
        ("redirect_uri", "https://mlflow.example.com/signin"),
    ];
    assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert!(fake.requests("/userinfo").is_empty(), "no rule needs it");
}

#[tokio::test]
async fn the_secret_is_sent_in_the_header_if_the_provider_supports_nothing_else() {
    let fake = issuing(&valid_claims());
    let mut document = discovery_document();
    document["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
    fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &document);
    client(&fake, "").exchange_code(&EXCHANGE).await.unwrap();
    let [request] = fake.requests("/token").try_into().unwrap();
    assert!(!fields(request.form.as_deref().unwrap()).contains_key("client_secret"));
    let expected = format!("Basic {}", STANDARD.encode("mlflow:s%2Be%2Fc%26r+et"));
    assert_eq!(request.authorization, Some(expected));
}

#[tokio::test]
async fn tokens_of_others_do_not_sign_in() {
    for (claims, error) in [
        (claims_with(json!({"nonce": "other"})), JwtError::Nonce),
        (claims_with(json!({"azp": "other"})), JwtError::AuthorizedParty),
    ] {
        let refused = client(&issuing(&claims), "").exchange_code(&EXCHANGE).await.unwrap_err();
        assert_eq!(refused, ProviderError::Token(error));
    }
    let fake = FakeProvider::new(&[&RSA]);
    let token = FOREIGN_RSA.token("RS256", &valid_claims());
    fake.answer(&format!("{ISSUER}/token"), 200, &json!({"id_token": token}));
    let refused = client(&fake, "").exchange_code(&EXCHANGE).await.unwrap_err();
    assert_eq!(refused, ProviderError::Token(JwtError::Signature));
}

#[tokio::test]
async fn each_problem_of_a_sign_in_has_a_sentence() {
    for (status, body, sentence) in [
        (
            401,
            json!({"error": "invalid_client"}),
            "the provider is not set up correctly: it refused the client id or the client secret of \"example\" \
             (invalid_client); replace the secret",
        ),
        (
            400,
            json!({"error": "invalid_grant", "error_description": "Code not valid"}),
            "the provider refused the sign-in: invalid_grant: Code not valid",
        ),
        (500, json!({}), "the provider cannot be reached: the token endpoint responded with status 500"),
        (
            200,
            json!({"access_token": "a"}),
            "the provider is not set up correctly: it sent no ID token; check that the scope \"openid\" is allowed",
        ),
    ] {
        let fake = FakeProvider::new(&[&RSA]);
        fake.answer(&format!("{ISSUER}/token"), status, &body);
        assert_eq!(client(&fake, "").exchange_code(&EXCHANGE).await.unwrap_err().to_string(), sentence);
    }
}

#[tokio::test]
async fn a_response_of_another_provider_is_not_accepted() {
    let fake = issuing(&valid_claims());
    let client = client(&fake, "");
    let exchange = |issuer| CodeExchange { issuer, ..EXCHANGE };
    for issuer in ["https://attacker.example.com", "https://id.example.com/"] {
        let refused = client.exchange_code(&exchange(Some(issuer))).await;
        assert!(matches!(refused, Err(ProviderError::Refused(_))), "{refused:?}");
    }
    assert!(fake.requests("/token").is_empty(), "the code was not sent");
    client.exchange_code(&exchange(Some(ISSUER))).await.unwrap();

    let fake = issuing(&valid_claims());
    let mut document = discovery_document();
    document["authorization_response_iss_parameter_supported"] = json!(true);
    fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &document);
    assert!(self::client(&fake, "").exchange_code(&exchange(None)).await.is_err());
}

const GROUPS: &str = "[[providers.roles]]\nclaim = \"groups\"\nvalues = [\"ml\"]\nrole = \"editors\"\n";

#[tokio::test]
async fn claims_that_the_token_lacks_are_read_from_userinfo() {
    let fake = issuing(&valid_claims());
    fake.answer(&format!("{ISSUER}/userinfo"), 200, &json!({"sub": "ann", "groups": ["ml"], "iss": "other"}));
    let signed_in = client(&fake, GROUPS).exchange_code(&EXCHANGE).await.unwrap();
    assert_eq!(signed_in.claims.values("groups"), ["ml"]);
    assert_eq!(signed_in.person, ann());
    let [request] = fake.requests("/userinfo").try_into().unwrap();
    assert_eq!(request.authorization.as_deref(), Some("Bearer access"));
    assert!(request.form.is_none());
}

#[tokio::test]
async fn userinfo_of_another_person_is_refused() {
    for userinfo in [json!({"sub": "bob", "groups": ["ml"]}), json!({"groups": ["ml"]})] {
        let fake = issuing(&valid_claims());
        fake.answer(&format!("{ISSUER}/userinfo"), 200, &userinfo);
        let refused = client(&fake, GROUPS).exchange_code(&EXCHANGE).await;
        assert!(matches!(refused, Err(ProviderError::Refused(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn missing_userinfo_is_not_the_same_as_no_groups() {
    for (status, body) in [(503, json!({})), (401, json!({})), (200, json!([]))] {
        let fake = issuing(&valid_claims());
        fake.answer(&format!("{ISSUER}/userinfo"), status, &body);
        client(&fake, GROUPS).exchange_code(&EXCHANGE).await.unwrap_err();
        assert!(matches!(refreshed(&fake, GROUPS).await, RefreshOutcome::Unavailable(_)));
    }
}

#[tokio::test]
async fn groups_that_were_left_out_are_not_looked_up() {
    let fake = issuing(&claims_with(json!({"_claim_names": {"groups": "src1"}})));
    let signed_in = client(&fake, GROUPS).exchange_code(&EXCHANGE).await.unwrap();
    assert!(fake.requests("/userinfo").is_empty());
    let refused = crate::Memberships::of(&provider(GROUPS), &signed_in.claims);
    assert_eq!(refused, Err(ClaimsError::Overflow { claim: "groups".to_owned() }));
}

#[tokio::test]
async fn a_person_whom_no_rule_admits_is_refused() {
    let require = "require = [{claim = \"hd\", values = [\"example.com\"]}]";
    let fake = issuing(&claims_with(json!({"hd": "other.com"})));
    let refused = client(&fake, require).exchange_code(&EXCHANGE).await.unwrap_err();
    assert_eq!(refused, ProviderError::Claims(ClaimsError::NotAdmitted { claim: "hd".to_owned() }));
    assert!(matches!(refreshed(&fake, require).await, RefreshOutcome::Refused(_)));
    client(&issuing(&claims_with(json!({"hd": "example.com"}))), require).exchange_code(&EXCHANGE).await.unwrap();
}

#[tokio::test]
async fn a_refresh_token_is_rotated() {
    let fake = issuing(&claims_with(json!({"nonce": null})));
    let RefreshOutcome::Renewed { claims, refresh_token } = refreshed(&fake, "").await else { panic!("not renewed") };
    assert_eq!(claims.text("sub"), Some("ann"));
    assert_eq!(refresh_token.unwrap().expose(), "next");
    let [request] = fake.requests("/token").try_into().unwrap();
    let sent = fields(request.form.as_deref().unwrap());
    assert_eq!((sent["grant_type"].as_str(), sent["refresh_token"].as_str()), ("refresh_token", "first"));
}

#[tokio::test]
async fn a_provider_that_keeps_the_refresh_token_is_understood() {
    for repeated in [json!({}), json!({"refresh_token": "first"})] {
        let fake = FakeProvider::new(&[&RSA]);
        let mut response = json!({"id_token": RSA.token("RS256", &valid_claims())});
        response.as_object_mut().unwrap().extend(repeated.as_object().unwrap().clone());
        fake.answer(&format!("{ISSUER}/token"), 200, &response);
        let outcome = refreshed(&fake, "").await;
        assert!(matches!(outcome, RefreshOutcome::Renewed { refresh_token: None, .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_renewal_without_an_id_token_reads_userinfo() {
    let fake = FakeProvider::new(&[&RSA]);
    fake.answer(&format!("{ISSUER}/token"), 200, &json!({"access_token": "access"}));
    fake.answer(&format!("{ISSUER}/userinfo"), 200, &json!({"sub": "ann", "groups": ["ml"]}));
    let RefreshOutcome::Renewed { claims, .. } = refreshed(&fake, GROUPS).await else { panic!("not renewed") };
    assert_eq!(claims.values("groups"), ["ml"]);
    fake.answer(&format!("{ISSUER}/userinfo"), 200, &json!({"sub": "bob", "groups": ["ml"]}));
    assert!(matches!(refreshed(&fake, GROUPS).await, RefreshOutcome::Refused(_)));
}

#[tokio::test]
async fn a_renewal_of_another_person_is_refused() {
    let fake = issuing(&claims_with(json!({"sub": "bob"})));
    let outcome = refreshed(&fake, "").await;
    assert!(matches!(&outcome, RefreshOutcome::Refused(reason) if reason.contains("another person")), "{outcome:?}");
    let fake = issuing(&claims_with(json!({"aud": "other"})));
    assert!(matches!(refreshed(&fake, "").await, RefreshOutcome::Refused(_)));
}

#[tokio::test]
async fn failures_of_a_renewal_say_whether_the_token_was_used() {
    let name = |outcome: &RefreshOutcome| match outcome {
        RefreshOutcome::Renewed { .. } => "renewed",
        RefreshOutcome::Refused(_) => "refused",
        RefreshOutcome::NotSent(_) => "not sent",
        RefreshOutcome::Unavailable(_) => "unavailable",
    };
    for (answer, expected) in [
        (Ok((400, json!({"error": "invalid_grant"}).to_string())), "refused"),
        (Ok((401, json!({"error": "invalid_client"}).to_string())), "not sent"),
        (Ok((429, String::new())), "not sent"),
        (Ok((502, String::new())), "unavailable"),
        (Ok((200, "{".to_owned())), "unavailable"),
        (Err(TransportError::NotSent("refused".to_owned())), "not sent"),
        (Err(TransportError::MaybeSent("timed out".to_owned())), "unavailable"),
        (Err(TransportError::TooLarge), "unavailable"),
    ] {
        let fake = FakeProvider::new(&[&RSA]);
        fake.answer_with(&format!("{ISSUER}/token"), answer);
        let outcome = refreshed(&fake, "").await;
        assert_eq!(name(&outcome), expected, "{outcome:?}");
        assert_eq!(fake.requests("/token").len(), 1, "the token is presented once");
    }
}

#[tokio::test]
async fn a_refresh_token_is_not_presented_if_the_response_could_not_be_checked() {
    for down in ["/.well-known/openid-configuration", "/keys"] {
        let fake = issuing(&valid_claims());
        fake.answer_with(&format!("{ISSUER}{down}"), Err(TransportError::MaybeSent("timed out".to_owned())));
        assert!(matches!(refreshed(&fake, "").await, RefreshOutcome::NotSent(_)));
        assert!(fake.requests("/token").is_empty());
    }
}

#[tokio::test]
async fn signing_out_names_the_client() {
    let fake = FakeProvider::new(&[&RSA]);
    let url = client(&fake, "").end_session_url("https://mlflow.example.com/signin").await.unwrap().unwrap();
    assert_eq!(
        url.as_str(),
        "https://id.example.com/logout?client_id=mlflow&post_logout_redirect_uri=https%3A%2F%2Fmlflow.example.com%2Fsignin"
    );
    let mut document = discovery_document();
    document.as_object_mut().unwrap().remove("end_session_endpoint");
    fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &document);
    assert_eq!(client(&fake, "").end_session_url("https://mlflow.example.com/signin").await.unwrap(), None);
}

#[tokio::test]
async fn a_provider_is_checked_without_a_person() {
    let fake = FakeProvider::new(&[&RSA]);
    client(&fake, "").check().await.unwrap();
    fake.answer(&format!("{ISSUER}/keys"), 200, &json!({"keys": []}));
    let error = client(&fake, "").check().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the provider is not set up correctly: https://id.example.com/keys has no key that can be used"
    );
    let mut document = discovery_document();
    document.as_object_mut().unwrap().remove("token_endpoint");
    fake.answer(&format!("{ISSUER}/.well-known/openid-configuration"), 200, &document);
    let error = client(&fake, "").check().await.unwrap_err();
    assert_eq!(error.to_string(), "the provider is not set up correctly: its discovery document has no token_endpoint");
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let fake = issuing(&valid_claims());
    let client = client(&fake, "");
    let signed_in = client.exchange_code(&EXCHANGE).await.unwrap();
    let printed = format!("{client:?} {signed_in:?}");
    assert!(!printed.contains(SECRET) && !printed.contains("next"), "{printed}");
}
