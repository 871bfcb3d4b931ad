//! Requests signed by an IAM principal, at a gateway that verifies signatures.

use access::{ConnectionInfo, GatewayIdentity};
use artifact_store::ArtifactStore;
use axum::body::Body;
use domain::Environment;
use http::Request;
use http::header::AUTHORIZATION;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use permissions::{LEASE, SignedRequests};
use serde_json::json;
use test_site::{ROOT, TestClient};

use crate::test_server::of_table;
use crate::users_server::{Client, Server};

const ARN: &str = "arn:aws:sts::123456789012:assumed-role/train/chosen-by-the-caller";
const PRINCIPAL: &str = "123456789012:role/train";

async fn behind_gateways(server: &Server, unmapped: Option<&str>) -> TestClient {
    let signed = SignedRequests { unmapped_user: unmapped.map(|name| UserName::named(name).unwrap()) };
    let around = Environment::new(access::AllowAll::shared(), server.site.table.clone());
    let around = around.with_artifacts(ROOT, ArtifactStore::below(ROOT));
    let around = around.with_users(server.site.table.clone(), server.access.clone(), PermissionLevel::NoPermissions);
    TestClient(domain::mount(&of_table(), &[], &around.with_signed_requests(signed)).await.unwrap())
}

/// Returns the status of reading an experiment with a request signed by this principal.
async fn signed(api: &TestClient, arn: &str, experiment: &str) -> u16 {
    let gateway = GatewayIdentity { account: "123456789012".to_owned(), arn: arn.to_owned(), user: "AROAX".to_owned() };
    let entry = ConnectionInfo { peer: None, gateway: Some(gateway), is_secure: true };
    let uri = format!("/api/2.0/mlflow/experiments/get?experiment_id={experiment}");
    // A request header cannot set the principal, regardless of the header's name.
    let request = Request::get(uri).header(AUTHORIZATION, "Basic YWRtaW46Y29ycmVjdCBob3JzZSBiYXR0ZXJ5");
    api.send(request.extension(entry).body(Body::empty()).unwrap()).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_is_the_user_that_an_operator_has_said() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let (ann, bob) = (server.user("ann").await, server.user("bob").await);
    let (of_ann, of_bob) = (ann.experiment("of ann").await, bob.experiment("of bob").await);
    let api = behind_gateways(&server, None).await;
    let as_bob = behind_gateways(&server, Some("bob")).await;
    let both = async |api: &TestClient| (signed(api, ARN, &of_ann).await, signed(api, ARN, &of_bob).await);
    // An unmapped principal has full access, as without users, or acts as the user named by the
    // stack.
    assert_eq!((both(&api).await, both(&as_bob).await), ((200, 200), (403, 200)));
    let name = UserName::new("ann").unwrap();
    server.users.principal_map(PRINCIPAL, &name).await.unwrap();
    runtime::clock::sleep(LEASE).await;
    assert_eq!((both(&api).await, both(&as_bob).await), ((200, 403), (200, 403)));
    // Another session of the role acts as the same user, but another role does not.
    assert_eq!(signed(&api, "arn:aws:sts::123456789012:assumed-role/train/other", &of_bob).await, 403);
    assert_eq!(signed(&api, "arn:aws:sts::123456789012:assumed-role/other/chosen", &of_bob).await, 200);
    // A principal that cannot be identified is rejected.
    assert_eq!(signed(&api, "arn:aws:sts::123456789012:federated-user/ann", &of_ann).await, 401);
    // Requests at the gateway for users are not signed, because users sign in there.
    let at_users = Client { api: api.clone(), ..ann.clone() };
    assert_eq!((at_users.reads(&of_ann).await, at_users.reads(&of_bob).await), (200, 403));
    // The mapping refers to the user's id, so a later user of the same name is not mapped.
    server.admin.v2("DELETE", "users/delete", json!({ "username": "ann" })).await.ok();
    assert_eq!(signed(&api, ARN, &of_bob).await, 401);
    server.user("ann").await;
    assert_eq!(signed(&api, ARN, &of_bob).await, 401);
    // A refused principal is rejected until its mapping is removed.
    server.users.principal_refuse(PRINCIPAL).await.unwrap();
    runtime::clock::sleep(LEASE).await;
    assert_eq!((both(&api).await, both(&as_bob).await), ((401, 401), (401, 401)));
    server.users.principal_forget(PRINCIPAL).await.unwrap();
    runtime::clock::sleep(LEASE).await;
    assert_eq!(both(&api).await, (200, 200));
}

/// If users sign in and no gateway verifies signatures, the gateway's identity is ignored.
#[tokio::test(flavor = "multi_thread")]
async fn without_such_a_gateway_nobody_has_signed() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let experiment = server.admin.experiment("e").await;
    let api = crate::users_server::process(&server.site.table, &server.access, PermissionLevel::NoPermissions).await;
    // The request's header authenticates the administrator. The gateway's identity has no effect.
    assert_eq!(signed(&api, ARN, &experiment).await, 200);
    let ann = server.user("ann").await;
    assert_eq!(ann.reads(&experiment).await, 403);
}
