//! Path traversal attacks on each endpoint that takes a path. No attack may read, write or delete
//! anything outside of what the request may access.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use axum::body::Body;
use http::{Method, Request};
use serde_json::json;

use crate::server::{PROXY, Server};

/// Paths as an attacker would write them. `{up}` stands for enough steps upwards to leave the
/// directory, and the other placeholders for the same steps in other encodings. The paths are
/// inserted into URLs unchanged. The tests of `serve` use them as well, over a directory and over a
/// bucket.
const ATTACKS: &str = include_str!("../attacks.json");

/// Traps, which are entries in the file system that the server must neither follow nor open.
const TRAPS: [&str; 5] = ["link/secret", "direct", "pipe", "device", "link/new"];

fn attacks() -> Vec<String> {
    let up = |step: &str| step.repeat(12);
    let written = |attack: &str| {
        let attack = attack.replace("{up}", &up("../")).replace("{2e}", &up("%2e%2E/")).replace("{2f}", &up("..%2f"));
        let attack = attack.replace("{252e}", &up("%252e%252e/")).replace("{252f}", &up("..%252F"));
        let attack = attack.replace("{25252e}", &up("%25252e%25252e/"));
        attack
            .replace("{back}", &up("..%5c"))
            .replace("{5c}", &up("%2e%2e%5C"))
            .replace("{255c}", &up("%252e%252e%255c"))
    };
    let long = ["n".repeat(256), "n".repeat(5_000), "d/".repeat(3_000), "%41".repeat(20_000)];
    let attacks: Vec<String> = serde_json::from_str(ATTACKS).unwrap();
    let attacks = attacks.iter().map(|attack| written(attack));
    attacks.chain(TRAPS.map(str::to_owned)).chain(long).collect()
}

/// Attacks that result in a plain name below another path component, because consecutive slashes
/// are treated as one, as in MLflow.
const BELOW: [&str; 8] = [
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc/passwd",
    "C:/windows/win.ini",
    "//host/share",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "file:%2f%2f/etc/passwd",
];

/// Returns each endpoint that takes a path, as a method, a URL in which `{attack}` stands for the
/// path, and a body that may contain `{attack}`, too.
fn endpoints(run: &str, other: &str, model: &str) -> Vec<(Method, String, String)> {
    let base = PROXY.strip_suffix("/artifacts").unwrap();
    let ajax = base.replace("/api/", "/ajax-api/");
    let mut endpoints = Vec::new();
    for base in [base, &ajax] {
        for prefix in ["", "0/"] {
            endpoints.push((Method::GET, format!("{base}/artifacts?path={prefix}{{attack}}"), String::new()));
            for method in [Method::GET, Method::PUT, Method::DELETE] {
                endpoints.push((method, format!("{base}/artifacts/{prefix}{{attack}}"), "attack".to_owned()));
            }
            endpoints.push((Method::GET, format!("{base}/presigned/{prefix}{{attack}}"), String::new()));
        }
    }
    let parts = json!([{ "part_number": 1 }]);
    for step in ["create", "complete", "abort"] {
        let body = json!({ "path": "x", "num_parts": 1, "upload_id": "u", "parts": parts }).to_string();
        endpoints.push((Method::POST, format!("{base}/mpu/{step}/{{attack}}"), body));
        let body = json!({ "path": "{attack}", "num_parts": 1, "upload_id": "u", "parts": parts }).to_string();
        endpoints.push((Method::POST, format!("{base}/mpu/{step}/0/{other}"), body));
    }
    for what in ["upload", "download"] {
        let body = json!({ "run_id": run, "path": "{attack}" }).to_string();
        endpoints.push((Method::POST, format!("/api/2.0/mlflow/artifacts/presigned-{what}-url"), body));
    }
    let get = |path: String| (Method::GET, path, String::new());
    endpoints.extend([
        get(format!("/api/2.0/mlflow/artifacts/list?run_id={run}&path={{attack}}")),
        get(format!("/get-artifact?run_uuid={run}&path={{attack}}")),
        (
            Method::POST,
            format!("/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path={{attack}}"),
            "attack".to_owned(),
        ),
        get(format!("/api/2.0/mlflow/logged-models/{model}/artifacts/directories?artifact_directory_path={{attack}}")),
        get(format!("/ajax-api/2.0/mlflow/logged-models/{model}/artifacts/files?artifact_file_path={{attack}}")),
        get("/model-versions/get-artifact?name=r&version=1&path={attack}".to_owned()),
    ]);
    endpoints
}

