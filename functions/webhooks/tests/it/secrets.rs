//! Secrets are stored sealed, and never returned.

use std::sync::Arc;

use entities::webhooks::StoredWebhook;
use mlflow_api::{WebhookId, Workspace};
use secrets::{KeyFile, SealedSecret, SecretContext, SecretKeys};
use serde_json::json;

use crate::server::{Site, new_webhook};

fn keys() -> Arc<SecretKeys> {
    let directory = tempfile::tempdir().unwrap();
    Arc::new(SecretKeys::File(KeyFile::create(&directory.path().join("key")).unwrap()))
}

async fn sealed(site: &Site, id: &str) -> Option<Vec<u8>> {
    let key = StoredWebhook::key(&Workspace::default(), WebhookId::parse(id).unwrap());
    StoredWebhook::of(&site.table.get(&key).await.unwrap().unwrap()).unwrap().secret
}

#[tokio::test]
async fn a_secret_is_sealed_for_its_webhook_and_never_returned() {
    let keys = keys();
    let site = Site::with(|store| store.with_keys(keys.clone())).await;
    let mut new = new_webhook("signed");
    new["secret"] = "a secret of the test".into();
    let created = site.server.post("webhooks", new).await.ok();
    let id = created["webhook"]["webhook_id"].as_str().unwrap();
    let context = SecretContext { purpose: "webhook", workspace: "default", owner: id };
    let secret = sealed(&site, id).await.unwrap();
    let opened = keys.open(&SealedSecret::from(secret), &context).await.unwrap();
    assert_eq!(opened.expose(), b"a secret of the test");
    let read = site.server.get(&format!("webhooks/{id}"), &[]).await.ok();
    assert!(!created.to_string().contains("secret") && !read.to_string().contains("secret"));
    let dump = serde_json::to_string(&site.dump().await).unwrap();
    assert!(!dump.contains("a secret of the test"));

    // An update whose secret is `null` keeps the stored secret, another secret replaces it, and an
    // empty one removes it.
    let before = sealed(&site, id).await;
    site.server.update(id, json!({ "name": "renamed", "secret": null })).await;
    assert_eq!(sealed(&site, id).await, before);
    site.server.update(id, json!({ "secret": "another" })).await;
    let opened = keys.open(&SealedSecret::from(sealed(&site, id).await.unwrap()), &context).await.unwrap();
    assert_eq!(opened.expose(), b"another");
    site.server.update(id, json!({ "secret": "" })).await;
    assert_eq!(sealed(&site, id).await, None);
}

#[tokio::test]
async fn without_a_key_no_secret_is_stored() {
    let site = Site::new().await;
    let mut new = new_webhook("hook");
    new["secret"] = "s".into();
    let message = site.server.post("webhooks", new).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(message.contains("parameter SecretsKey") && message.contains("--secrets-key"), "{message}");
    let id = site.server.create(new_webhook("hook")).await;
    site.server.update(&id, json!({ "secret": "" })).await;
}
