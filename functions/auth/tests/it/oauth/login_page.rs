//! The page on which users approve logins.

use http::header::{AUTHORIZATION, ORIGIN};

use crate::oauth::oauth_site::{HOST_NAME, OauthSite, PASSWORD, challenge, encoded};
use crate::site::{pass, timed};

const VERIFIER: &str = "a-verifier-of-a-client-that-has-43-characters";

fn url(port: &str, challenge: &str, state: &str, name: &str) -> String {
    let query = encoded(&[("redirect_port", port), ("challenge", challenge), ("state", state), ("name", name)]);
    format!("/login?{query}")
}

/// Approves or cancels the login at a loopback address, and returns the URL that the browser is led
/// to.
async fn answer(site: &OauthSite, answer: &str) -> String {
    let page = site.send_as("ann", "GET", &url("5005", &challenge(VERIFIER), "s-1", "laptop"), "").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let names = ["csrf_token", "redirect_port", "challenge", "state", "name"];
    let fields: Vec<_> = names.iter().map(|name| (*name, page.field(name))).collect();
    let mut form: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    form.push(("do", answer));
    let shown = site.send_as("ann", "POST", "/login", &encoded(&form)).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    shown.header("refresh").strip_prefix("0; url=").unwrap().to_owned()
}

async fn take(site: &OauthSite, code: &str, verifier: &str) -> Result<String, String> {
    let form = [("grant_type", "authorization_code"), ("code", code), ("code_verifier", verifier)];
    let shown = site.token(&form).await;
    let said = shown.json();
    said["access_token"].as_str().map(str::to_owned).ok_or_else(|| said["error"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_approved_login_leads_back_with_a_code_that_works_once() {
    timed(async {
        let site = OauthSite::new().await;
        let led = answer(&site, "approve").await;
        let code = led.strip_prefix("http://127.0.0.1:5005/?code=").unwrap().strip_suffix("&state=s-1").unwrap();
        assert_eq!(take(&site, code, &format!("{VERIFIER}x")).await, Err("invalid_grant".to_owned()));
        assert_eq!(take(&site, &format!("{code}x"), VERIFIER).await, Err("invalid_grant".to_owned()));
        let token = take(&site, code, VERIFIER).await.unwrap();
        assert_eq!((site.status(&token).await, site.tokens("ann").await), (200, vec!["laptop".to_owned()]));
        assert_eq!(take(&site, code, VERIFIER).await, Err("invalid_grant".to_owned()));

        let led = answer(&site, "approve").await;
        let code = led.strip_prefix("http://127.0.0.1:5005/?code=").unwrap().strip_suffix("&state=s-1").unwrap();
        pass(601).await;
        assert_eq!(take(&site, code, VERIFIER).await, Err("invalid_grant".to_owned()));
        assert_eq!(answer(&site, "deny").await, "http://127.0.0.1:5005/?error=access_denied&state=s-1");
        assert_eq!(site.tokens("ann").await.len(), 1);
    })
    .await;
}

/// A link cannot make the page lead anywhere but to the user's own machine.
#[tokio::test]
async fn parameters_of_a_link_are_checked() {
    timed(async {
        let site = OauthSite::new().await;
        let right = challenge(VERIFIER);
        for (port, challenge, state, name) in [
            ("0", right.as_str(), "s", "n"),
            ("65536", &right, "s", "n"),
            ("80@evil.example", &right, "s", "n"),
            ("80", "short", "s", "n"),
            ("80", &right.replace(|letter: char| letter.is_ascii_alphabetic(), "&"), "s", "n"),
            ("80", &right, "", "n"),
            ("80", &right, "a&code=b", "n"),
            ("80", &right, "a\r\nset-cookie: x", "n"),
            ("80", &right, &"s".repeat(201), "n"),
            ("80", &right, "s", ""),
            ("80", &right, "s", &"n".repeat(101)),
        ] {
            for method in ["GET", "POST"] {
                let target = url(port, challenge, state, name);
                let (path, query) = target.split_once('?').unwrap();
                let (path, body) = if method == "GET" { (target.as_str(), "") } else { (path, query) };
                let shown = site.send_as("ann", method, path, body).await;
                assert_eq!((shown.status, shown.header("refresh")), (400, ""), "{method} {target}");
            }
        }
        let page = site.send_as("ann", "GET", &url("80", &right, "s", "<script>\"'USER CSRF</script>"), "").await;
        assert!(page.text.contains("&lt;script&gt;&quot;&#39;USER CSRF&lt;/script&gt;"), "{}", page.text);
        assert!(!page.text.contains("<script"));
        assert!(page.header("content-security-policy").contains("form-action 'self'"));
    })
    .await;
}

#[tokio::test]
async fn only_a_user_who_has_signed_in_approves_a_login() {
    timed(async {
        let site = OauthSite::new().await;
        let target = url("5005", &challenge(VERIFIER), "s", "n");
        let anonymous = site.send("GET", &target, &[], "").await;
        assert_eq!(anonymous.status, 303);
        let next = anonymous.header("location").strip_prefix("/signin?next=").unwrap();
        assert!(next.starts_with("%2Flogin%3Fredirect%5Fport%3D5005"), "{next}");
        assert_eq!(site.send("POST", "/login", &[], "do=approve").await.status, 401);

        let led = answer(&site, "approve").await;
        let code = led.split_once("code=").unwrap().1.split_once('&').unwrap().0;
        let bearer = format!("Bearer {}", take(&site, code, VERIFIER).await.unwrap());
        for method in ["GET", "POST"] {
            assert_eq!(site.send(method, "/login", &[(AUTHORIZATION, &bearer)], "").await.status, 403);
        }
        let csrf = site.send_as("ann", "GET", "/login", "").await.field("csrf_token");
        let form = encoded(&[
            ("redirect_port", "5005"),
            ("challenge", &challenge(VERIFIER)),
            ("state", "s"),
            ("name", "n"),
            ("do", "approve"),
        ]);
        for csrf in ["", "AAAA", csrf.get(1..).unwrap()] {
            let shown = site.send_as("ann", "POST", "/login", &format!("{form}&csrf_token={csrf}")).await;
            assert_eq!((shown.status, shown.header("refresh")), (400, ""));
        }
        site.user("bob").await;
        let stolen = site.send_as("bob", "POST", "/login", &format!("{form}&csrf_token={csrf}")).await;
        assert_eq!((stolen.status, stolen.header("refresh")), (400, ""));
        let origin = format!("http://{HOST_NAME}");
        for (origin, expected) in [("https://evil.example", 403), (origin.as_str(), 200)] {
            use base64::Engine as _;
            let basic = base64::engine::general_purpose::STANDARD.encode(format!("ann:{PASSWORD}"));
            let headers = [(AUTHORIZATION, format!("Basic {basic}")), (ORIGIN, origin.to_owned())];
            let headers = headers.each_ref().map(|(name, value)| (name.clone(), value.as_str()));
            let body = format!("{form}&csrf_token={csrf}");
            assert_eq!(site.send("POST", "/login", &headers, &body).await.status, expected, "{origin}");
        }
    })
    .await;
}

#[tokio::test]
async fn wrong_codes_of_a_user_are_limited() {
    timed(async {
        let site = OauthSite::new().await;
        site.user("bob").await;
        let guess = async |name: &str| {
            let csrf = site.send_as(name, "GET", "/login", "").await.field("csrf_token");
            let form = [("csrf_token", csrf.as_str()), ("user_code", "BCDF-GHJK"), ("do", "find")];
            site.send_as(name, "POST", "/login", &encoded(&form)).await.status
        };
        let mut wrong = 0;
        while guess("ann").await == 400 {
            wrong += 1;
            assert!(wrong < 20);
        }
        assert!((5..=7).contains(&wrong), "{wrong}");
        assert_eq!((guess("ann").await, guess("bob").await), (429, 400));
        pass(13).await;
        assert_eq!(guess("ann").await, 400);
    })
    .await;
}
