//! The files `traces.pb`, to which the spans of traces are archived as MLflow does it.

use artifact_store::{ArtifactPath, ArtifactStore, Location};
use entities::attributes::TAGS;
use entities::{StoredTrace, entry_name};
use mlflow_api::traces::{ARCHIVE_LOCATION_TAG, ARCHIVE_REPO, SPANS_LOCATION_TAG};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId, location};
use spans::Span;

use crate::trace_spans::{LargeTraceTurn, TraceSpans};

/// Name of the file.
const FILE_NAME: &str = "traces.pb";
/// Maximum size of a file that is read while other traces are in memory.
const LARGE_FILE_BYTES: usize = 1 << 20;
/// Maximum size of a file that is read. No trace that can be read from the table has a larger one.
const MAX_FILE_BYTES: usize = 96 << 20;

/// The file of a trace.
#[derive(Clone)]
pub struct TraceFile {
    uri: String,
    directory: Location,
    name: ArtifactPath,
}

/// Returns the value of a tag of a trace.
#[must_use]
pub fn trace_tag<'a>(trace: &'a StoredTrace, key: &str) -> Option<&'a str> {
    trace.item().map(TAGS)?.get(entry_name(key).as_ref())?.as_s().ok().map(String::as_str)
}

/// Checks whether the spans of a trace are in a file `traces.pb`.
#[must_use]
pub fn is_in_file(trace: &StoredTrace) -> bool {
    trace_tag(trace, SPANS_LOCATION_TAG) == Some(ARCHIVE_REPO)
}

impl TraceFile {
    /// Returns the file of a trace that is to be archived below a location. Returns `None` if the
    /// trace's id cannot be part of a path.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` if the artifact store does not support the location.
    pub fn below(artifacts: &ArtifactStore, archive: &str, trace: &StoredTrace) -> Result<Option<Self>> {
        let below = directory_of(trace.experiment(), trace.id());
        let Ok(path) = ArtifactPath::to_write(&below) else { return Ok(None) };
        let directory = artifacts.at(archive)?.below(&path);
        let uri = location::append(archive, &below);
        Ok((path.to_string() == below).then_some(Self { uri, directory, name: ArtifactPath::of_file(FILE_NAME)? }))
    }

    /// Returns the file of an archived trace. Returns `None` if the trace is not archived to a file.
    ///
    /// # Errors
    /// `INVALID_STATE` if the tag with the location is missing or malformed, and `NOT_IMPLEMENTED` if
    /// the artifact store does not support the location.
    pub fn of(artifacts: &ArtifactStore, trace: &StoredTrace) -> Result<Option<Self>> {
        if !is_in_file(trace) {
            return Ok(None);
        }
        let uri = trace_tag(trace, ARCHIVE_LOCATION_TAG);
        // A location that the server has not written itself could be a file of another trace.
        let uri = uri.filter(|uri| uri.ends_with(&format!("/{}", directory_of(trace.experiment(), trace.id()))));
        let uri = uri.ok_or_else(|| corrupted(trace.id()))?;
        let directory = artifacts.at(uri)?;
        Ok(Some(Self { uri: uri.to_owned(), directory, name: ArtifactPath::of_file(FILE_NAME)? }))
    }

    /// Returns the URI of the file's directory, which is the value of the tag
    /// `mlflow.trace.archiveLocation`.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Writes or replaces the file. Takes one request, or one per 8 MB.
    ///
    /// # Errors
    /// The errors of the artifact store.
    pub async fn write(&self, content: Vec<u8>) -> Result<()> {
        let chunks = futures::stream::iter([Ok(content.into())]);
        self.directory.write(&self.name, Box::pin(chunks)).await.map(drop)
    }

    /// Deletes the file. Deleting a file that does not exist is a no-op. Takes two requests.
    ///
    /// # Errors
    /// The errors of the artifact store.
    pub async fn delete(&self) -> Result<()> {
        self.directory.delete(&self.name).await
    }
}

/// Reads the spans of an archived trace from its file: roots first, then by start time. As in MLflow,
/// a trace whose file is missing has no spans. A file of more than 1 MB is read while the process has
/// no other large trace in memory. Takes one request, and one more per 16 MB.
///
/// # Errors
/// `INVALID_STATE` if the file cannot be parsed, `RESOURCE_EXHAUSTED` if reading it would wait for too
/// long, and the errors of [`TraceFile::of`] and of the artifact store.
pub async fn read_archived_spans(
    artifacts: &ArtifactStore,
    trace: &StoredTrace,
    turn: &LargeTraceTurn,
) -> Result<TraceSpans> {
    let Some(file) = TraceFile::of(artifacts, trace)? else { return Ok(TraceSpans::default()) };
    let (read, alone) = match file.directory.read(&file.name, LARGE_FILE_BYTES).await {
        // The file is larger.
        Err(error) if error.code == ErrorCode::InvalidParameterValue => {
            let alone = turn.alone().await?;
            (file.directory.read(&file.name, MAX_FILE_BYTES).await?, Some(alone))
        }
        read => (read?, None),
    };
    let Some(content) = read else {
        tracing::warn!(trace = %trace.id(), "the file of an archived trace is missing, and the trace is returned without spans");
        return Ok(TraceSpans::default());
    };
    let decoded = runtime::clock::aside_from(content.len(), move || spans::of_archive(&content)).await;
    let spans: Vec<Span> = decoded.map_err(Error::internal)?.ok_or_else(|| corrupted(trace.id()))?;
    Ok(TraceSpans::held(spans, alone))
}

/// Returns the directory of a trace's file below an archive location.
fn directory_of(experiment: ExperimentId, trace: &TraceId) -> String {
    format!("{experiment}/traces/{trace}/artifacts")
}

fn corrupted(trace: &TraceId) -> Error {
    Error::new(ErrorCode::InvalidState, format!("Trace data is corrupted for request_id={trace}"))
}
