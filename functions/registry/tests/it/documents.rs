//! Tags of any size and number are read as they were set.

use std::collections::BTreeMap;

use serde_json::json;
use test_site::all_troubles;

use crate::server::{Site, tags};

#[tokio::test]
async fn tags_grow_and_shrink_and_go() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    server.version("m").await;
    let long = "l".repeat(100_000);
    let wide = "\u{1F600}".repeat(100_000);
    let forms = ["", "s", &"m".repeat(1_025), &"n".repeat(20_000), &long, &wide];
    for renamed in [false, true] {
        let name = if renamed { "renamed" } else { "m" };
        for (place, first) in forms.into_iter().enumerate() {
            for (other, second) in forms.into_iter().enumerate() {
                // By default, a third of the pairs is tested, and another third after the model has
                // been renamed.
                if (place + other) % 3 != usize::from(renamed) && !all_troubles() {
                    continue;
                }
                for value in [first, second] {
                    server.set_tag(name, "k", value).await.ok();
                    server.set_version_tag(name, 1, "k", value).await.ok();
                }
                let model = server.model_of(name).await.ok()["registered_model"].clone();
                assert_eq!(tags(&model)["k"], second);
                assert_eq!(tags(&model["latest_versions"][0])["k"], second);
                let version = server.version_at(name, 1).await.ok()["model_version"].clone();
                assert_eq!(tags(&version)["k"], second);
            }
            let tag = json!({ "name": name, "version": "1", "key": "k" });
            server.delete("registered-models/delete-tag", tag.clone()).await.ok();
            server.delete("model-versions/delete-tag", tag.clone()).await.ok();
            server.delete("model-versions/delete-tag", tag).await.ok();
            let model = server.model_of(name).await.ok()["registered_model"].clone();
            assert!(tags(&model).is_empty() && tags(&model["latest_versions"][0]).is_empty());
        }
        if !renamed {
            server.rename("m", "renamed").await.ok();
        }
    }
}

#[tokio::test]
async fn a_description_comes_and_goes() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    server.version("m").await;
    for description in [json!("d"), json!(null), json!(""), json!(null), json!("again")] {
        let change = json!({ "name": "m", "version": "1", "description": description });
        let changed = server.call("PATCH", "model-versions/update", change).await.ok()["model_version"].clone();
        assert_eq!(changed["description"], description);
        assert_eq!(server.version_at("m", 1).await.ok()["model_version"], changed);
    }
}

#[tokio::test]
#[ignore = "takes six seconds of a core; part of `make test-slow`"]
async fn hundreds_of_tags() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    server.version("m").await;
    let mut expected = BTreeMap::new();
    for number in 0..400 {
        let (key, value) = (format!("k{number}"), format!("{number}").repeat(200));
        server.set_version_tag("m", 1, &key, &value).await.ok();
        server.set_tag("m", &key, &value).await.ok();
        expected.insert(key, value);
    }
    let model = server.model_of("m").await.ok()["registered_model"].clone();
    assert_eq!(tags(&model), expected);
    assert_eq!(tags(&model["latest_versions"][0]), expected);
    let found = server.get("model-versions/search", &[("filter", "tags.k399 LIKE '399%' AND tags.k0 LIKE '0%'")]).await;
    assert_eq!(tags(&found.ok()["model_versions"][0]), expected);
    // No document exceeds its intended size by much.
    for (key, item) in site.dump().await {
        if let Some(held) = item["tags"]["M"].as_object() {
            let bytes: usize = held.iter().map(|(key, value)| key.len() + value["S"].as_str().unwrap().len()).sum();
            assert!(bytes < 120_000, "{key} {bytes}");
        }
    }
}

/// Creates a model and versions whose tags are too numerous and too large for one transaction.
#[tokio::test(flavor = "multi_thread")]
async fn all_at_once() {
    for (refuse, lose) in [(0, 0), (10, 0), (0, 7)] {
        let site = Site::new().await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let server = &site.server;
        let tag = |number: usize| json!({ "key": format!("k{number}"), "value": "v".repeat(number * 300) });
        let mut all: Vec<_> = (0..89).map(tag).collect();
        all.push(json!({ "key": "mlflow.prompt.is_prompt", "value": "true" }));
        let new = json!({ "name": "m", "tags": all, "description": "d".repeat(5_000) });
        let created = server.post("registered-models/create", new).await.ok();
        assert_eq!(tags(&created["registered_model"]).len(), 90);
        server.rename("m", "n").await.ok();
        server.rename("n", "m").await.ok();
        assert_eq!(site.other.models(&[("filter", "tags.`mlflow.prompt.is_prompt` = 'true'")]).await, ["m"]);
        assert!(site.other.models(&[]).await.is_empty());
        let new = json!({ "name": "m", "tags": all, "source": "dummy-source" });
        let created = server.post("model-versions/create", new).await.ok();
        assert_eq!(tags(&created["model_version"]).len(), 90);
        let model = site.other.model_of("m").await.ok()["registered_model"].clone();
        for (key, value) in tags(&model) {
            if let Ok(number) = key[1..].parse::<usize>() {
                assert_eq!(value.len(), number * 300);
            }
        }
        assert_eq!(tags(&model), tags(&model["latest_versions"][0]));
        assert_eq!(tags(&model).len(), 90);
    }
}
