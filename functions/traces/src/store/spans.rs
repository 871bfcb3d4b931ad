//! Spans in the table: an item, or several parts, for each export, which nothing rewrites. They are
//! in a partition of the experiment that sends them. So an export that names a trace of another
//! experiment cannot touch that trace's spans.

use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use entities::now_ms;
use key_schema::{Ordinal, WideDigest, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::{Span, Usage};
use table::{Item, bytes, number};
use trace_blocks::{TraceSpans, Turn, read_trace_spans};

use super::store::Store;

/// Bytes in one part: an item has room for 400 KB, its key and names included.
const PART: usize = 380 << 10;

/// The items of one export of a trace's spans. If the sender may only add, the spans of other
/// exports count instead of those with the same ids.
pub(super) fn items(experiment: ExperimentId, trace: &TraceId, spans: &[Span], adds_only: bool) -> Result<Vec<Item>> {
    let packed = spans::pack(spans, PART);
    // Of the bytes: parts that another version has packed otherwise are those of another export.
    // An export that only adds never has the key of one that does not.
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
    /// All spans of a trace of this experiment that have come, roots first, then by their start. Those of a large trace wait until the process has
    /// no others in memory. One request, one more per MB; a read unit per 4 KB.
    ///
    /// # Errors
    /// `BAD_REQUEST`, where they are too many for any answer; `RESOURCE_EXHAUSTED`, where they would wait for too long.
    pub async fn trace_spans_in(&self, experiment: ExperimentId, trace: &TraceId, turn: &Turn) -> Result<TraceSpans> {
        read_trace_spans(&self.table, experiment, trace, turn).await
    }

    /// Tokens and cost of all spans of a trace that have come; nothing where they are too many to be read. One request, one more per MB.
    pub(super) async fn trace_usage(
        &self,
        experiment: ExperimentId,
        trace: &TraceId,
        turn: &Turn,
    ) -> Result<Option<Usage>> {
        match self.trace_spans_in(experiment, trace, turn).await {
            Err(error) if error.code == ErrorCode::BadRequest => Ok(None),
            Err(error) => Err(error),
            Ok(all) => {
                let bytes = spans::size(&all);
                let usage = move || Ok(Some(spans::summarize(&all)?.usage));
                clock::aside_from(bytes, usage).await.map_err(Error::internal)?
            }
        }
    }
}
