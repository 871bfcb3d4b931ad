//! How paths name traces.

use mlflow_api::{Request, Result, TraceId};

/// The id of a trace in a path, which version 2 calls that of a request.
pub(crate) fn text(request: &Request) -> &str {
    match request.path_part("trace_id") {
        "" => request.path_part("request_id"),
        id => id,
    }
}

/// The trace that a path names.
pub(crate) fn trace(request: &Request) -> Result<TraceId> {
    TraceId::named(text(request))
}
