//! Browser sessions: signing in on a page, and signing out the way MLflow's page does.

use axum::body::Body;
use http::header::{CACHE_CONTROL, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use serde_json::json;
use test_site::TestClient;
use tower::ServiceExt;

use crate::users_server::{PASSWORD, Server, process};

const HOST_NAME: &str = "ml.example:5000";
const CURRENT: &str = "/ajax-api/2.0/mlflow/users/current";

/// A browser, with the cookies that were set.
#[derive(Clone)]
struct Browser {
    api: TestClient,
    cookies: Vec<(String, String)>,
}

struct Shown {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Shown {
    fn header(&self, name: http::HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Browser {
    fn new(api: &TestClient) -> Self {
        Self { api: api.clone(), cookies: Vec::new() }
    }

    /// Returns the same browser, with its next requests handled by another process.
    fn elsewhere(&self, api: &TestClient) -> Self {
        Self { api: api.clone(), cookies: self.cookies.clone() }
    }

    async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Shown {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request =
            Request::builder().method(method).uri(path).header(HOST, HOST_NAME).header(COOKIE, cookies.join("; "));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.api.0.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.into_body().collect().await.unwrap().to_bytes();
        for cookie in headers.get_all(SET_COOKIE) {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(other, _)| other != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        Shown { status, headers, text: String::from_utf8_lossy(&text).into_owned() }
    }

    async fn get(&mut self, path: &str) -> Shown {
        self.send("GET", path, &[], "").await
    }

    async fn sign_in(&mut self, path: &str, name: &str, password: &str) -> Shown {
        let form = format!("username={name}&password={}", password.replace(' ', "+"));
        self.send("POST", path, &[(ORIGIN.as_str(), &format!("http://{HOST_NAME}"))], &form).await
    }

    /// Deletes the cookie that MLflow's page deletes before it requests the current user.
    fn delete_companion(&mut self) {
        self.cookies.retain(|(name, _)| name != "mlflow_user");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_led_to_a_form_and_back() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let there = process(&server.site.table, &server.access, PermissionLevel::Read).await;
    let mut browser = Browser::new(&ann.api);
    let led = browser.get("/tokens").await;
    assert_eq!((led.status, led.header(LOCATION)), (303, "/signin?next=%2Ftokens"));
    let form = browser.get("/signin?next=%2Ftokens").await;
    assert!(form.status == 200 && form.text.contains("<form class=\"narrow\" method=\"post\">"), "{}", form.text);
    assert_eq!(form.header(CACHE_CONTROL), "no-store");
    let wrong = browser.sign_in("/signin?next=%2Ftokens", "%3Cann", "wrong").await;
    assert!(wrong.status == 401 && wrong.text.contains("value=\"&lt;ann\""), "{}", wrong.text);
    assert_eq!(browser.cookies, []);
    let inside = browser.sign_in("/signin?next=%2Ftokens", "ann", PASSWORD).await;
    assert_eq!((inside.status, inside.header(LOCATION)), (303, "/tokens"));
    assert_eq!(browser.cookies.len(), 2);
    // The session is also valid in another process.
    let mut elsewhere = browser.elsewhere(&there);
    assert_eq!((browser.get(CURRENT).await.status, elsewhere.get(CURRENT).await.status), (200, 200));
    assert_eq!(elsewhere.get("/signin?next=%2Ftokens").await.header(LOCATION), "/tokens");
    // A link that leads to another host after signing in is not followed.
    let mut other = Browser::new(&ann.api);
    let led = other.sign_in("/signin?next=%2F%2Fevil.example", "ann", PASSWORD).await;
    assert_eq!((led.status, led.header(LOCATION)), (303, "/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_of_the_api_are_asked_for_a_password() {
    let server = Server::new(PermissionLevel::Read).await;
    let mut browser = Browser::new(&server.admin.api);
    for (path, status, asks) in [
        ("/api/2.0/mlflow/users/current", 401, true),
        (CURRENT, 401, false),
        ("/graphql", 401, false),
        ("/get-artifact?run_uuid=x&path=y", 401, false),
    ] {
        let method = if path == "/graphql" { "POST" } else { "GET" };
        let refused = browser.send(method, path, &[], "").await;
        assert_eq!((refused.status, refused.headers.contains_key(WWW_AUTHENTICATE)), (status, asks), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_out_by_the_page_is_out_everywhere() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let there = process(&server.site.table, &server.access, PermissionLevel::Read).await;
    for asked in [CURRENT, "/signin"] {
        let mut browser = Browser::new(&ann.api);
        browser.sign_in("/signin", "ann", PASSWORD).await;
        let mut kept = browser.elsewhere(&there);
        assert_eq!(kept.get(CURRENT).await.status, 200);
        let mut signed_out = browser.clone();
        signed_out.delete_companion();
        let without = signed_out.get("/ajax-api/2.0/mlflow/experiments/get?experiment_id=0").await;
        assert_eq!((without.status, without.headers.contains_key(SET_COOKIE)), (401, false));
        // The session is not used without the companion cookie, but remains valid for a browser
        // that has both.
        assert_eq!(kept.get(CURRENT).await.status, 200);
        let out = signed_out.get(asked).await;
        assert_eq!(
            (out.status, out.headers.contains_key(WWW_AUTHENTICATE)),
            (if asked == CURRENT { 401 } else { 200 }, false)
        );
        assert_eq!((kept.get(CURRENT).await.status, browser.get(CURRENT).await.status), (401, 401));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_origin_does_anything_with_a_session() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let mut browser = Browser::new(&ann.api);
    let form = format!("username=ann&password={}", PASSWORD.replace(' ', "+"));
    for headers in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site"), ("origin", "http://ml.example:5000")],
        &[("sec-fetch-site", "same-site")],
    ] {
        let refused = browser.send("POST", "/signin", headers, &form).await;
        assert_eq!((refused.status, browser.cookies.len()), (403, 0), "{headers:?}");
    }
    browser.sign_in("/signin", "ann", PASSWORD).await;
    let create = "/ajax-api/2.0/mlflow/experiments/create";
    for (headers, status) in [
        (&[][..], 403),
        (&[("origin", "https://evil.example")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("origin", "http://ml.example:5000")], 200),
    ] {
        let body = json!({ "name": format!("{headers:?}") }).to_string();
        let headers: Vec<_> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
        assert_eq!(browser.send("POST", create, &headers, &body).await.status, status, "{headers:?}");
    }
    // A link from another site may open a page, but not call the API.
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(browser.send("GET", "/tokens", &link, "").await.status, 200);
    assert_eq!(browser.send("GET", CURRENT, &link, "").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_password_ends_all_sessions_but_the_one_it_is_changed_in() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let there = process(&server.site.table, &server.access, PermissionLevel::Read).await;
    let [mut first, mut second] = [Browser::new(&ann.api), Browser::new(&there)];
    for browser in [&mut first, &mut second] {
        browser.sign_in("/signin", "ann", PASSWORD).await;
        assert_eq!(browser.get(CURRENT).await.status, 200);
    }
    let own = [("sec-fetch-site", "same-origin"), ("content-type", "application/json")];
    let path = "/ajax-api/2.0/mlflow/users/update-password";
    let body = json!({ "username": "ann", "password": "another horse battery", "current_password": PASSWORD });
    assert_eq!(first.send("PATCH", path, &own, &body.to_string()).await.status, 200);
    assert_eq!((second.get(CURRENT).await.status, first.get(CURRENT).await.status), (401, 200));
    assert_eq!(first.elsewhere(&there).get(CURRENT).await.status, 200);
    // A change by an administrator ends this session, too.
    let by_admin = json!({ "username": "ann", "password": "third horse battery" });
    server.admin.v2("PATCH", "users/update-password", by_admin).await.ok();
    assert_eq!((first.get(CURRENT).await.status, first.elsewhere(&there).get(CURRENT).await.status), (401, 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_disabled_or_deleted_is_out_and_the_next_of_the_name_is_not_in() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let name = UserName::new("ann").unwrap();
    let mut browser = Browser::new(&ann.api);
    browser.sign_in("/signin", "ann", PASSWORD).await;
    for (is_disabled, status) in [(true, 401), (false, 200)] {
        server.users.user_set_disabled(&name, is_disabled).await.unwrap();
        runtime::clock::sleep(permissions::LEASE).await;
        assert_eq!((browser.get(CURRENT).await.status, ann.reads("0").await), (status, status));
    }
    let mut new = Browser::new(&ann.api);
    server.users.user_set_disabled(&name, true).await.unwrap();
    assert_eq!(new.sign_in("/signin", "ann", PASSWORD).await.status, 401);
    server.admin.v2("DELETE", "users/delete", json!({ "username": "ann" })).await.ok();
    server.user("ann").await;
    assert_eq!((browser.get(CURRENT).await.status, ann.reads("0").await), (401, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sessions_and_tokens_of_everybody_end_at_once_and_passwords_stay() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    server.user("ben").await;
    let name = UserName::new("ann").unwrap();
    let there = process(&server.site.table, &server.access, PermissionLevel::Read).await;
    let mut browsers = Vec::new();
    for user in ["ann", "ann", "ben"] {
        let mut browser = Browser::new(&ann.api);
        browser.sign_in("/signin", user, PASSWORD).await;
        assert_eq!(browser.elsewhere(&there).get(CURRENT).await.status, 200);
        browsers.push(browser);
    }
    let new = auth::new_token("t", "everything", "", "").unwrap();
    let bearer = format!("Bearer {}", server.users.token_create(&name, new).await.unwrap().0.token());
    let by_token =
        async |api: &TestClient| Browser::new(api).send("GET", CURRENT, &[("authorization", &bearer)], "").await.status;
    assert_eq!(by_token(&there).await, 200);
    let ended = server.users.all_end().await.unwrap();
    assert_eq!((ended.sessions, ended.tokens), (3, 1));
    for browser in browsers {
        for api in [&ann.api, &there] {
            assert_eq!(browser.elsewhere(api).get(CURRENT).await.status, 401);
        }
    }
    assert_eq!((by_token(&ann.api).await, by_token(&there).await), (401, 401));
    assert_eq!(ann.reads("0").await, 200);
    assert_eq!(server.users.all_end().await.unwrap(), auth::store::EndedCredentials::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_sign_in_yet_the_page_says_what_to_do() {
    let server = Server::new(PermissionLevel::Read).await;
    let nobody = server.site.table.beside("nobody".to_owned());
    nobody.create_access_if_missing().await.unwrap();
    let api = process(&server.site.table, &nobody, PermissionLevel::Read).await;
    let page = Browser::new(&api).get("/signin").await;
    assert!(page.status == 200 && page.text.contains("mlflow-serverless admin create NAME"), "{}", page.text);
    let long = "x".repeat(9 << 10);
    let refused = Browser::new(&api).sign_in("/signin", &long, "x").await;
    assert_eq!(refused.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_session_ends_where_a_user_has_many() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let name = UserName::new("ann").unwrap();
    let mut first = Browser::new(&ann.api);
    assert_eq!(first.sign_in("/signin", "ann", PASSWORD).await.status, 303);
    let sessions = async || {
        let range = key_schema::access_rows::Session::all(&name);
        server.access.query(table::Query::of(range)).await.unwrap()
    };
    // This session is one second older than the others, which distinguishes it from them.
    let oldest = sessions().await.pop().unwrap();
    let end = oldest.get(key_schema::attributes::EXPIRES).unwrap();
    let older = table::Update::new(oldest.key().unwrap());
    let older = older.set(key_schema::attributes::EXPIRES, table::number(end - 1));
    server.access.apply(&older).await.unwrap();
    let open = async || server.users.session_open(&name, PASSWORD.to_owned(), None).await.unwrap().unwrap();
    for _ in 1..auth::store::MAX_SESSIONS {
        open().await;
    }
    assert_eq!(sessions().await.len(), auth::store::MAX_SESSIONS);
    assert_eq!(first.get(CURRENT).await.status, 200);
    let mut last = Browser::new(&ann.api);
    assert_eq!(last.sign_in("/signin", "ann", PASSWORD).await.status, 303);
    assert_eq!(sessions().await.len(), auth::store::MAX_SESSIONS);
    assert_eq!((first.get(CURRENT).await.status, last.get(CURRENT).await.status), (401, 200));
    // Concurrent sign-ins may exceed the maximum number of sessions. The next sign-in ends the
    // excess ones.
    futures::future::join_all((0..20).map(|_| open())).await;
    open().await;
    assert_eq!(sessions().await.len(), auth::store::MAX_SESSIONS);
}
