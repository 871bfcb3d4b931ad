//! Spans as bytes for items of the table.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::LazyLock;

use indexmap::IndexMap;
use opentelemetry_proto::tonic::trace::v1::ScopeSpans;
use prost::Message;
use prost::encoding::message::{encode_repeated, encoded_len_repeated};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::Span;

/// Most bytes before packing: a little more than the largest readable export of a trace.
pub(crate) const LARGEST: usize = 64 << 20;

/// zstd's default. Higher levels gain some percent on an export of some KB, and take several times as long.
const LEVEL: i32 = 3;

/// The first byte of packed spans. It names the dictionary that they were packed with.
const FORMAT: u8 = 1;

/// The number of the field of a `ScopeSpans` that has the spans.
const SPANS: u32 = 2;

/// A sample of spans of the usual SDKs; a small export becomes a quarter smaller with it. It is
/// never changed, as spans that were packed with it cannot be read without it. Another dictionary
/// gets a format of its own. It is the message made from `tests/fixtures/typical.json`.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

static ENCODING: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODING: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// The spans of one export, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The compressed bytes, cut into parts; nearly always one. They belong together in this order.
    pub parts: Vec<Vec<u8>>,
}

/// Packs the spans of one export into parts of at most so many bytes.
#[must_use]
pub fn pack(spans: &[Span], limit: usize) -> Packed {
    let message = message(spans);
    // Compressing in memory does not fail.
    let packed = compressed(&message).unwrap_or_default();
    Packed { parts: packed.chunks(limit.max(1)).map(<[u8]>::to_vec).collect() }
}

/// Bytes of spans before they are compressed.
#[must_use]
pub fn size(spans: &[Span]) -> usize {
    encoded_len_repeated(SPANS, spans)
}

/// Spans as they are before they are compressed.
#[must_use]
pub fn message(spans: &[Span]) -> Vec<u8> {
    // A `ScopeSpans` with nothing else in it; making one would need a copy of the spans.
    let mut message = Vec::with_capacity(size(spans));
    encode_repeated(SPANS, spans, &mut message);
    message
}

/// The spans of a [`message`].
pub fn of_message(message: &[u8]) -> Result<Vec<Span>, Unreadable> {
    ScopeSpans::decode(message).map(|scope| scope.spans).map_err(|_| Unreadable)
}

fn compressed(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::with_prepared_dictionary(vec![FORMAT], &ENCODING)?;
    encoder.set_pledged_src_size(Some(message.len() as u64))?;
    encoder.write_all(message)?;
    encoder.finish()
}

/// Bytes that [`pack`] did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl fmt::Display for Unreadable {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("packed spans cannot be read")
    }
}

impl std::error::Error for Unreadable {}

/// The spans of one export, of its parts joined in their order.
pub fn unpack(joined: &[u8]) -> Result<Vec<Span>, Unreadable> {
    unpack_within(joined, &mut LARGEST.clone())?.ok_or(Unreadable)
}

/// The same, as long as they take no more than `left` bytes, and `None` if they take more. Their
/// size is subtracted from `left`.
pub fn unpack_within(joined: &[u8], left: &mut usize) -> Result<Option<Vec<Span>>, Unreadable> {
    let mut message = Vec::new();
    let frame = joined.strip_prefix(&[FORMAT]).ok_or(Unreadable)?;
    let decoder = Decoder::with_prepared_dictionary(frame, &DECODING).map_err(|_| Unreadable)?;
    let read = decoder.take(*left as u64 + 1).read_to_end(&mut message).map_err(|_| Unreadable)?;
    let Some(rest) = left.checked_sub(read) else { return Ok(None) };
    *left = rest;
    of_message(&message).map(Some)
}

/// All spans of a trace, from its exports in the order in which they came. Of several spans with
/// one id, the last counts. As in MLflow, roots come first, then spans that began earlier, then
/// those that came earlier.
#[must_use]
pub fn join(exports: impl IntoIterator<Item = Vec<Span>>) -> Vec<Span> {
    let latest: IndexMap<Vec<u8>, Span> =
        exports.into_iter().flatten().map(|span| (span.span_id.clone(), span)).collect();
    let mut spans: Vec<Span> = latest.into_values().collect();
    spans.sort_by_key(|span| (!span.parent_span_id.is_empty(), span.start_time_unix_nano));
    spans
}
