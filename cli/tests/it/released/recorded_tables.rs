//! Recorded tables in files: compressed lines of JSON.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use table::Table;
use test_site::{TABLE, TestEnvironment, key_of};

use super::reads::{Asked, line, of_line};

/// Name of the access table.
pub(super) const ACCESS: &str = "mlflow-access";
/// Batch size of writes.
const AT_ONCE: usize = 25;

fn path(release: &str, name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "released", release, name].iter().collect()
}

fn read(release: &str, name: &str) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(File::open(path(release, name)).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write(release: &str, name: &str, lines: impl IntoIterator<Item = Value>) {
    let path = path(release, name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = GzEncoder::new(File::create(path).unwrap(), Compression::best());
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
    file.finish().unwrap();
}

/// Returns the items of a release's table and access table.
pub(super) fn released(release: &str) -> (Vec<Value>, Vec<Value>) {
    (read(release, "table.jsonl.gz"), read(release, "access.jsonl.gz"))
}

/// Returns the requests that read, with the responses of the release.
pub(super) fn answers(release: &str) -> Vec<(Asked, String)> {
    read(release, "answers.jsonl.gz").iter().map(of_line).collect()
}

/// Returns the row types without an item in the tables. Either a later release has added the row
/// type, or the samples leave no item of it.
pub(super) fn without(release: &str) -> Vec<String> {
    fs::read_to_string(path(release, "without.txt")).unwrap().lines().map(str::to_owned).collect()
}

pub(super) fn record(
    release: &str,
    items: &[Value],
    access: &[Value],
    answers: &[(Asked, String)],
    without: &BTreeSet<&str>,
) {
    write(release, "table.jsonl.gz", items.iter().cloned());
    write(release, "access.jsonl.gz", access.iter().cloned());
    write(release, "answers.jsonl.gz", answers.iter().map(line));
    let without: String = without.iter().flat_map(|row| [*row, "\n"]).collect();
    fs::write(path(release, "without.txt"), without).unwrap();
}

/// Returns the items of the table, sorted by key.
pub(super) async fn table_of(site: &TestEnvironment) -> Vec<Value> {
    sorted(site.items().await)
}

/// Returns the items of the access table, sorted by key.
pub(super) async fn access_of(site: &TestEnvironment) -> Vec<Value> {
    sorted(site.engine.items(ACCESS).await.unwrap())
}

fn sorted(mut items: Vec<Value>) -> Vec<Value> {
    for item in &mut items {
        let attributes = item.as_object_mut().unwrap();
        attributes.sort_keys();
        for (kind, value) in attributes.values_mut().filter_map(Value::as_object_mut).flatten() {
            if let Some(set) = value.as_array_mut().filter(|_| ["SS", "NS", "BS"].contains(&kind.as_str())) {
                set.sort_by_key(ToString::to_string);
            }
        }
    }
    items.sort_by_cached_key(|item| {
        let key = key_of(item);
        (key.pk, key.sk)
    });
    items
}

/// Creates a site whose table and access table have these items. The stream has a record of each
/// item.
pub(super) async fn load(items: Vec<Value>, access: Vec<Value>) -> TestEnvironment {
    let site = TestEnvironment::with_stream().await;
    let access_table = Table::new(site.engine.client(), ACCESS);
    access_table.create_access_if_missing().await.unwrap();
    for (name, items) in [(TABLE, items), (ACCESS, access)] {
        for some in items.chunks(AT_ONCE) {
            let puts: Vec<_> = some.iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            let answer = site.engine.call("BatchWriteItem", json!({ "RequestItems": { name: puts } })).await.unwrap();
            assert!(answer["UnprocessedItems"].as_object().is_none_or(serde_json::Map::is_empty), "{answer}");
        }
    }
    site
}
