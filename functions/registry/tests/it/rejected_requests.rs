//! Rejected requests leave the table unchanged.

use serde_json::{Value, json};

use crate::server::Site;

#[tokio::test]
async fn refused_requests_write_nothing() {
    let site = Site::new().await;
    let server = &site.server;
    for name in ["m", "other"] {
        server.model(name).await;
        server.version_of_run(name, "r").await;
        server.version(name).await;
        server.set_alias(name, "a", 1).await.ok();
        server.transition(name, 1, "Staging", false).await.ok();
        server.set_version_tag(name, 1, "k", "v").await.ok();
    }
    let before = site.dump().await;
    let odd = ["", " ", "none", "a/b", "a:b", "..", "m\0", "m#M", "M#META", "m:", "RM#m", &"x".repeat(3_000)];
    let paths = [
        ("registered-models/update", "PATCH"),
        ("registered-models/rename", "POST"),
        ("registered-models/delete", "DELETE"),
        ("registered-models/set-tag", "POST"),
        ("registered-models/delete-tag", "DELETE"),
        ("registered-models/alias", "POST"),
        ("registered-models/alias", "DELETE"),
        ("model-versions/create", "POST"),
        ("model-versions/update", "PATCH"),
        ("model-versions/transition-stage", "POST"),
        ("model-versions/delete", "DELETE"),
        ("model-versions/set-tag", "POST"),
        ("model-versions/delete-tag", "DELETE"),
    ];
    let good = |name: &str| {
        json!({
            "name": name, "new_name": "n", "key": "k2", "value": "v", "alias": "b", "version": "1", "stage": "Production",
            "source": "s3://bucket/artifacts/x", "description": "d",
        })
    };
    for (path, method) in paths {
        for name in odd {
            let answer = server.call(method, path, good(name)).await;
            assert!((400..500).contains(&answer.status), "{method} {path} {name}: {answer:?}");
        }
        for body in ["", "{", "[]", "7", "null", "\"x\"", "{\"name\": {}}", "{\"name\": [\"m\"]}", "{\"name\": 5}"] {
            let answer = server.call_text(method, path, body.to_owned()).await;
            assert!((400..500).contains(&answer.status), "{method} {path} {body}: {answer:?}");
        }
    }
    let versions = ["0", "-1", "3", "x", "1.5", "99999999999999999999", "1\0", "4294967297", "#"];
    for path in ["alias", "set-tag", "delete-tag", "transition-stage", "update", "delete"] {
        let (method, path) = match path {
            "alias" => ("POST", "registered-models/alias".to_owned()),
            "update" => ("PATCH", "model-versions/update".to_owned()),
            "delete" | "delete-tag" => ("DELETE", format!("model-versions/{path}")),
            _ => ("POST", format!("model-versions/{path}")),
        };
        for version in versions {
            let mut body = good("m");
            body["version"] = Value::from(version);
            let answer = server.call(method, &path, body).await;
            assert!((400..500).contains(&answer.status), "{path} {version}: {answer:?}");
        }
    }
    let (key, value) = ("k".repeat(251), "v".repeat(100_001));
    for (field, wrong) in [("key", key.as_str()), ("key", "a#b"), ("key", "../a"), ("value", &value)] {
        for path in ["registered-models/set-tag", "model-versions/set-tag"] {
            let mut body = good("m");
            body[field] = Value::from(wrong);
            server.post(path, body).await.refused(400, "INVALID_PARAMETER_VALUE");
        }
        let tags = json!([{ "key": "good", "value": "v" }, { "key": if field == "key" { wrong } else { "k" }, "value": value }]);
        for path in ["registered-models/create", "model-versions/create"] {
            let body = json!({ "name": "m", "source": "s3://bucket/artifacts/x", "tags": tags });
            server.post(path, body).await.refused(400, "INVALID_PARAMETER_VALUE");
        }
    }
    for source in
        ["ftp://other/x", "s3://bucket/artifacts/../x", "/etc/passwd", "runs:/r/x", "models:/other/7", "models:/m-1"]
    {
        let answer = server.post("model-versions/create", json!({ "name": "m", "source": source })).await;
        assert!((400..500).contains(&answer.status), "{source}: {answer:?}");
    }
    server.rename("m", "other").await.refused(400, "RESOURCE_ALREADY_EXISTS");
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn names_forge_no_rows() {
    let site = Site::new().await;
    let server = &site.server;
    let names =
        ["m", "m#", "m#M#META", "M#V#0000000001", "m$23", "m\u{0}", "m~", " m", "m ", "M", "$~00", "WORKSPACE#default"];
    for (number, name) in names.iter().enumerate() {
        server.model(name).await;
        for _ in 0..=number {
            server.version_of_run(name, name).await;
        }
        server.set_tag(name, "a", name).await.ok();
        server.set_version_tag(name, 1, "long", &name.repeat(3_000)).await.ok();
    }
    for (number, name) in names.iter().enumerate() {
        let expected: Vec<_> =
            (1..=u32::try_from(number).unwrap() + 1).map(|version| ((*name).to_owned(), version)).collect();
        let quoted = name.replace('\'', "");
        assert_eq!(server.versions(&format!("name = '{quoted}'")).await, expected);
        assert_eq!(server.versions(&format!("run_id = '{quoted}'")).await, expected);
        assert_eq!(server.model_of(name).await.ok()["registered_model"]["name"], *name);
    }
    assert_eq!(server.models(&[]).await.len(), names.len());
}
