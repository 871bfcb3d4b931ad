//! Tokens: their creation, scope and expiry.

use access::{AllowedActions, Restriction};
use auth::store::NewToken;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{ExperimentId, UserName};
use serde_json::{Value, json};
use test_site::{TestClient, TestResponse};

use crate::users_server::{Client, PASSWORD, Server, process};

struct Holder {
    api: TestClient,
    authorization: String,
}

impl Holder {
    fn of(api: &TestClient, token: &str) -> Self {
        Self { api: api.clone(), authorization: format!("Bearer {token}") }
    }

    async fn at(&self, method: &str, path: &str, body: Value) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header(AUTHORIZATION, &self.authorization);
        let request = request.header(CONTENT_TYPE, "application/json");
        self.api.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn v2(&self, method: &str, path: &str, body: Value) -> u16 {
        self.at(method, &format!("/api/2.0/mlflow/{path}"), body).await.status
    }

    async fn v3(&self, method: &str, path: &str, body: Value) -> u16 {
        self.at(method, &format!("/api/3.0/mlflow/{path}"), body).await.status
    }

    async fn reads(&self, experiment: &str) -> u16 {
        self.v2("GET", &format!("experiments/get?experiment_id={experiment}"), json!({})).await
    }
}

async fn token(server: &Server, user: &Client, experiment: Option<&str>, only: AllowedActions) -> String {
    let experiment = experiment.map(|id| ExperimentId::parse(id).unwrap());
    let new = NewToken { name: "t".to_owned(), restriction: Restriction { experiment, actions: only }, days: Some(1) };
    server.users.token_create(&UserName::new(user.name).unwrap(), new).await.unwrap().0.token()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_its_user_until_it_is_revoked() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let experiment = ann.experiment("e").await;
    let there = process(&server.site.table, &server.access, PermissionLevel::NoPermissions).await;
    let text = token(&server, &ann, None, AllowedActions::All).await;
    let holders = [
        Holder::of(&ann.api, &text),
        Holder::of(&there, &text),
        Holder { api: there.clone(), authorization: format!("Basic {}", STANDARD.encode(format!("ann:{text}"))) },
    ];
    for holder in &holders {
        assert_eq!((holder.reads(&experiment).await, holder.reads("0").await), (200, 403));
    }
    let wrong = Holder {
        authorization: format!("Basic {}", STANDARD.encode(format!("admin:{text}"))),
        ..Holder::of(&there, "")
    };
    assert_eq!(
        (wrong.reads(&experiment).await, Holder::of(&there, &format!("{text}A")).reads(&experiment).await),
        (401, 401)
    );
    let name = UserName::new("ann").unwrap();
    let id = server.users.tokens(&name).await.unwrap()[0].id;
    server.users.token_revoke(&name, id).await.unwrap();
    runtime::clock::sleep(permissions::LEASE).await;
    for holder in &holders {
        assert_eq!(holder.reads(&experiment).await, 401);
    }
    assert!(server.users.token_revoke(&name, id).await.is_err());
    // A token does not survive the deletion of its user, even if a user of the same name is
    // created.
    let text = token(&server, &ann, None, AllowedActions::All).await;
    server.admin.v2("DELETE", "users/delete", json!({ "username": "ann" })).await.ok();
    server.user("ann").await;
    assert_eq!(Holder::of(&there, &text).reads("0").await, 401);
    assert_eq!(server.users.tokens(&name).await.unwrap(), Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrowed_token_does_what_it_is_for_and_shares_nothing() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let (mine, other) = (ann.experiment("mine").await, ann.experiment("other").await);
    let run = ann.v2("POST", "runs/create", json!({ "experiment_id": mine })).await.ok();
    let run = run["run"]["info"]["run_id"].clone();
    let tag = json!({ "run_id": run, "key": "k", "value": "v" });
    let share = json!({
        "username": "ann", "resource_type": "experiment", "resource_id": mine, "permission": "READ",
    });
    let trace = |experiment: &str| {
        json!({ "trace": { "trace_info": {
            "trace_id": format!("tr-{experiment:0>32}"), "request_time": "2026-01-01T00:00:00Z", "state": "OK",
            "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        } } })
    };
    let found = async |holder: &Holder| {
        let answer = holder.at("POST", "/api/2.0/mlflow/experiments/search", json!({ "max_results": 10 })).await;
        answer.body["experiments"].as_array().map_or(0, Vec::len)
    };

    let narrow = Holder::of(&ann.api, &token(&server, &ann, Some(&mine), AllowedActions::All).await);
    assert_eq!((narrow.reads(&mine).await, narrow.reads(&other).await, found(&narrow).await), (200, 403, 1));
    assert_eq!(narrow.v2("POST", "runs/set-tag", tag.clone()).await, 200);
    assert_eq!(narrow.v2("POST", "experiments/create", json!({ "name": "new" })).await, 403);
    assert_eq!(narrow.v2("POST", "registered-models/create", json!({ "name": "new" })).await, 403);

    let reader = Holder::of(&ann.api, &token(&server, &ann, None, AllowedActions::Read).await);
    assert_eq!((reader.reads(&mine).await, reader.reads(&other).await, found(&reader).await), (200, 200, 2));
    assert_eq!(reader.v2("POST", "runs/set-tag", tag.clone()).await, 403);
    assert_eq!(reader.v3("POST", "traces", trace(&mine)).await, 403);

    let ingest = Holder::of(&ann.api, &token(&server, &ann, Some(&mine), AllowedActions::Ingest).await);
    assert_eq!((ingest.reads(&mine).await, ingest.v2("POST", "runs/set-tag", tag).await), (403, 403));
    assert_eq!(
        (ingest.v3("POST", "traces", trace(&mine)).await, ingest.v3("POST", "traces", trace(&other)).await),
        (200, 403)
    );

    for (holder, status) in [(&narrow, 403), (&reader, 200), (&ingest, 403)] {
        assert_eq!(holder.v3("GET", "users/current/permissions", json!({})).await, status);
    }
    for holder in [&narrow, &reader, &ingest] {
        assert_eq!(holder.v3("POST", "users/permissions/grant", share.clone()).await, 403);
        let password = json!({ "username": "ann", "password": "another horse battery", "current_password": PASSWORD });
        assert_eq!(holder.v2("PATCH", "users/update-password", password).await, 403);
        for method in ["GET", "POST"] {
            assert_eq!(holder.at(method, "/tokens", json!({})).await.status, 403, "{method}");
        }
    }
    // Not even a token with full scope can create another token.
    let whole = Holder::of(&ann.api, &token(&server, &ann, None, AllowedActions::All).await);
    let refused = whole.at("POST", "/tokens", json!({})).await;
    let said = "Sign in to manage tokens. A token or an AWS signature is not sufficient.";
    assert_eq!((refused.status, refused.body.as_str()), (403, Some(said)), "{}", refused.body);
    assert_eq!(
        whole
            .v3(
                "POST",
                "users/permissions/grant",
                json!({
                    "username": "admin", "resource_type": "experiment", "resource_id": mine, "permission": "READ",
                })
            )
            .await,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_and_revoked_on_their_page() {
    let server = Server::new(PermissionLevel::Read).await;
    let ann = server.user("ann").await;
    let page = async |method: &str, form: &str| {
        let credentials = STANDARD.encode(format!("ann:{PASSWORD}"));
        let request =
            Request::builder().method(method).uri("/tokens").header(AUTHORIZATION, format!("Basic {credentials}"));
        let answer = ann.api.send(request.body(Body::from(form.to_owned())).unwrap()).await;
        (answer.status, answer.body.as_str().unwrap().to_owned())
    };
    let (_, empty) = page("GET", "").await;
    let begin = empty.find("csrf_token\" value=\"").unwrap() + 19;
    let csrf = &empty[begin..begin + 43];
    assert!(empty.contains("You have no tokens yet."), "{empty}");
    let (status, text) = page("POST", "do=create&name=n&only=everything&csrf_token=wrong").await;
    assert!(status == 400 && text.contains("You have no tokens yet."), "{text}");
    let form = format!("do=create&name=%3Cb%3E&only=read&experiment=&days=7&csrf_token={csrf}");
    let (status, made) = page("POST", &form).await;
    assert!(status == 200 && made.contains("<td>&lt;b&gt;</td><td>read-only</td>"), "{made}");
    let token = made.split("<code>").nth(1).unwrap().split('<').next().unwrap();
    assert_eq!(Holder::of(&ann.api, token).reads("0").await, 200);
    let (_, listed) = page("GET", "").await;
    assert!(!listed.contains(token) && listed.contains("&lt;b&gt;"), "{listed}");
    for (wrong, status) in [("days=0", 400), ("days=x", 400), ("experiment=x", 400), ("only=x", 400), ("name=", 400)] {
        let form = format!("{wrong}&do=create&name=n&only=read&csrf_token={csrf}");
        assert_eq!(page("POST", &form).await.0, status, "{wrong}");
    }
    let (status, revoked) = page("POST", &format!("do=revoke&id=1&csrf_token={csrf}")).await;
    assert!(status == 200 && revoked.contains("You have no tokens yet."), "{revoked}");
    assert_eq!(Holder::of(&ann.api, token).reads("0").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_no_password_and_what_is_over_counts_no_longer() {
    let server = Server::new(PermissionLevel::Read).await;
    let name = UserName::new("ci").unwrap();
    server.users.service_create(&name).await.unwrap();
    let ci = Client { name: "ci", ..server.admin.clone() };
    assert_eq!((ci.reads("0").await, Client { password: "", ..ci.clone() }.reads("0").await), (401, 401));
    let text = token(&server, &ci, None, AllowedActions::All).await;
    assert_eq!(Holder::of(&ci.api, &text).reads("0").await, 200);
    let token = server.users.tokens(&name).await.unwrap().remove(0);
    let ended = table::Update::new(permissions::token_key(&name, &token.digest));
    let ended = ended.set("ttl", table::number(runtime::clock::now_ms() / 1_000));
    server.access.apply(&ended).await.unwrap();
    runtime::clock::sleep(permissions::LEASE).await;
    assert_eq!(Holder::of(&ci.api, &text).reads("0").await, 401);
    assert_eq!(server.users.tokens(&name).await.unwrap(), Vec::new());
}

/// Checks how many requests authentication adds to a call: one if the caller is cached, two if the
/// caller is not cached, and none while the lease lasts.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_caller_costs_a_request_and_within_the_lease_none() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let experiment = ann.experiment("e").await;
    let faulty = server.site.faulty();
    let access = faulty.beside(server.access.name().to_owned());
    let text = token(&server, &ann, None, AllowedActions::All).await;
    let requests = async |holder: &Holder| {
        server.site.faults.reset_calls();
        let tag = json!({ "experiment_id": experiment, "key": "k", "value": "v" });
        assert_eq!(holder.v2("POST", "experiments/set-experiment-tag", tag).await, 200);
        server.site.faults.all_calls().iter().map(|(_, calls)| calls).sum::<u64>()
    };
    let open = {
        let around = domain::Environment::new(access::AllowAll::shared(), faulty.clone());
        let around = around.with_artifacts(test_site::ROOT, artifact_store::ArtifactStore::below(test_site::ROOT));
        TestClient(domain::mount(&crate::test_server::of_table(), &[], &around).await.unwrap())
    };
    let without = requests(&Holder::of(&open, "")).await;
    let basic = format!("Basic {}", STANDARD.encode(format!("ann:{PASSWORD}")));
    for authorization in [format!("Bearer {text}"), basic] {
        let api = process(&faulty, &access, PermissionLevel::NoPermissions).await;
        let holder = Holder { api, authorization };
        runtime::clock::sleep(permissions::LEASE).await;
        assert_eq!(requests(&holder).await, without + 2, "a caller who is not cached");
        runtime::clock::sleep(permissions::LEASE).await;
        assert_eq!(requests(&holder).await, without + 1, "a cached caller");
        // The lease lasts 300 ms. The check is attempted several times, because a busy machine may
        // take longer than that.
        let mut within = u64::MAX;
        for _ in 0..20 {
            within = within.min(requests(&holder).await);
        }
        assert_eq!(within, without, "within the lease");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_a_hundred_tokens_at_the_most() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    for _ in 0..auth::store::MAX_TOKENS {
        token(&server, &ann, None, AllowedActions::Read).await;
    }
    let name = UserName::new("ann").unwrap();
    let new = NewToken { name: "t".to_owned(), restriction: Restriction::default(), days: Some(1) };
    let refused = server.users.token_create(&name, new).await.unwrap_err();
    assert_eq!(refused.message, "The user already has 100 tokens. Revoke one first.");
    assert_eq!(server.users.tokens(&name).await.unwrap().len(), auth::store::MAX_TOKENS);
}
