//! Lookup of traces by client request ID, an ID that a client gave its own request. Uses a global
//! index, which is eventually consistent.

use key_schema::index::TraceOfClientRequest;
use key_schema::{IndexKey, Segment};
use mlflow_api::{ExperimentId, TraceId};
use table::{Query, Result, Table};

use crate::trace::StoredTrace;

/// Returns the index key under which a trace is found by its client request ID. An ID that is too
/// long for a key is hashed.
#[must_use]
pub fn client_request_entry(request: &str, experiment: ExperimentId, trace: &TraceId) -> IndexKey {
    TraceOfClientRequest::key(&request.into(), &experiment, trace)
}

/// Returns the traces of an experiment that the index lists for a client request ID, or `None` if
/// there are more than `most`. An index entry may be deleted some time after its trace has changed,
/// so callers have to check the result against the documents. Takes one request, which costs half a
/// read unit per 20 entries.
pub async fn traces_of_client_request(
    table: &Table,
    request: &str,
    experiment: ExperimentId,
    most: usize,
) -> Result<Option<Vec<TraceId>>> {
    let entries = TraceOfClientRequest::all(&request.into()).experiment(&experiment);
    let page = table.query_page(&Query::of(entries).limit(most.saturating_add(1))).await?;
    if page.items.len() > most || page.next.is_some() {
        return Ok(None);
    }
    Ok(Some(page.items.iter().filter_map(|item| Some(item.entry::<TraceOfClientRequest>()?.trace)).collect()))
}

/// Checks whether the index already contains a trace's entry for its client request ID. Takes one
/// request, which costs half a read unit. If the trace has no client request ID, takes no request
/// and returns `true`.
pub async fn is_found_by_client_request(table: &Table, trace: &StoredTrace) -> Result<bool> {
    let Some(request) = trace.client_request() else { return Ok(true) };
    let place = trace.id().text();
    let entries = TraceOfClientRequest::all(&request.into()).experiment(&trace.experiment());
    let page = table.query_page(&Query::of(entries.range().starting(&place).until(&place)).limit(1)).await?;
    Ok(!page.items.is_empty())
}
