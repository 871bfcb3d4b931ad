//! Trace ids in request paths.

use mlflow_api::{Request, Result, TraceId};

/// Returns the trace id in a path. In version 2 of the API, the parameter is named request id.
pub(crate) fn raw_trace_id(request: &Request) -> &str {
    match request.path_part("trace_id") {
        "" => request.path_part("request_id"),
        id => id,
    }
}

/// Parses the trace id in a path.
pub(crate) fn parse_trace_id(request: &Request) -> Result<TraceId> {
    TraceId::named(raw_trace_id(request))
}
