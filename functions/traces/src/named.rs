//! Trace ids in request paths.

use mlflow_api::{Request, Result, TraceId};

/// Returns the trace id in a path. Version 2 of the API calls it a request id.
pub(crate) fn text(request: &Request) -> &str {
    match request.path_part("trace_id") {
        "" => request.path_part("request_id"),
        id => id,
    }
}

/// Parses the trace id in a path.
pub(crate) fn trace(request: &Request) -> Result<TraceId> {
    TraceId::named(text(request))
}
