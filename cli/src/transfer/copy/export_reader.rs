//! Reads the items of an export of a table to S3.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use key_schema::Key;
use md5::{Digest, Md5};
use serde::Deserialize;
use serde_json::Value as Json;
use table::Item;

use super::dynamodb_json;
use super::export_manifest::{ExportFile, ExportManifest};
use super::item_batch::{BatchSender, ItemBatch};
use crate::Failure;

/// A line of a file of the export, which contains one item.
#[derive(Deserialize)]
struct ExportedLine {
    #[serde(rename = "Item")]
    item: Json,
}

/// Reads all files once, to verify their checksums and numbers of items. Returns the items with the
/// keys in `wanted`, in the order of these keys. Blocks the thread.
///
/// # Errors
/// A file differs from the manifest.
pub(super) fn check(export: &ExportManifest, wanted: &[Key]) -> Result<Vec<Option<Item>>, Failure> {
    let mut found = vec![None; wanted.len()];
    for file in &export.files {
        check_sum(file)?;
        let mut count = 0;
        for line in lines(file)? {
            let line = line.map_err(|error| unreadable(file, &error))?;
            count += 1;
            // Parsing takes most of the time, so lines that cannot contain a wanted item are not
            // parsed.
            if !wanted.iter().any(|key| line.contains(&key.sk)) {
                continue;
            }
            let item = parsed(file, &line)?;
            if let Some(place) = item.key().and_then(|key| wanted.iter().position(|wanted| *wanted == key)) {
                found[place] = Some(item);
            }
        }
        if count != file.items {
            let ExportFile { path, items, .. } = file;
            return Err(format!("{} has {count} items, and its manifest has {items}", path.display()).into());
        }
    }
    Ok(found)
}

/// Sends all items, in an order that is the same each time. Returns early if the receiver was
/// dropped. Blocks the thread.
///
/// # Errors
/// A file cannot be read.
pub(super) fn send(export: &ExportManifest, to: &BatchSender) -> Result<(), Failure> {
    let mut batch = ItemBatch::default();
    for file in &export.files {
        for line in lines(file)? {
            let line = line.map_err(|error| unreadable(file, &error))?;
            if let Some(full) = batch.add(parsed(file, &line)?)
                && to.blocking_send(Ok(full)).is_err()
            {
                return Ok(());
            }
        }
    }
    // If the receiver was dropped, no items are needed any more.
    let _ = to.blocking_send(Ok(batch.rest()));
    Ok(())
}

fn lines(file: &ExportFile) -> Result<impl Iterator<Item = io::Result<String>>, Failure> {
    let opened = File::open(&file.path).map_err(|error| unreadable(file, &error))?;
    let lines = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(BufReader::new(opened))).lines();
    Ok(lines.filter(|line| !line.as_ref().is_ok_and(String::is_empty)))
}

fn parsed(file: &ExportFile, line: &str) -> Result<Item, Failure> {
    let item = serde_json::from_str(line).ok().and_then(|ExportedLine { item }| dynamodb_json::item(item));
    item.ok_or_else(|| format!("{} has a line that is not an item", file.path.display()).into())
}

fn check_sum(file: &ExportFile) -> Result<(), Failure> {
    let mut opened = File::open(&file.path).map_err(|error| unreadable(file, &error))?;
    let (mut digest, mut buffer) = (Md5::new(), vec![0; 1 << 16]);
    loop {
        let read = opened.read(&mut buffer).map_err(|error| unreadable(file, &error))?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
    }
    if STANDARD.encode(digest.finalize()) == file.md5 {
        return Ok(());
    }
    Err(format!("{} differs from its checksum in the manifest, download it again", file.path.display()).into())
}

fn unreadable(file: &ExportFile, error: &io::Error) -> Failure {
    format!("cannot read {}: {error}", file.path.display()).into()
}
