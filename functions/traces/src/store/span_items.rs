//! Storage of spans. Each export of a trace's spans is one item, or several parts, and is never
//! rewritten. The items are in a partition of the experiment to which the spans were sent, so an
//! export that names a trace of another experiment cannot affect that trace's spans.

use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use entities::now_ms;
use key_schema::{Ordinal, WideDigest, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::{Span, TraceUsage};
use table::{Item, bytes, number};
use trace_blocks::{LargeTraceTurn, TraceSpans, read_trace_spans};

use super::store::Store;

/// Maximum size in bytes of one part. An item may have 400 KB, including its key and names.
const MAX_PART_BYTES: usize = 380 << 10;

/// Returns the items of one export of a trace's spans. If `adds_only` is set, because the sender
/// may only add to traces, spans of other exports take precedence over the spans with equal ids in
/// this export.
pub(super) fn items(experiment: ExperimentId, trace: &TraceId, spans: &[Span], adds_only: bool) -> Result<Vec<Item>> {
    let packed = spans::pack(spans, MAX_PART_BYTES);
    // The digest covers the packed bytes. If another version packs the spans differently, the
    // result is therefore a separate export. The prefix ensures that the keys of exports that only
    // add never collide with those of other exports.
    let prefix: &[u8] = if adds_only { b"adds only" } else { b"" };
    let digest = WideDigest::of_bytes(&[prefix, &packed.parts.concat()].concat());
    let parts = u32::try_from(packed.parts.len()).map_err(Error::internal)?;
    let arrived = number(now_ms());
    let item = |(part, content): (u32, Vec<u8>)| {
        let item = Item::new(rows::TraceSpans::key(&experiment, trace, &digest, &Ordinal(part)))
            .with(ARRIVED, arrived.clone())
            .with(PARTS, number(parts))
            .with(CONTENT, bytes(content));
        if adds_only { item.with(ADDS_ONLY, number(1)) } else { item }
    };
    Ok((0..).zip(packed.parts).map(item).collect())
}

impl Store {
    /// Returns all spans of a trace in this experiment that have arrived: roots first, then by
    /// start time. A large trace waits until the process has no other spans in memory. Takes one
    /// request, and one more per MB. Costs a read unit per 4 KB.
    ///
    /// # Errors
    /// Returns `BAD_REQUEST` if the spans exceed the maximum size of a response, and
    /// `RESOURCE_EXHAUSTED` if the trace would have to wait for too long.
    pub async fn trace_spans_in(
        &self,
        experiment: ExperimentId,
        trace: &TraceId,
        turn: &LargeTraceTurn,
    ) -> Result<TraceSpans> {
        read_trace_spans(&self.table, experiment, trace, turn).await
    }

    /// Returns the tokens and cost of all spans of a trace that have arrived, or `None` if there
    /// are too many spans to read. Takes one request, and one more per MB.
    pub(super) async fn trace_usage(
        &self,
        experiment: ExperimentId,
        trace: &TraceId,
        turn: &LargeTraceTurn,
    ) -> Result<Option<TraceUsage>> {
        match self.trace_spans_in(experiment, trace, turn).await {
            Err(error) if error.code == ErrorCode::BadRequest => Ok(None),
            Err(error) => Err(error),
            Ok(all) => {
                let bytes = spans::size(&all);
                let usage = move || Ok(Some(spans::summarize(&all)?.usage));
                runtime::clock::aside_from(bytes, usage).await.map_err(Error::internal)?
            }
        }
    }
}
