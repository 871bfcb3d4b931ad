//! Long names, whose keys contain a prefix and a hash. An item under the key of a name is used only
//! if the item contains that name.

use serde_json::json;
use table::{Condition, Item, text};
use test_site::hash_collisions;

use crate::server::Site;

#[tokio::test]
async fn models_whose_names_have_one_fnv_hash_are_two() {
    let site = Site::new().await;
    let server = &site.server;
    let [one, other] = hash_collisions::names();
    server.model(&one).await;
    server.model(&other).await;
    assert_eq!((server.version(&one).await, server.version(&other).await, server.version(&other).await), (1, 1, 2));
    assert_eq!(server.set_alias(&other, "a", 2).await.status, 200);
    server.by_alias(&one, "a").await.refused(400, "INVALID_PARAMETER_VALUE");
    server.delete("registered-models/delete", json!({ "name": one })).await.ok();
    server.model_of(&one).await.missing();
    assert_eq!(server.by_alias(&other, "a").await.ok()["model_version"]["name"], other);
    assert_eq!(server.models(&[]).await, [other]);
}

/// Stores an item that contains another name under the key of this name. Requests cannot cause this
/// state, so the test writes it directly.
#[tokio::test]
async fn an_item_of_another_name_is_not_the_models() {
    let site = Site::new().await;
    let server = &site.server;
    let [one, other] = hash_collisions::names();
    server.model(&one).await;
    server.version(&one).await;
    server.set_alias(&one, "a", 1).await.ok();
    let key = key_schema::rows::RegisteredModel::key(&one.as_str().into());
    let item = site.table.get(&key).await.unwrap().unwrap().with("name", text(&other));
    site.table.put(item, &Condition::Always).await.unwrap();
    let home = key_schema::rows::ModelHome::key(&one.as_str().into());
    let row: Item = site.table.get(&home).await.unwrap().unwrap().with("name", text(&other));
    site.table.put(row, &Condition::Always).await.unwrap();
    server.model("third").await;
    let before = site.dump().await;
    server.model_of(&one).await.missing();
    server.version_at(&one, 1).await.missing();
    server.by_alias(&one, "a").await.missing();
    server.by_alias(&one, "latest").await.missing();
    server.set_alias(&one, "b", 1).await.missing();
    server.set_tag(&one, "k", "v").await.missing();
    server.set_tag(&one, "k", &"v".repeat(3_000)).await.missing();
    server.set_tag(&one, "mlflow.prompt.is_prompt", "true").await.missing();
    server.set_version_tag(&one, 1, "k", "v").await.missing();
    server.transition(&one, 1, "Staging", false).await.missing();
    server.rename(&one, "new").await.missing();
    for path in ["registered-models/delete-tag", "registered-models/alias", "registered-models/delete"] {
        server.delete(path, json!({ "name": one, "key": "k", "alias": "a" })).await.missing();
    }
    server.delete("model-versions/delete", json!({ "name": one, "version": "1" })).await.missing();
    server.call("PATCH", "registered-models/update", json!({ "name": one, "description": "d" })).await.missing();
    let version = json!({ "name": one, "source": "s3://elsewhere/model" });
    server.post("model-versions/create", version).await.missing();
    let version = json!({ "name": one, "version": "1", "description": "d" });
    server.call("PATCH", "model-versions/update", version).await.missing();
    assert!(server.versions(&format!("name = '{one}'")).await.is_empty());
    assert_eq!(server.models(&[]).await, ["third"]);
    for taken in
        [server.post("registered-models/create", json!({ "name": one })).await, server.rename("third", &one).await]
    {
        assert!(taken.refused(400, "BAD_REQUEST").contains("Choose another name"));
    }
    assert_eq!(site.changes(&before).await.len(), 0);
}
