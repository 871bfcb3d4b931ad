//! Exchanges of JWTs. `identity-providers` tests the verification of JWTs; these tests show that
//! whatever it refuses yields no token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use access::AllowedActions;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::oauth::oauth_site::{OauthSite, Shown, TOKEN_EXCHANGE, user};
use crate::site::{pass, timed};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://ml.example";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// An issuer whose keys are in the configuration.
struct TestIssuer {
    key: Ed25519KeyPair,
}

impl TestIssuer {
    fn new() -> Self {
        Self { key: Ed25519KeyPair::generate().unwrap() }
    }

    fn keys(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "1", "x": x }] })
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes())))
    }

    /// Returns a token with these claims in place of the valid ones.
    fn token(&self, changes: &Value) -> String {
        let now = runtime::clock::now_ms() / 1_000;
        let mut claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "job", "iat": now, "exp": now + 300, "repository_id": "7",
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.signed(&json!({ "alg": "EdDSA", "kid": "1" }), &claims)
    }
}

fn rule(name: &str, issuer: &TestIssuer, changes: &Value) -> Value {
    let mut rule = json!({
        "name": name, "issuer": ISSUER, "audience": AUDIENCE, "user": "ann", "keys": issuer.keys(),
        "require": [{ "claim": "repository_id", "values": ["7"] }],
    });
    for (key, value) in changes.as_object().unwrap() {
        rule[key] = value.clone();
    }
    rule
}

async fn site(rules: &[Value]) -> OauthSite {
    let site = OauthSite::new().await;
    let configuration = json!({ "origins": [AUDIENCE], "machines": rules });
    let configuration = serde_json::from_value(configuration).unwrap();
    site.store.sign_on_configuration_put(&configuration).await.unwrap();
    site
}

async fn exchange(site: &OauthSite, token: &str) -> Shown {
    site.token(&[("grant_type", TOKEN_EXCHANGE), ("subject_token", token), ("subject_token_type", JWT)]).await
}

fn refused(code: &str) -> (u16, String) {
    (400, code.to_owned())
}

#[tokio::test]
async fn the_first_rule_that_matches_decides() {
    timed(async {
        let issuer = TestIssuer::new();
        let main = json!([{ "claim": "ref", "values": ["refs/heads/main"] }]);
        let site = site(&[
            rule("main", &issuer, &json!({ "require": main, "minutes": 5 })),
            rule("any", &issuer, &json!({ "user": "bob", "only": "read", "experiment": "3" })),
            rule("later", &issuer, &json!({ "user": "eve" })),
        ])
        .await;
        for name in ["bob", "eve"] {
            site.user(name).await;
        }
        // A token for one experiment may not read the current user.
        for (claims, name, seconds, status) in [
            (json!({ "ref": "refs/heads/main" }), "ann", 300, 200),
            (json!({ "ref": "refs/heads/other" }), "bob", 3_600, 403),
        ] {
            let shown = exchange(&site, &issuer.token(&claims)).await;
            assert_eq!(shown.status, 200, "{}", shown.text);
            let said = shown.json();
            assert_eq!(said["issued_token_type"], "urn:ietf:params:oauth:token-type:access_token");
            assert_eq!((&said["token_type"], &said["username"]), (&json!("Bearer"), &json!(name)));
            assert_eq!(said["expires_in"], seconds);
            assert_eq!(shown.header("cache-control"), "no-store");
            let token = said["access_token"].as_str().unwrap();
            assert_eq!(site.status(token).await, status);
            pass(seconds + 1).await;
            assert_eq!(site.status(token).await, 401, "it has expired");
        }
    })
    .await;
}

