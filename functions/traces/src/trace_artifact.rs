//! `get-trace-artifact`: returns an attachment of a trace, or the trace's spans in the format of
//! the file that the user interface reads.

use access::{Needs, Scope, Target};
use artifact_access::send_file;
use artifact_store::ArtifactPath;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use mlflow_api::traces::TraceInfo;
use mlflow_api::{Error, ErrorCode, Request, Result, TraceId};
use service::{Attachment, Endpoint, EndpointResponse};

use crate::read::trace_not_found;
use crate::store::{Store, WholeTrace, has_readable_spans};

/// Name of the file with a trace's spans. Clients that do not send their spans to the server upload
/// it as an artifact.
const SPANS_FILE: &str = "traces.json";

pub(crate) struct Get {
    trace: TraceId,
    attachment: Option<ArtifactPath>,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let id = request.argument("request_id").filter(|id| !id.is_empty()).ok_or_else(|| {
            Error::new(ErrorCode::BadRequest, "Request must include the \"request_id\" query parameter.")
        })?;
        let path = request.argument("path").filter(|path| !path.is_empty());
        let attachment = path.map(|path| ArtifactPath::of_file(&format!("attachments/{path}"))).transpose()?;
        Ok(Self { trace: TraceId::parse(id).ok_or_else(|| trace_not_found(id))?, attachment })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Trace(self.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let missing = || trace_not_found(self.trace.as_str());
        let trace = scope.known_trace(&self.trace)?.ok_or_else(missing)?;
        let trace = store.trace_with_block(&trace).await?.ok_or_else(missing)?;
        let info = trace.document.info()?;
        if let Some(attachment) = self.attachment {
            return send_attachment(store, &info, &attachment).await;
        }
        if has_readable_spans(&info) {
            let trace = store.trace_get(&trace, true).await?;
            let text = runtime::clock::aside_from(spans::size(&trace.spans), move || text(&trace)).await;
            return Ok(EndpointResponse::Attachment(file(text.map_err(Error::internal)??)));
        }
        send_attachment(store, &info, &ArtifactPath::of_file(SPANS_FILE)?).await
    }
}

/// Returns a file of the trace's artifacts. The artifact location is derived from the experiment,
/// because the trace's own tag is client-controlled.
async fn send_attachment(store: &Store, info: &TraceInfo, path: &ArtifactPath) -> Result<EndpointResponse> {
    let location = store.trace_artifact_location(info).await?;
    send_file(&store.artifacts().at(&location)?, path).await
}

/// Returns the spans of a trace as the content of a spans file. Fails if the content exceeds the
/// maximum size of a response.
fn text(trace: &WholeTrace) -> Result<String> {
    let mut text = String::from("{\"spans\":[");
    for (place, span) in trace.spans.iter().enumerate() {
        text.push_str(if place > 0 { "," } else { "" });
        text.push_str(&spans::artifact_json(span));
        if text.len() > MAX_JSON_BYTES {
            return Err(too_long("The file with the spans", MAX_JSON_BYTES));
        }
    }
    text.push_str("]}");
    Ok(text)
}

/// Returns the content of an artifact file as a response that browsers save rather than display.
fn file(text: String) -> Attachment {
    let content = Bytes::from(text);
    let length = content.len() as u64;
    Attachment::new(SPANS_FILE, "text/plain", length, String::new(), move |range| {
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(content.len());
        let part = content.slice(at(range.start)..at(range.end));
        stream::iter([Ok(part)]).boxed()
    })
}
