//! `copy`: a whole table is copied to another engine, exported, and copied back.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_engine::Engine;
use entities::layout::{self, CURRENT_LAYOUT, LayoutError};
use flate2::Compression;
use flate2::write::GzEncoder;
use md5::{Digest, Md5};
use mlflow_api::Workspace;
use serde_json::{Value, json};
use table::Table;
use test_site::route_samples::{SAMPLES, SampleClient};

use crate::program::Program;
use crate::test_server::{ROOT, TABLE, functions, writes_to_the_table};

const ACCESS: &str = "mlflow-access";

/// Fills a data directory with every kind of entity, including marked runs and traces.
async fn fill(directory: &Path) -> Engine {
    let engine = Engine::open(directory).unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    tracking::store::Store::new(table.clone(), ROOT).experiment_create_default(&Workspace::default()).await.unwrap();
    let mut walk = SampleClient::new(functions(&table).await);
    for samples in SAMPLES.iter().filter(|samples| writes_to_the_table(samples.domain)) {
        (samples.writes)(&mut walk).await;
    }
    engine
}

/// Returns all items of a table by their keys.
async fn items(engine: &Engine, table: &str) -> BTreeMap<String, Value> {
    let items = engine.items(table).await.unwrap().into_iter();
    items.map(|item| (format!("{} {}", item["PK"]["S"], item["SK"]["S"]), sorted(item))).collect()
}

/// Returns a value whose sets are sorted, so that it can be compared with other values.
fn sorted(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        for (name, value) in map.iter_mut() {
            *value = sorted(value.take());
            if matches!(name.as_str(), "SS" | "NS" | "BS")
                && let Value::Array(elements) = value
            {
                elements.sort_by_key(Value::to_string);
            }
        }
    }
    value
}

fn copy(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    command.arg("copy").args(arguments).env_remove("AWS_ACCESS_KEY_ID");
    command.output().unwrap()
}