#[tokio::test]
async fn tokens_have_the_restriction_of_the_rule() {
    timed(async {
        let issuer = TestIssuer::new();
        let site = site(&[rule("ci", &issuer, &json!({ "only": "ingest", "experiment": "3" }))]).await;
        let said = exchange(&site, &issuer.token(&json!({}))).await.json();
        let secret = permissions::UserSecret::of_token(said["access_token"].as_str().unwrap()).unwrap();
        assert_eq!(secret.user(), &user("ann"));
        let head = http::Request::get("/api/2.0/mlflow/runs/get");
        let head = head.header("authorization", format!("Bearer {}", secret.token())).body(()).unwrap();
        let head = access::RequestHead::of(&head.into_parts().0);
        assert!(site.store.has_valid_credentials(&head).await.unwrap());
        let identity = site.identity(&head).await;
        assert_eq!(identity.restriction.actions, AllowedActions::Ingest);
        assert_eq!(identity.restriction.experiment.map(|id| id.to_string()), Some("3".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn a_token_that_is_not_valid_is_exchanged_for_nothing() {
    timed(async {
        let issuer = TestIssuer::new();
        let other = TestIssuer::new();
        let site = site(&[rule("ci", &issuer, &json!({}))]).await;
        let now = runtime::clock::now_ms() / 1_000;
        let valid = issuer.token(&json!({}));
        let [header, claims, signature] = valid.split('.').collect::<Vec<_>>().try_into().unwrap();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let changed = URL_SAFE_NO_PAD.encode(
            json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": now + 300, "repository_id": "7", "sub": "other" })
                .to_string(),
        );
        let claims_of = |changes: Value| issuer.token(&changes);
        for (what, token) in [
            ("no JWT", "x".to_owned()),
            ("two parts", format!("{header}.{claims}")),
            ("no signature", format!("{header}.{claims}.")),
            ("another signature", format!("{header}.{changed}.{signature}")),
            ("none", format!("{none}.{claims}.")),
            ("none with a signature", format!("{none}.{claims}.{signature}")),
            ("HS256", issuer.signed(&json!({ "alg": "HS256", "kid": "1" }), &json!({ "iss": ISSUER }))),
            ("another key", other.token(&json!({}))),
            ("another issuer", claims_of(json!({ "iss": "https://evil.example" }))),
            ("almost the issuer", claims_of(json!({ "iss": format!("{ISSUER}/") }))),
            ("issuer in capitals", claims_of(json!({ "iss": "https://ISSUER.example" }))),
            ("no issuer", claims_of(json!({ "iss": null }))),
            ("another audience", claims_of(json!({ "aud": "https://other.example" }))),
            ("almost the audience", claims_of(json!({ "aud": format!("{AUDIENCE}/") }))),
            ("several audiences", claims_of(json!({ "aud": [AUDIENCE, "https://other.example"] }))),
            ("no audience", claims_of(json!({ "aud": null }))),
            ("expired", claims_of(json!({ "exp": now - 61 }))),
            ("no expiry", claims_of(json!({ "exp": null }))),
            ("not yet valid", claims_of(json!({ "nbf": now + 120 }))),
            ("another claim", claims_of(json!({ "repository_id": "8" }))),
            ("a number that is written the same", claims_of(json!({ "repository_id": { "7": 7 } }))),
            ("no claim", claims_of(json!({ "repository_id": null }))),
        ] {
            let shown = exchange(&site, &token).await;
            assert_eq!(shown.error(), refused("invalid_grant"), "{what}");
            assert!(!shown.text.contains("access_token"), "{what}");
        }
        assert_eq!(exchange(&site, &valid).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn parameters_of_an_exchange_are_checked() {
    timed(async {
        let issuer = TestIssuer::new();
        let site = site(&[rule("ci", &issuer, &json!({}))]).await;
        let token = issuer.token(&json!({}));
        let base = [("grant_type", TOKEN_EXCHANGE), ("subject_token", token.as_str())];
        let access_token = "urn:ietf:params:oauth:token-type:access_token";
        for (more, expected) in [
            (vec![], Some("invalid_request")),
            (vec![("subject_token_type", access_token)], Some("invalid_request")),
            (vec![("subject_token_type", JWT), ("requested_token_type", JWT)], Some("invalid_request")),
            (vec![("subject_token_type", JWT), ("actor_token", token.as_str())], Some("invalid_request")),
            (vec![("subject_token_type", JWT), ("resource", "https://other.example")], Some("invalid_target")),
            (vec![("subject_token_type", JWT), ("audience", "https://other.example")], Some("invalid_target")),
            (vec![("subject_token_type", JWT), ("resource", "https://ml.example/")], None),
            (vec![("subject_token_type", JWT), ("requested_token_type", access_token)], None),
            (vec![("subject_token_type", "urn:ietf:params:oauth:token-type:id_token")], None),
        ] {
            let form: Vec<_> = base.iter().copied().chain(more.iter().copied()).collect();
            let shown = site.token(&form).await;
            match expected {
                Some(code) => assert_eq!(shown.error(), refused(code), "{more:?}"),
                None => assert_eq!(shown.status, 200, "{more:?}: {}", shown.text),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_without_rules_does_not_support_the_grant() {
    timed(async {
        let token = TestIssuer::new().token(&json!({}));
        for site in [OauthSite::new().await, site(&[]).await] {
            assert_eq!(exchange(&site, &token).await.error(), refused("unsupported_grant_type"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_user_of_a_rule_has_to_exist_and_to_be_enabled() {
    timed(async {
        let issuer = TestIssuer::new();
        let site = site(&[rule("ci", &issuer, &json!({ "user": "ci-user" }))]).await;
        let missing = exchange(&site, &issuer.token(&json!({}))).await;
        assert_eq!(missing.error(), refused("invalid_grant"));
        assert!(missing.text.contains("The user of the machine rule 'ci' does not exist"), "{}", missing.text);
        site.store.service_create(&user("ci-user")).await.unwrap();
        let token = exchange(&site, &issuer.token(&json!({}))).await.json()["access_token"].clone();
        assert_eq!(site.status(token.as_str().unwrap()).await, 200);
        site.store.user_set_disabled(&user("ci-user"), true).await.unwrap();
        pass(1).await;
        assert_eq!(site.status(token.as_str().unwrap()).await, 401);
        assert_eq!(exchange(&site, &issuer.token(&json!({}))).await.error(), refused("invalid_grant"));
    })
    .await;
}

/// Keys by discovery, from an issuer on this machine. A flood of tokens with unknown keys causes few
/// requests, and an issuer that is down is reported as such.
#[tokio::test]
async fn keys_of_an_issuer_are_fetched_rarely() {
    let issuer = TestIssuer::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let fetched = Arc::new(AtomicUsize::new(0));
    let document = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }).to_string();
    let (keys, counter) = (issuer.keys().to_string(), Arc::clone(&fetched));
    let app = Router::new().route("/.well-known/openid-configuration", get(move || async { document })).route(
        "/keys",
        get(move || async move {
            counter.fetch_add(1, Ordering::Relaxed);
            keys
        }),
    );
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    let of_url = json!({ "issuer": url, "keys": null });
    let site = site(&[rule("ci", &issuer, &of_url)]).await;
    let claims = json!({ "iss": url });
    assert_eq!(exchange(&site, &issuer.token(&claims)).await.status, 200);
    let now = runtime::clock::now_ms() / 1_000;
    let payload = json!({ "iss": url, "aud": AUDIENCE, "exp": now + 300, "repository_id": "7" });
    for number in 0..30 {
        let header = json!({ "alg": "EdDSA", "kid": format!("unknown-{number}") });
        assert_eq!(exchange(&site, &issuer.signed(&header, &payload)).await.error(), refused("invalid_grant"));
    }
    assert!(fetched.load(Ordering::Relaxed) <= 2, "{fetched:?}");
    assert_eq!(exchange(&site, &issuer.token(&claims)).await.status, 200);

    serving.abort();
    drop(serving.await);
    let cold = self::site(&[rule("ci", &issuer, &of_url)]).await;
    for _ in 0..3 {
        let down = exchange(&cold, &issuer.token(&claims)).await;
        assert_eq!(down.error(), (503, "temporarily_unavailable".to_owned()));
    }
    assert_eq!(exchange(&site, &issuer.token(&claims)).await.status, 200, "its keys are cached");
}
