//! The manifest of an export of a table to S3, in a downloaded directory.
//!
//! DynamoDB writes `manifest-summary.json`, `manifest-files.json` with one line per file, and the
//! files `data/*.json.gz`, below a directory `AWSDynamoDB/<id of the export>`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Failure;

const SUMMARY: &str = "manifest-summary.json";
const FILES: &str = "manifest-files.json";
const DATA: &str = "data";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    export_arn: String,
    output_format: String,
    item_count: u64,
    /// Missing in exports that were made before DynamoDB had incremental exports.
    export_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    item_count: u64,
    md5_checksum: String,
    data_file_s3_key: String,
}

/// An export of a table.
#[derive(Clone, Debug)]
pub(super) struct ExportManifest {
    /// ARN of the export.
    pub(super) arn: String,
    /// Number of items in the table.
    pub(super) items: u64,
    /// The files with the items.
    pub(super) files: Vec<ExportFile>,
}

/// A file with items, one in each line, compressed by gzip.
#[derive(Clone, Debug)]
pub(super) struct ExportFile {
    pub(super) path: PathBuf,
    /// Number of items in the file.
    pub(super) items: u64,
    /// MD5 of the file, in base64.
    pub(super) md5: String,
}

impl ExportManifest {
    /// Reads the manifest in a directory. Checks that all files exist, but does not read them.
    ///
    /// # Errors
    /// The directory has no export, or one that cannot be copied.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let read = |name: &str| {
            fs::read_to_string(directory.join(name)).map_err(|error| {
                format!(
                    "cannot read {name} in {}: {error}. Download the directory AWSDynamoDB/<export> with `aws s3 sync`",
                    directory.display()
                )
            })
        };
        let summary: Summary = parsed(&read(SUMMARY)?, SUMMARY)?;
        if summary.output_format != "DYNAMODB_JSON" {
            return Err(format!("the export's format is {}, export in DYNAMODB_JSON", summary.output_format).into());
        }
        if summary.export_type.as_deref().is_some_and(|kind| kind != "FULL_EXPORT") {
            return Err("the export only has the changes of a period, make a full export".into());
        }
        let listed = read(FILES)?;
        let listed = listed.lines().filter(|line| !line.trim().is_empty());
        let listed = listed.map(|line| parsed(line, FILES)).collect::<Result<Vec<ListedFile>, _>>()?;
        let files: Vec<_> = listed
            .into_iter()
            .map(|file| {
                let name = file.data_file_s3_key.rsplit('/').next().unwrap_or_default();
                ExportFile { path: directory.join(DATA).join(name), items: file.item_count, md5: file.md5_checksum }
            })
            .collect();
        if let Some(missing) = files.iter().find(|file| !file.path.is_file()) {
            return Err(
                format!("{} is missing: the export is not completely downloaded", missing.path.display()).into()
            );
        }
        let listed: u64 = files.iter().map(|file| file.items).sum();
        if listed != summary.item_count {
            let Summary { item_count, .. } = summary;
            return Err(format!("{SUMMARY} has {item_count} items, and {FILES} has {listed}").into());
        }
        Ok(Self { arn: summary.export_arn, items: summary.item_count, files })
    }
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str, name: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| format!("{name} is not a manifest of an export: {error}").into())
}
