//! Logins as clients see them: the responses of the specifications.

use http::header::{CONTENT_TYPE, ORIGIN};
use serde_json::Value;

use crate::oauth::oauth_site::{DEVICE_CODE, HOST_NAME, OauthSite, Shown, TOKEN_EXCHANGE, encoded, user};
use crate::site::{pass, timed};

struct DeviceLogin {
    device_code: String,
    user_code: String,
}

async fn begin(site: &OauthSite) -> DeviceLogin {
    let begun = site.send("POST", "/oauth/device", &[], "client_id=x&name=laptop").await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let text = |name: &str| begun.json()[name].as_str().unwrap().to_owned();
    DeviceLogin { device_code: text("device_code"), user_code: text("user_code") }
}

async fn poll(site: &OauthSite, login: &DeviceLogin) -> Shown {
    site.token(&[("grant_type", DEVICE_CODE), ("device_code", &login.device_code), ("client_id", "x")]).await
}

/// Enters a code on the page, and approves or denies the login.
async fn enter(site: &OauthSite, name: &str, code: &str, answer: &str) -> Shown {
    let csrf = site.send_as(name, "GET", "/login", "").await.field("csrf_token");
    let form = [("csrf_token", csrf.as_str()), ("user_code", code), ("do", answer)];
    site.send_as(name, "POST", "/login", &encoded(&form)).await
}

#[tokio::test]
async fn a_client_polls_until_the_user_has_approved() {
    timed(async {
        let site = OauthSite::new().await;
        let begun = site.send("POST", "/oauth/device", &[], "name=laptop").await;
        let said = begun.json();
        assert_eq!((&said["expires_in"], &said["interval"]), (&Value::from(600), &Value::from(5)));
        assert_eq!(said["verification_uri"], format!("http://{HOST_NAME}/login"));
        let complete = said["verification_uri_complete"].as_str().unwrap();
        assert_eq!(complete, format!("http://{HOST_NAME}/login?user_code={}", said["user_code"].as_str().unwrap()));
        assert_eq!((begun.header("cache-control"), begun.header("pragma")), ("no-store", "no-cache"));

        let login = begin(&site).await;
        let pending = (400, "authorization_pending".to_owned());
        assert_eq!(poll(&site, &login).await.error(), pending);
        assert_eq!(poll(&site, &login).await.error(), (400, "slow_down".to_owned()));
        pass(5).await;
        assert_eq!(poll(&site, &login).await.error(), pending);
        let shown = enter(&site, "ann", &login.user_code, "approve").await;
        assert!(shown.status == 200 && shown.text.contains("laptop"), "{}", shown.text);

        let issued = poll(&site, &login).await;
        assert_eq!((issued.status, issued.header("cache-control")), (200, "no-store"));
        let said = issued.json();
        assert_eq!((said["token_type"].as_str(), said["username"].as_str()), (Some("Bearer"), Some("ann")));
        assert_eq!(said["expires_in"], 30 * 86_400);
        assert_eq!(site.status(said["access_token"].as_str().unwrap()).await, 200);
        assert_eq!(site.tokens("ann").await, ["laptop"]);
        assert_eq!(poll(&site, &login).await.error(), (400, "expired_token".to_owned()));
        assert_eq!(enter(&site, "ann", &login.user_code, "approve").await.status, 400);
        assert_eq!(site.tokens("ann").await, ["laptop"]);
    })
    .await;
}

#[tokio::test]
async fn a_login_ends_when_it_is_denied_or_not_approved_in_time() {
    timed(async {
        let site = OauthSite::new().await;
        let denied = begin(&site).await;
        assert_eq!(enter(&site, "ann", &denied.user_code, "deny").await.status, 200);
        assert_eq!(poll(&site, &denied).await.error(), (400, "access_denied".to_owned()));
        assert_eq!(enter(&site, "ann", &denied.user_code, "approve").await.status, 400);

        let late = begin(&site).await;
        pass(601).await;
        assert_eq!(enter(&site, "ann", &late.user_code, "approve").await.status, 400);
        assert_eq!(poll(&site, &late).await.error(), (400, "expired_token".to_owned()));

        let approved = begin(&site).await;
        assert_eq!(enter(&site, "ann", &approved.user_code, "approve").await.status, 200);
        pass(601).await;
        assert_eq!(poll(&site, &approved).await.error(), (400, "expired_token".to_owned()));
        assert_eq!(site.tokens("ann").await, Vec::<String>::new());
    })
    .await;
}

