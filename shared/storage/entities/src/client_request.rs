//! Traces by the ids that clients gave their requests: an index, which is eventually consistent.

use key_schema::index::TraceOfClientRequest;
use key_schema::{IndexKey, Segment};
use mlflow_api::{ExperimentId, TraceId};
use table::{Query, Result, Table};

use crate::trace::StoredTrace;

/// The entry of a trace of a client's request. It fits whatever the id is: of one that is too long, the key has a hash.
#[must_use]
pub fn client_request_entry(request: &str, experiment: ExperimentId, trace: &TraceId) -> IndexKey {
    TraceOfClientRequest::key(&request.into(), &experiment, trace)
}

/// The traces of an experiment that the index has for a client's request; `None` where there are
/// more than `most`. They have to be checked against the documents: entries are deleted later than
/// traces change. One request; half a read unit per 20 entries.
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

/// Whether the index has the entry of a trace as its document is. No request for a trace without a client's id, one of half a read unit for any other.
pub async fn is_found_by_client_request(table: &Table, trace: &StoredTrace) -> Result<bool> {
    let Some(request) = trace.client_request() else { return Ok(true) };
    let place = trace.id().text();
    let entries = TraceOfClientRequest::all(&request.into()).experiment(&trace.experiment());
    let page = table.query_page(&Query::of(entries.range().starting(&place).until(&place)).limit(1)).await?;
    Ok(!page.items.is_empty())
}
