//! Domains mounted in one process: any subset, with the domains that they call.

use std::sync::Arc;

use access::AllowAll;
use domain::{Domain, Environment};
use domains::DOMAINS;
use serde_json::json;
use test_site::{ROOT, TestClient, TestEnvironment};

async fn mounted(served: &[&'static Domain], called: &[&'static Domain]) -> Result<TestClient, String> {
    let site = TestEnvironment::new().await;
    let around = Environment::new(Arc::new(AllowAll), site.table);
    let around = around.with_artifacts(ROOT, artifact_store::ArtifactStore::below(ROOT));
    let around = Environment { is_new_table: true, ..around };
    domain::mount(served, called, &around).await.map(TestClient).map_err(|error| error.to_string())
}

#[tokio::test]
async fn two_domains_are_one_router() {
    let api = mounted(&[&evaluation::DOMAIN, &registry::DOMAIN], &[]).await.unwrap();
    let body = json!({ "name": "m" }).to_string();
    assert_eq!(api.call_at("POST", "/api/2.0/mlflow/registered-models/create", body).await.status, 200);
    let found = api.call_at("POST", "/api/3.0/mlflow/datasets/search", "{}".to_owned()).await;
    assert_eq!(found.status, 200, "{found:?}");
    // `/version` belongs to a domain that is not mounted, so the path does not exist.
    assert_eq!(api.call_at("GET", "/version", String::new()).await.status, 404);
}

#[tokio::test]
async fn a_domain_calls_others_that_answer_no_request() {
    let query = json!({ "query": "{ mlflowGetExperiment(input: { experimentId: \"7\" }) { experiment { name } } }" });
    let called: [&Domain; 3] = [&tracking::DOMAIN, &registry::DOMAIN, &artifacts::DOMAIN];
    let api = mounted(&[&graphql::DOMAIN], &called).await.unwrap();
    let answer = api.call_at("POST", "/graphql", query.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(api.call_at("GET", "/api/2.0/mlflow/experiments/get?experiment_id=0", String::new()).await.status, 404);
    let refusal = mounted(&[&graphql::DOMAIN], &[&tracking::DOMAIN]).await.err().unwrap();
    assert!(refusal.contains("which no domain has"), "{refusal}");
}

#[tokio::test]
async fn a_domain_whose_surroundings_lack_something_is_not_mounted() {
    let refusal = mounted(&DOMAINS, &[]).await.err().unwrap();
    assert_eq!(refusal, "there are no files of the user interface");
}
