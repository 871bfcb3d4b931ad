//! An operation that was authorized for one model is not applied to another model that takes over
//! its name while the request is in flight.

use std::sync::Mutex;

use access::{AccessCheck, Authorizer, AuthorizerItems, Identity, RequestHead, Visibility};
use artifact_store::ArtifactStore;
use futures::future::BoxFuture;
use mlflow_api::Result;
use serde_json::{Value, json};
use test_site::{ROOT, TestClient, TestEnvironment};

use crate::test_server::{functions, mounted};

/// An authorizer that allows everything, but first awaits a future, which changes the model in the
/// meantime.
struct Meanwhile(Mutex<Option<BoxFuture<'static, ()>>>);

impl Authorizer for Meanwhile {
    fn authenticate<'a>(&'a self, _: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async { Ok(Identity::anonymous()) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Identity,
        asked: &'a [AccessCheck],
        _: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        let happens = self.0.lock().unwrap().take();
        Box::pin(async move {
            if let Some(happens) = happens {
                happens.await;
            }
            Ok(vec![true; asked.len()])
        })
    }

    fn visibility<'a>(&'a self, _: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        Box::pin(async { Ok(Visibility::Everything) })
    }
}

/// Returns a model, without the fields that a rename changes.
async fn model(api: &TestClient, name: &str) -> Value {
    let mut found = api.get("registered-models/get", &[("name", name)]).await.ok()["registered_model"].take();
    without_name(&mut found);
    found["latest_versions"].as_array_mut().unwrap().iter_mut().for_each(without_name);
    found
}

fn without_name(entity: &mut Value) {
    let fields = entity.as_object_mut().unwrap();
    fields.retain(|field, _| !["name", "last_updated_timestamp"].contains(&field.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_of_a_model_is_done_to_no_other_of_its_name() {
    for (method, path, body) in [
        ("GET", "registered-models/get?name=m", json!({})),
        ("DELETE", "registered-models/delete", json!({ "name": "m" })),
        ("PATCH", "registered-models/update", json!({ "name": "m", "description": "d" })),
        ("POST", "registered-models/rename", json!({ "name": "m", "new_name": "n" })),
        ("POST", "registered-models/set-tag", json!({ "name": "m", "key": "k", "value": "v" })),
        (
            "POST",
            "registered-models/set-tag",
            json!({ "name": "m", "key": "mlflow.prompt.is_prompt", "value": "true" }),
        ),
        ("DELETE", "registered-models/delete-tag", json!({ "name": "m", "key": "own" })),
        ("POST", "registered-models/alias", json!({ "name": "m", "alias": "a", "version": "1" })),
        ("DELETE", "registered-models/alias", json!({ "name": "m", "alias": "own" })),
        ("POST", "model-versions/create", json!({ "name": "m", "source": "s3://bucket/x" })),
        ("PATCH", "model-versions/update", json!({ "name": "m", "version": "1", "description": "d" })),
        ("POST", "model-versions/set-tag", json!({ "name": "m", "version": "1", "key": "k", "value": "v" })),
        ("POST", "model-versions/transition-stage", json!({ "name": "m", "version": "1", "stage": "Production" })),
        ("DELETE", "model-versions/delete", json!({ "name": "m", "version": "1" })),
    ] {
        let site = TestEnvironment::new().await;
        let api = TestClient(functions(&site.table).await);
        for name in ["m", "victim"] {
            let tags = json!([{ "key": "own", "value": name }]);
            api.post("registered-models/create", json!({ "name": name, "tags": tags })).await.ok();
            api.post("model-versions/create", json!({ "name": name, "source": "s3://bucket/x" })).await.ok();
            let alias = json!({ "name": name, "alias": "own", "version": "1" });
            api.post("registered-models/alias", alias).await.ok();
        }
        let victim = model(&api, "victim").await;
        let renaming = api.clone();
        let swap = Box::pin(async move {
            for (name, new_name) in [("m", "elsewhere"), ("victim", "m")] {
                let renamed = json!({ "name": name, "new_name": new_name });
                renaming.post("registered-models/rename", renamed).await.ok();
            }
        });
        let authorizer = std::sync::Arc::new(Meanwhile(Mutex::new(Some(swap))));
        let swapping = TestClient(mounted(&site.table, ArtifactStore::below(ROOT), authorizer).await);
        let answer = swapping.call(method, path, body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
        assert_eq!(model(&api, "m").await, victim, "{method} {path}");
    }
}