/// Starts a server with a run, another run whose files are secret, a logged model, a version, and
/// traps next to the files of each of them.
async fn trapped() -> (Server, [String; 3]) {
    let server = Server::new().await;
    let ((run, _), (other, _), (model, uri)) = (server.run().await, server.run().await, server.logged_model().await);
    server.put(&format!("0/{other}/artifacts/mine"), "secret of another run").await.ok();
    server.post("registered-models/create", json!({ "name": "r" })).await.ok();
    let version = json!({ "name": "r", "source": format!("models:/{model}"), "model_id": model });
    server.post("model-versions/create", version).await.ok();
    let outside = server.at("../outside");
    let of_model = uri.strip_prefix("mlflow-artifacts:/").unwrap();
    for place in ["", "0", &format!("0/{run}/artifacts"), of_model] {
        let place = server.at(place);
        fs::create_dir_all(&place).unwrap();
        symlink(&outside, place.join("link")).unwrap();
        symlink(outside.join("secret"), place.join("direct")).unwrap();
        symlink("/dev/zero", place.join("device")).unwrap();
        assert!(Command::new("mkfifo").arg(place.join("pipe")).status().unwrap().success());
    }
    (server, [run, other, model])
}

#[tokio::test]
async fn no_path_leads_elsewhere() {
    let (server, [run, other, model]) = trapped().await;
    let of_other = [format!("../../{other}/artifacts/mine"), format!("..%2f..%2f{other}%2fartifacts%2fmine")];
    let mut refused = 0;
    for (method, url, body) in endpoints(&run, &other, &model) {
        // Requests that delete or overwrite the traps themselves are skipped, because another test
        // covers them.
        let changes = method == Method::DELETE || method == Method::PUT || url.contains("upload-artifact");
        let is_of_a_run =
            !url.starts_with("/api/2.0/mlflow-artifacts") && !url.starts_with("/ajax-api/2.0/mlflow-artifacts");
        let of_other = of_other.iter().filter(|_| is_of_a_run).cloned();
        for attack in attacks().into_iter().chain(of_other) {
            if changes && matches!(attack.as_str(), "direct" | "pipe" | "device" | "secret%00" | "%00") {
                continue;
            }
            let uri = url.replace("{attack}", &attack);
            let body = body.replace("{attack}", &attack);
            let Ok(request) = Request::builder().method(method.clone()).uri(&uri).body(Body::from(body)) else {
                continue;
            };
            let (mut parts, body) = request.into_parts();
            parts.headers.insert("content-type", http::HeaderValue::from_static("application/json"));
            let sent = server.send(Request::from_parts(parts, body));
            let answer = tokio::time::timeout(std::time::Duration::from_mins(5), sent).await.unwrap();
            let text = answer.body.to_string();
            assert!(
                !text.contains("secret of") && !text.contains("root:") && text != "\"secret\"",
                "{method} {uri}: {text}"
            );
            // The response is an empty list, or reports a deletion that found nothing.
            let is_nothing = answer.status == 200 && answer.body.get("files").is_none() && !text.contains("attack");
            let is_refused = matches!(answer.status, 400 | 404 | 405 | 501);
            let is_below = answer.status == 200 && url.ends_with("/0/{attack}") && BELOW.contains(&attack.as_str());
            assert!(
                is_refused
                    || (is_below && method == Method::PUT)
                    || (is_nothing && (method == Method::GET || method == Method::DELETE)),
                "{method} {uri}: {answer:?}"
            );
            // Responses with 501 are not counted, because they only show that a directory does not
            // support the operation. The tests of `serve` cover the operation over a bucket.
            refused += usize::from(is_refused && answer.status != 501);
        }
    }
    assert!(refused > 500, "{refused}");
    let tree = server.tree();
    assert!(tree.iter().all(|path| !path.ends_with("new") && !path.contains("..")), "{tree:?}");
    assert_eq!(fs::read_to_string(server.at("../outside/secret")).unwrap(), "secret");
    assert_eq!(fs::read_to_string(server.at(&format!("0/{other}/artifacts/mine"))).unwrap(), "secret of another run");
    let beside: Vec<_> = fs::read_dir(server.at("..")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
}

#[tokio::test]
async fn links_and_pipes_are_replaced_and_deleted_themselves() {
    let (server, _) = trapped().await;
    for name in ["link", "direct", "device", "pipe"] {
        server.put(&format!("0/{name}"), "file").await.ok();
        assert_eq!(fs::read_to_string(server.at(&format!("0/{name}"))).unwrap(), "file", "{name}");
        server.delete(name).await.ok();
        assert!(!server.at(name).is_symlink() && !server.at(name).exists(), "{name}");
    }
    assert_eq!(fs::read_to_string(server.at("../outside/secret")).unwrap(), "secret");
    // Names that other programs might interpret as paths stay in their directory. Control
    // characters are percent-encoded.
    for (sent, written) in [
        ("0/a%00b%0ac", "0/a%00b%0ac"),
        ("..;/outside/secret", "..;/outside/secret"),
        ("....//outside/secret", "..../outside/secret"),
        ("0/C:x", "0/C:x"),
        ("0/%EF%BC%8E%EF%BC%8E/x", "0/．．/x"),
    ] {
        server.put(sent, "x").await.ok();
        assert_eq!(fs::read_to_string(server.at(written)).unwrap(), "x", "{sent}");
    }
}
