//! Tests of skills, versions, aliases, tags, searches and bulk registrations.

use serde_json::{Value, json};

use crate::server::{DIGEST, registration, site};

#[tokio::test]
async fn numbers_are_not_reused_and_the_latest_version_is_the_greatest_active_one() {
    let (_, server) = site().await;
    let name = "@acme/review";
    for (number, status) in [(1, "active"), (2, "draft"), (3, "active")] {
        let version = server.register(name, status).await;
        assert_eq!((&version["version"], &version["organization"]), (&json!(number), &json!("acme")));
    }
    assert_eq!(server.latest(name).await, (json!(3), json!("active")));
    server.send("POST", "/@acme/review/aliases", json!({ "alias": "a", "version": 3 })).await.ok();
    server.set_status(name, 3, "deprecated").await.ok();
    assert_eq!(server.latest(name).await, (json!(1), json!("active")));
    server.send("DELETE", "/@acme/review/versions/3", json!({})).await.ok();
    assert_eq!(server.read("/@acme/review", &[]).await.ok()["aliases"], json!([]));
    server.set_status(name, 1, "draft").await.ok();
    assert_eq!(server.latest(name).await, (json!(2), json!("draft")));
    assert_eq!(server.register(name, "draft").await["version"], 4);
    assert_eq!(server.read("/@acme/review/versions/3", &[]).await.status, 404);
    assert_eq!(server.read("/@acme/review/aliases/latest", &[]).await.ok()["version"], 4);
}

#[tokio::test]
async fn a_later_skill_of_the_name_begins_with_the_first_version() {
    let (site, server) = site().await;
    server.register("a", "active").await;
    server.register("a", "active").await;
    server.send("DELETE", "/a", json!({})).await.ok();
    assert!(site.items().await.is_empty());
    assert_eq!(server.read("/a", &[]).await.status, 404);
    assert_eq!(server.register("a", "active").await["version"], 1);
}

#[tokio::test]
async fn paths_with_and_without_an_organization_are_told_apart() {
    let (_, server) = site().await;
    for path in ["bulk-register", "versions", "@acme/versions", "@acme/bulk-register", "@a/tags"] {
        server.register(path, "active").await;
        let found = server.read(&format!("/{path}"), &[]).await.ok();
        let name = |skill: &Value| match skill["organization"].as_str().unwrap() {
            "" => skill["name"].as_str().unwrap().to_owned(),
            organization => format!("@{organization}/{}", skill["name"].as_str().unwrap()),
        };
        assert_eq!(name(&found), path);
        let escaped = path.replace('@', "%40");
        assert_eq!(name(&server.read(&format!("/{escaped}"), &[]).await.ok()), path);
        let tag = json!({ "key": "k/1", "value": "v" });
        server.send("POST", &format!("/{path}/tags"), tag).await.ok();
        server.send("PATCH", &format!("/{path}"), json!({ "description": "d" })).await.ok();
        assert_eq!(server.read(&format!("/{path}"), &[]).await.ok()["tags"], json!({ "k/1": "v" }));
        server.send("DELETE", &format!("/{path}/tags/k%2F1"), json!({})).await.ok();
        server.send("DELETE", &format!("/{path}"), json!({})).await.ok();
    }
    assert_eq!(server.read("/@acme", &[]).await.status, 400);
    assert_eq!(server.read("/@/acme/versions", &[]).await.status, 404);
}

#[tokio::test]
async fn skills_are_listed_by_organization_and_name() {
    let (_, server) = site().await;
    let names = ["b", "a", "a-b", "@z/a", "@a.b/z", "@a/b"];
    for name in names {
        server.register(name, if name == "b" { "draft" } else { "active" }).await;
    }
    let list = async |arguments: &[(&str, &str)]| {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let mut arguments = arguments.to_vec();
            if !token.is_empty() {
                arguments.push(("page_token", &token));
            }
            let page = server.read("", &arguments).await.ok();
            for skill in page["skills"].as_array().unwrap() {
                found.push(format!("{}/{}", skill["organization"].as_str().unwrap(), skill["name"].as_str().unwrap()));
            }
            match page["next_page_token"].as_str() {
                None => return found,
                Some(next) => token = next.to_owned(),
            }
        }
    };
    let all = ["/a", "/a-b", "/b", "a/b", "a.b/z", "z/a"];
    assert_eq!(list(&[]).await, all);
    assert_eq!(list(&[("max_results", "2")]).await, all);
    assert_eq!(
        list(&[("max_results", "2"), ("order_by", "name DESC")]).await,
        ["a.b/z", "/b", "a/b", "/a-b", "/a", "z/a"]
    );
    assert_eq!(list(&[("filter_string", "status = 'draft'")]).await, ["/b"]);
    assert_eq!(list(&[("filter_string", "organization = ''"), ("max_results", "1")]).await, ["/a", "/a-b", "/b"]);
    let chosen = [("include_skill_identities", "@a/b"), ("include_skill_identities", "a")];
    assert_eq!(list(&chosen).await, ["/a", "a/b"]);
    assert_eq!(list(&[("include_skill_identities", "")]).await, [""; 0]);
    for number in [2, 3] {
        server.register("a", "active").await;
        let found = server.read("/a/versions", &[("order_by", "version DESC"), ("max_results", "1")]).await.ok();
        assert_eq!(found["skill_versions"][0]["version"], number);
    }
}

#[tokio::test]
async fn a_bulk_registration_keeps_versions_that_are_the_same() {
    let (_, server) = site().await;
    let body = |subpaths: &[&str]| {
        let skill = |subpath: &&str| json!({ "name": subpath, "source": "https://example.com/s.git", "ref": "main", "subpath": subpath, "digest": DIGEST });
        json!({ "organization": "acme", "skills": subpaths.iter().map(skill).collect::<Vec<_>>() })
    };
    let versions = async |subpaths: &[&str]| {
        let answer = server.send("POST", "/bulk-register", body(subpaths)).await.ok();
        let versions = answer["skill_versions"].as_array().unwrap().clone();
        versions.iter().map(|version| (version["name"].clone(), version["version"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(versions(&["b", "a"]).await, [(json!("b"), json!(1)), (json!("a"), json!(1))]);
    server.send("POST", "/@acme/a/versions", registration("active")).await.ok();
    assert_eq!(versions(&["c", "a"]).await, [(json!("c"), json!(1)), (json!("a"), json!(1))]);
}
