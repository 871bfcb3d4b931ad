//! The spans of a block: in groups of consecutive traces, each an item of its own.

use key_schema::WideDigest;
use mlflow_api::TraceId;
use spans::Span;

use crate::bytes::{Reader, put_bytes, put_count, put_number};

/// Spans of some consecutive traces of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The digest in the item's key; `None` where the spans are only with their traces.
    pub digest: Option<WideDigest>,
    /// Of how many traces.
    pub traces: usize,
}

/// Which groups a block has, newest first.
pub(crate) fn write(groups: &[Group]) -> Vec<u8> {
    let mut written = Vec::new();
    for group in groups {
        put_number(&mut written, (group.traces as u64) << 1 | u64::from(group.digest.is_some()));
        if let Some(WideDigest(digest)) = group.digest {
            written.extend_from_slice(&digest.to_be_bytes());
        }
    }
    written
}

pub(crate) fn read(written: &[u8]) -> Option<Vec<Group>> {
    let mut reader = Reader(written);
    let mut groups = Vec::new();
    while !reader.is_empty() {
        let number = reader.number()?;
        let digest = match number & 1 {
            0 => None,
            _ => Some(WideDigest(u128::from_be_bytes(reader.take(16)?.try_into().ok()?))),
        };
        groups.push(Group { digest, traces: usize::try_from(number >> 1).ok()? });
    }
    Some(groups)
}

/// The spans of one trace in the form of a group, from their message.
pub(crate) fn packed(trace: &TraceId, message: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    put_bytes(&mut packed, trace.as_str().as_bytes());
    put_bytes(&mut packed, message);
    packed
}

/// A group's content of the messages of its traces, and its digest.
pub(crate) fn content(messages: &[Vec<u8>]) -> (WideDigest, Vec<u8>) {
    let mut content = Vec::new();
    put_count(&mut content, messages.len());
    for message in messages {
        content.extend_from_slice(message);
    }
    (WideDigest::of_bytes(&content), content)
}

/// Calls `make` with the spans of each wanted trace of a group, and with their message, one trace
/// after the other. `None` if the group cannot be read.
pub(crate) fn of_traces<T>(
    content: &[u8],
    is_wanted: impl Fn(&TraceId) -> bool,
    make: impl Fn(&TraceId, &[u8], Vec<Span>) -> T,
) -> Option<Vec<(TraceId, T)>> {
    let mut reader = Reader(content);
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
