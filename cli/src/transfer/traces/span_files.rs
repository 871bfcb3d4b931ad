//! Reads files with spans: `traces.json` in the artifacts of a trace, and `traces.pb` in the archive.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use artifact_store::bucket::{Bucket, BucketFailure};
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use mlflow_api::location;
use spans::Span;

use super::span_reader::in_order;
use crate::Failure;
use crate::credentials::with_causes;
use crate::transfer::import::ImportContext;

/// How long the URL of a file is valid.
const URL_EXPIRATION: Duration = Duration::from_mins(5);

/// Where the spans of a trace are, if they are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanFile {
    /// A directory with `traces.json`.
    Artifact(String),
    /// A directory with `traces.pb`.
    Archive(String),
}

impl SpanFile {
    /// Returns the file in a trace's artifacts, given the tag with their location and the location
    /// of the experiment. Clients can set the tag to another directory, so it is ignored unless it
    /// ends like the artifact directory of this trace.
    pub(super) fn artifact(tag: Option<&str>, experiment: &str, trace: &str) -> Self {
        let below = format!("traces/{trace}/artifacts");
        let own = tag.filter(|tag| {
            tag.trim_end_matches('/').strip_suffix(below.as_str()).is_some_and(|rest| rest.ends_with('/'))
        });
        Self::Artifact(own.map_or_else(|| location::append(experiment, &below), str::to_owned))
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Artifact(_) => "traces.json",
            Self::Archive(_) => "traces.pb",
        }
    }

    fn directory(&self) -> &str {
        match self {
            Self::Artifact(directory) | Self::Archive(directory) => directory,
        }
    }
}

/// A reader of files with spans.
#[derive(Default)]
pub(super) struct SpanFileReader {
    /// The buckets that were used, by name. For a bucket that cannot be reached, the reason.
    buckets: Mutex<HashMap<String, Result<Bucket, String>>>,
}

impl SpanFileReader {
    /// Reads the spans of a file. Returns `None` if the file does not exist. A file that
    /// `--artifacts` moves is read at its new location or, if it is missing or unreadable there, at
    /// the old one.
    ///
    /// If the file cannot be read, the error is the reason, as a clause that completes
    /// "not imported, ".
    pub(super) async fn read(&self, context: &ImportContext, file: &SpanFile) -> Result<Option<Vec<Span>>, String> {
        let old = place(file.directory(), &context.artifacts_destination);
        let moved = place(&context.artifact_location(file.directory()), &context.artifacts_destination);
        let name = file.name();
        let mut bytes = self.content(&moved, name).await;
        if !matches!(bytes, Ok(Some(_))) && old != moved {
            bytes = self.content(&old, name).await;
        }
        let Some(bytes) = bytes? else { return Ok(None) };
        let spans = match file {
            SpanFile::Artifact(_) => spans::of_artifact(&bytes),
            SpanFile::Archive(_) => spans::of_archive(&bytes),
        };
        in_order(spans.ok_or_else(|| format!("because their file {name} is not in MLflow's format"))?).map(Some)
    }

    /// Returns the content of a file in a directory, or `None` if the file does not exist. The
    /// error is the reason why the file cannot be read.
    async fn content(&self, directory: &str, name: &str) -> Result<Option<Vec<u8>>, String> {
        if let Some(rest) = directory.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let key = [prefix.trim_matches('/'), name].join("/");
            return self.object(bucket, key.trim_start_matches('/')).await;
        }
        let absolute = std::path::absolute(local_path(directory).unwrap_or_default());
        let (Some(_), Ok(path)) = (local_path(directory), absolute) else {
            let scheme = directory.split(':').next().unwrap_or_default();
            return Err(format!("because this program does not read files of {scheme}:"));
        };
        match tokio::fs::read(path.join(name)).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(format!("because their file {name} cannot be read: {error}")),
        }
    }

    /// Returns the content of an object in a bucket. Takes up to two requests, and none if an
    /// earlier request to the bucket failed.
    async fn object(&self, name: &str, key: &str) -> Result<Option<Vec<u8>>, String> {
        let known = |buckets: &mut HashMap<String, Result<Bucket, String>>| {
            buckets.entry(name.to_owned()).or_insert_with(|| Ok(Bucket::new(name))).clone()
        };
        let bucket = known(&mut self.buckets.lock().unwrap_or_else(PoisonError::into_inner))?;
        let content = read_object(&bucket, key).await.map_err(|failure| {
            let reason = format!("because s3://{name} cannot be read: {failure}");
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets.insert(name.to_owned(), Err(reason.clone()));
            reason
        })?;
        Ok(content)
    }
}

async fn read_object(bucket: &Bucket, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |failure: BucketFailure| Failure::from(failure.to_string());
    if bucket.head(key).await.map_err(failed)?.is_none() {
        return Ok(None);
    }
    let url = bucket.presigned_get(key, &[], URL_EXPIRATION).await.map_err(failed)?;
    let request = http::Request::get(&url).body(SdkBody::empty())?;
    let response = runtime::https::connector()?.call(HttpRequest::try_from(request)?).await;
    let mut response = response.map_err(|error| with_causes(&error))?;
    if response.status().as_u16() != 200 {
        return Err(format!("status {}", response.status().as_u16()).into());
    }
    Ok(Some(response.take_body().collect().await?.to_bytes().to_vec()))
}

/// Returns the directory or bucket path in which the files of a location are. For
/// `mlflow-artifacts:` locations, it is below `destination`, which is given by an option.
fn place(directory: &str, destination: &str) -> String {
    match directory.strip_prefix("mlflow-artifacts:") {
        // A host in the location is that of the MLflow server, so it is left out.
        Some(rest) => {
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
                None => rest,
            };
            format!("{}/{}", destination.trim_end_matches('/'), path.trim_start_matches('/'))
        }
        None => directory.to_owned(),
    }
}

/// Returns the path of a location that is a path or a `file:` URI.
fn local_path(location: &str) -> Option<String> {
    match location.strip_prefix("file:") {
        Some(rest) => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            Some(percent_encoding::percent_decode_str(path).decode_utf8().ok()?.into_owned())
        }
        None => (!location.contains("://")).then(|| location.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_counts_if_it_is_of_the_trace() {
        let own = "s3://moved/1/traces/tr-1/artifacts";
        assert_eq!(SpanFile::artifact(Some(own), "/mlruns/1", "tr-1"), SpanFile::Artifact(own.to_owned()));
        let expected = SpanFile::Artifact("/mlruns/1/traces/tr-1/artifacts".to_owned());
        for other in [None, Some("/mlruns/1/traces/tr-2/artifacts"), Some("traces/tr-1/artifacts"), Some("/etc")] {
            assert_eq!(SpanFile::artifact(other, "/mlruns/1", "tr-1"), expected);
        }
    }

    #[test]
    fn proxied_artifacts_are_in_the_directory_of_the_server() {
        assert_eq!(place("mlflow-artifacts:/1/traces", "/data/"), "/data/1/traces");
        assert_eq!(place("mlflow-artifacts://host:5000/1", "s3://b/p"), "s3://b/p/1");
        assert_eq!(place("/data/1", "/x"), "/data/1");
        assert_eq!(local_path("file:///a%20b").as_deref(), Some("/a b"));
        assert_eq!(local_path("gs://b/c"), None);
    }
}