fn copied(arguments: &[&str]) -> String {
    let output = copy(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(arguments: &[&str]) -> String {
    let output = copy(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// Writes a table as DynamoDB exports it to S3, in two files.
async fn export(engine: &Engine, table: &str, directory: &Path) {
    fs::create_dir_all(directory.join("data")).unwrap();
    let items = engine.items(table).await.unwrap();
    let mut listed = Vec::new();
    for (number, items) in items.chunks(items.len().div_ceil(2)).enumerate() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        for item in items {
            writeln!(gzip, "{}", json!({ "Item": item })).unwrap();
        }
        let bytes = gzip.finish().unwrap();
        let name = format!("{number}.json.gz");
        fs::write(directory.join("data").join(&name), &bytes).unwrap();
        listed.push(json!({
            "itemCount": items.len(), "md5Checksum": STANDARD.encode(Md5::digest(&bytes)), "etag": "e-1",
            "dataFileS3Key": format!("AWSDynamoDB/0-1/data/{name}"),
        }));
    }
    let lines = listed.iter().map(|file| format!("{file}\n")).collect::<Vec<_>>().concat();
    fs::write(directory.join("manifest-files.json"), lines).unwrap();
    let summary = json!({
        "version": "2023-08-01", "exportArn": format!("arn:aws:dynamodb:::table/{table}/export/1"), "itemCount": items.len(),
        "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT",
    });
    fs::write(directory.join("manifest-summary.json"), summary.to_string()).unwrap();
}

fn path(directory: &Path) -> &str {
    directory.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_is_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let [here, back, without] = ["here", "back", "without"].map(|name| directory.path().join(name));
    let [data, access] = ["data-export", "access-export"].map(|name| directory.path().join(name));
    let engine = fill(&here).await;
    let (original, users) = (items(&engine, TABLE).await, items(&engine, ACCESS).await);
    assert!(original.len() > 200, "{}", original.len());
    drop(engine);

    let elsewhere = Engine::memory().unwrap();
    let server = elsewhere.serve((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = server.url();
    let key = server.access_key();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    command.args(["copy", "--from", path(&here), "--users", "--dynamodb-endpoint", &url]);
    command.env("AWS_ACCESS_KEY_ID", key.id()).env("AWS_SECRET_ACCESS_KEY", key.secret()).env("AWS_REGION", "local");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(items(&elsewhere, TABLE).await == original, "the copy differs");
    let copied_users = items(&elsewhere, ACCESS).await;
    let is_secret = |key: &String| {
        ["SECRETS", "U#SESSION#", "U#RENEWAL#", "U#TOKEN#", "LOGIN#"].iter().any(|secret| key.contains(secret))
    };
    assert!(users.keys().any(is_secret) && !copied_users.keys().any(is_secret));
    let kept: BTreeMap<_, _> = users.into_iter().filter(|(key, _)| !is_secret(key)).collect();
    assert!(copied_users == kept, "users differ");

    export(&elsewhere, TABLE, &data).await;
    export(&elsewhere, ACCESS, &access).await;
    let exports = ["--from-export", path(&data), "--users-from-export", path(&access)];
    copied(&[&exports[..], &["--data", path(&back)]].concat());
    let engine = Engine::open(&back).unwrap();
    assert!(items(&engine, TABLE).await == original, "the copy from the export differs");
    assert!(items(&engine, ACCESS).await == kept, "the users from the export differ");
    // Marked entities have stream records, so that they will be indexed.
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    assert!(!stream.oldest(1).await.unwrap().is_empty());
    drop((stream, engine));
    Program::start(&["serve", "--no-ui", "--port", "0", "--data", path(&back)]).address();

    // Without users, the only difference is that grants of users are missing.
    copied(&["--from", path(&here), "--data", path(&without)]);
    let engine = Engine::open(&without).unwrap();
    let kept: BTreeMap<_, _> = original.into_iter().filter(|(key, _)| !key.starts_with("\"USER#")).collect();
    assert!(items(&engine, TABLE).await == kept, "the copy without users differs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_killed_is_refused_by_servers_and_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| directory.path().join(name));
    let engine = fill(&here).await;
    let original = items(&engine, TABLE).await;
    drop(engine);
    let arguments = ["--from", path(&here), "--users", "--data", path(&there)];
    let slow = Program::start(&[&["copy"], &arguments[..], &["--write-units", "1"]].concat());
    // Waits until the copy has created the table and marked it as unfinished. The engine is opened
    // anew each time, because it does not notice tables that another process creates.
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if Engine::is_in(&there) {
            let table = Table::new(Engine::open(&there).unwrap().client(), TABLE);
            if layout::read(&table, CURRENT_LAYOUT).await == Err(LayoutError::UnfinishedCopy) {
                break;
            }
        }
    }
    drop(slow);

    let output = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"))
        .args(["serve", "--no-ui", "--port", "0", "--data", path(&there)])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("copy --resume"), "{said}");
    assert!(refusal(&arguments).contains("continue it with --resume"));
    let other = ["--from", path(&here), "--data", path(&there), "--resume"];
    assert!(refusal(&other).contains("resume it with the same, unchanged source"));
    copied(&[&arguments[..], &["--resume"]].concat());
    let engine = Engine::open(&there).unwrap();
    assert!(items(&engine, TABLE).await == original, "the copy differs");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied_is_refused_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let [here, there, data] = ["here", "there", "export"].map(|name| directory.path().join(name));
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let engine = fill(&here).await;
    export(&engine, TABLE, &data).await;
    drop(engine);

    let refused = |from: &[&str], target: &Path, reason: &str| {
        let said = refusal(&[from, &["--data", path(target)]].concat());
        assert!(said.contains(reason), "{said}");
    };
    let from = ["--from", path(&here)];
    refused(&["--from", path(&empty)], &there, "there is no data in");
    refused(&["--from", path(&here), "--from-table", "other"], &there, "there is no table other in");
    refused(&from, &here, "would be copied within");
    refused(&[&from[..], &["--resume"]].concat(), &there, "there is no copy to resume");
    copied(&[&from[..], &["--data", path(&there)]].concat());
    refused(&from, &there, "is not empty");

    let in_use = Program::start(&["serve", "--no-ui", "--port", "0", "--data", path(&here)]);
    in_use.address();
    while Engine::open(&here).unwrap().stream(TABLE).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    refused(&from, &empty, "another process uses the data");
    drop(in_use);

    let export = ["--from-export", path(&data)];
    refused(&["--from-export", path(&empty)], &empty, "manifest-summary.json");
    let changed = |name: &str, from: &str, to: &str| {
        let file = data.join(name);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        text
    };
    let file = data.join("data/1.json.gz");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    refused(&export, &empty, "differs from its checksum");
    fs::remove_file(&file).unwrap();
    refused(&export, &empty, "is not completely downloaded");
    fs::write(&file, &bytes).unwrap();
    for (from, to, reason) in [
        ("DYNAMODB_JSON", "ION", "export in DYNAMODB_JSON"),
        ("FULL_EXPORT", "INCREMENTAL_EXPORT", "make a full export"),
        ("\"itemCount\":", "\"itemCount\":1", "manifest-files.json has"),
    ] {
        let text = changed("manifest-summary.json", from, to);
        refused(&export, &empty, reason);
        fs::write(data.join("manifest-summary.json"), text).unwrap();
    }
    copied(&[&export[..], &["--data", path(&empty)]].concat());
}
