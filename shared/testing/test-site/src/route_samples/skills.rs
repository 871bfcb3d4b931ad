//! Samples of the skill registry.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, V3};

/// Digest in registrations. The server does not compare it with the content of a git repository.
const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Returns the body of a request that registers a version in a git repository.
fn version(status: &str) -> Value {
    json!({
        "source": "https://example.com/skills.git", "ref": "main", "subpath": "a", "digest": DIGEST, "status": status,
    })
}

/// The paths of a skill without an organization and of one with an organization, each with the
/// values of its parameters.
const KINDS: [(&str, &[&str]); 2] = [("{name}", &["written"]), ("@{organization}/{name}", &["acme", "written"])];

pub(crate) async fn writes(walk: &mut SampleClient) {
    let all = format!("{V3}/skills");
    for (path, ids) in KINDS {
        let one = format!("{all}/{path}");
        let with = |others: &[&'static str]| [ids, others].concat();
        let (organization, name) = if let [organization, name] = ids { (*organization, *name) } else { ("", ids[0]) };
        let new =
            json!({ "name": name, "organization": organization, "icons": [{ "src": "https://example.com/i.png" }] });
        walk.send(&format!("POST {all}"), &[], new).await;
        walk.send(&format!("PATCH {one}"), ids, json!({ "description": "d" })).await;
        for status in ["active", "draft", "active"] {
            walk.send(&format!("POST {one}/versions"), ids, version(status)).await;
        }
        let of_version = format!("{one}/versions/{{version}}");
        walk.send(&format!("PATCH {of_version}"), &with(&["3"]), json!({ "status": "deprecated" })).await;
        let tag = json!({ "key": "k/1", "value": "v" });
        walk.send(&format!("POST {of_version}/tags"), &with(&["1"]), tag.clone()).await;
        walk.send(&format!("DELETE {of_version}/tags/{{*key}}"), &with(&["1", "k%2F1"]), json!({})).await;
        walk.send(&format!("POST {one}/tags"), ids, tag).await;
        walk.send(&format!("DELETE {one}/tags/{{*key}}"), &with(&["k%2F1"]), json!({})).await;
        for alias in ["a", "b"] {
            walk.send(&format!("POST {one}/aliases"), ids, json!({ "alias": alias, "version": 1 })).await;
        }
        walk.send(&format!("DELETE {one}/aliases/{{alias}}"), &with(&["a"]), json!({})).await;
        walk.send(&format!("DELETE {of_version}"), &with(&["3"]), json!({})).await;
        walk.send(&format!("DELETE {one}"), ids, json!({})).await;
    }
    // The first version of a skill creates the skill.
    let skill = |name: &str| json!({ "name": name, "source": "https://example.com/skills.git", "ref": "main", "subpath": name, "digest": DIGEST });
    let skills = json!({ "organization": "acme", "skills": [skill("many-b"), skill("many-a")] });
    walk.send(&format!("POST {all}/bulk-register"), &[], skills).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let get = |path: &str| (format!("GET {V3}/skills{path}"), json!({}));
    let mut reads = vec![
        get(""),
        get("?filter_string=status%20%3D%20%27active%27&order_by=created_at%20DESC"),
        get("?filter_string=tags.team%20%3D%20%27a%27"),
    ];
    for (path, ids) in [("{name}", &["read"][..]), ("@{organization}/{name}", &["acme", "read"])] {
        let one = format!("{V3}/skills/{path}");
        for status in ["draft", "active"] {
            walk.send(&format!("POST {one}/versions"), ids, version(status)).await;
        }
        walk.send(&format!("POST {one}/tags"), ids, json!({ "key": "team", "value": "a" })).await;
        walk.send(&format!("POST {one}/aliases"), ids, json!({ "alias": "a", "version": 1 })).await;
        let filled = path.replace("{name}", "{name=read}").replace("{organization}", "{organization=acme}");
        let of = |rest: &str| get(&format!("/{filled}{rest}"));
        reads.extend([
            of(""),
            of("/versions"),
            of("/versions?order_by=version%20DESC"),
            of("/versions/{version=1}"),
            of("/aliases/{alias=a}"),
            of("/aliases/{alias=latest}"),
        ]);
    }
    walk.read(reads).await;
}