/// The user code alone is not sufficient, because it is displayed.
#[tokio::test]
async fn only_the_client_that_began_a_login_gets_its_token() {
    timed(async {
        let site = OauthSite::new().await;
        let login = begin(&site).await;
        enter(&site, "ann", &login.user_code, "approve").await;
        let (code, secret) = login.device_code.split_once('.').unwrap();
        let other = begin(&site).await;
        let foreign = format!("{code}.{}", other.device_code.split_once('.').unwrap().1);
        for guess in [&format!("{code}."), code, &foreign, &login.user_code, &format!(".{secret}"), "a.b", "#.b"] {
            let refused = site.token(&[("grant_type", DEVICE_CODE), ("device_code", guess)]).await;
            assert_eq!(refused.error(), (400, "expired_token".to_owned()), "{guess}");
        }
        assert_eq!(poll(&site, &login).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_user_who_is_disabled_or_created_anew_gets_no_token() {
    timed(async {
        let site = OauthSite::new().await;
        let login = begin(&site).await;
        enter(&site, "ann", &login.user_code, "approve").await;
        site.store.user_delete(&user("ann")).await.unwrap();
        site.user("ann").await;
        assert_eq!(poll(&site, &login).await.error(), (400, "expired_token".to_owned()));
        assert_eq!(site.tokens("ann").await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn requests_that_are_not_in_the_specification_are_refused() {
    timed(async {
        let site = OauthSite::new().await;
        let exchange = format!("grant_type={}", TOKEN_EXCHANGE.replace(':', "%3A"));
        let code = "grant_type=authorization_code";
        for (form, expected) in [
            ("", "invalid_request"),
            ("grant_type=", "invalid_request"),
            ("grant_type=password&username=ann&password=x", "unsupported_grant_type"),
            ("grant_type=refresh_token&refresh_token=x", "unsupported_grant_type"),
            ("grant_type=client_credentials", "unsupported_grant_type"),
            (&format!("{code}&{code}"), "invalid_request"),
            (code, "invalid_request"),
            (&format!("{code}&code=x"), "invalid_request"),
            (&format!("{code}&code=x&code_verifier=short"), "invalid_request"),
            (&format!("{code}&code=x&code_verifier={}", "%20".repeat(43)), "invalid_request"),
            (&format!("{code}&code=x&code_verifier={}", "x".repeat(129)), "invalid_request"),
            (&format!("{code}&code=x&code_verifier={}", "x".repeat(43)), "invalid_grant"),
            (&format!("grant_type={}", DEVICE_CODE.replace(':', "%3A")), "invalid_request"),
            (&exchange, "invalid_request"),
            (&format!("{exchange}&subject_token=x"), "invalid_request"),
        ] {
            let refused = site.send("POST", "/oauth/token", &[], form).await;
            assert_eq!(refused.error(), (400, expected.to_owned()), "{form}");
            assert!(refused.json()["error_description"].as_str().unwrap().ends_with('.'), "{}", refused.text);
            assert_eq!(refused.header("cache-control"), "no-store");
        }
        for path in ["/oauth/token", "/oauth/device"] {
            assert_eq!(site.send("GET", path, &[], "").await.status, 405);
            let json = site.send("POST", path, &[(CONTENT_TYPE, "application/json")], "{}").await;
            assert_eq!(json.error(), (400, "invalid_request".to_owned()));
            let foreign = site.send("POST", path, &[(ORIGIN, "https://evil.example")], "grant_type=x&name=x").await;
            assert_eq!(foreign.error(), (400, "invalid_request".to_owned()));
            assert!(foreign.headers.get("access-control-allow-origin").is_none());
            assert_eq!(site.send("POST", path, &[], &"x".repeat(9_000)).await.status, 413);
        }
        for name in [&"x".repeat(101), "%20"] {
            let refused = site.send("POST", "/oauth/device", &[], &format!("name={name}")).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_network_begins_a_limited_number_of_logins() {
    timed(async {
        let site = OauthSite::new().await;
        let mut begun = 0;
        let refused = loop {
            let shown = site.send_from("192.0.2.1", "/oauth/device", "name=x").await;
            if shown.status != 200 {
                break shown;
            }
            begun += 1;
            assert!(begun < 1_000);
        };
        assert!(begun >= 20, "{begun}");
        assert_eq!(refused.error(), (400, "slow_down".to_owned()));
        assert_eq!(site.send_from("198.51.100.1", "/oauth/device", "name=x").await.status, 200);
        pass(7).await;
        assert_eq!(site.send_from("192.0.2.1", "/oauth/device", "name=x").await.status, 200);
    })
    .await;
}

/// With a configuration, the URL is one of its origins, whatever the client sends as `Host`.
#[tokio::test]
async fn codes_are_entered_at_a_configured_origin() {
    timed(async {
        for (origins, expected) in [
            (r#"["https://a.example", "https://ml.example:5000"]"#, "https://ml.example:5000/login"),
            (r#"["https://a.example"]"#, "https://a.example/login"),
            // A configuration that cannot be read does not prevent logins.
            (r#"["no origin"]"#, "http://ml.example:5000/login"),
        ] {
            let site = OauthSite::new().await;
            let configuration = serde_json::from_str(&format!(r#"{{"origins": {origins}}}"#)).unwrap();
            site.store.sign_on_configuration_put(&configuration).await.unwrap();
            let begun = site.send("POST", "/oauth/device", &[], "").await;
            assert_eq!(begun.json()["verification_uri"], expected, "{}", begun.text);
        }
    })
    .await;
}
