//! The spans of a block, in groups of consecutive traces. Each group is an item.

use key_schema::WideDigest;
use mlflow_api::TraceId;
use spans::Span;

use crate::archived_spans::{ArchivedGroups, ArchivedRange};
use crate::bytes::{ByteReader, put_bytes, put_count, put_number};

/// Spans of consecutive traces of a block. Several groups of a block may have the same spans, which
/// then contain the traces of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanGroup {
    /// Digest in the item's key. `None` if the spans are only stored with their traces.
    pub digest: Option<WideDigest>,
    /// Number of traces.
    pub traces: usize,
    /// Where the spans are in the archive. `None` if they are in an item.
    pub archived: Option<ArchivedRange>,
}

impl SpanGroup {
    /// Returns the digest of the spans if they are in an item.
    #[must_use]
    pub fn digest_of_item(&self) -> Option<WideDigest> {
        self.digest.filter(|_| self.archived.is_none())
    }
}

/// Encodes the list of a block's groups, newest first.
pub(crate) fn write(groups: &[SpanGroup]) -> Vec<u8> {
    let mut written = Vec::new();
    for group in groups {
        put_number(&mut written, (group.traces as u64) << 1 | u64::from(group.digest.is_some()));
        if let Some(WideDigest(digest)) = group.digest {
            written.extend_from_slice(&digest.to_be_bytes());
        }
    }
    written
}

/// Decodes the list of a block's groups, given the archived ones.
pub(crate) fn read(written: &[u8], archived: &ArchivedGroups) -> Option<Vec<SpanGroup>> {
    let mut reader = ByteReader(written);
    let mut groups = Vec::new();
    while !reader.is_empty() {
        let number = reader.number()?;
        let digest = match number & 1 {
            0 => None,
            _ => Some(WideDigest(u128::from_be_bytes(reader.take(16)?.try_into().ok()?))),
        };
        let archived = digest.and_then(|digest| archived.get(&digest)).copied();
        groups.push(SpanGroup { digest, traces: usize::try_from(number >> 1).ok()?, archived });
    }
    Some(groups)
}

/// Encodes the spans of a trace as a member of a group. `message` contains the spans.
pub(crate) fn packed(trace: &TraceId, message: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    put_bytes(&mut packed, trace.as_str().as_bytes());
    put_bytes(&mut packed, message);
    packed
}

/// Joins the encoded members of a group. Returns the digest of the joined content, and the content.
pub(crate) fn content(messages: &[Vec<u8>]) -> (WideDigest, Vec<u8>) {
    let mut content = Vec::new();
    put_count(&mut content, messages.len());
    for message in messages {
        content.extend_from_slice(message);
    }
    (WideDigest::of_bytes(&content), content)
}

/// Calls `make` for each wanted trace of a group with the trace, its encoded spans, and its decoded
/// spans. The spans of one trace at a time are decoded. Returns `None` if the group cannot be read.
pub(crate) fn of_traces<T>(
    content: &[u8],
    is_wanted: impl Fn(&TraceId) -> bool,
    make: impl Fn(&TraceId, &[u8], Vec<Span>) -> T,
) -> Option<Vec<(TraceId, T)>> {
    let mut reader = ByteReader(content);
    let mut found = Vec::new();
    for _ in 0..reader.count()? {
        let (trace, message) = (TraceId::parse(reader.text()?)?, reader.bytes()?);
        if is_wanted(&trace) {
            let wanted = make(&trace, message, spans::of_message(message).ok()?);
            found.push((trace, wanted));
        }
    }
    reader.is_empty().then_some(found)
}
