//! Encoding of spans as bytes for items of the table.

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

/// Maximum number of bytes before compression. It is slightly more than the size of the largest
/// export of a trace that is accepted.
pub(crate) const MAX_UNPACKED_BYTES: usize = 64 << 20;

/// Compression level, zstd's default. Higher levels make an export of some KB only a few percent
/// smaller, and take several times as long.
const COMPRESSION_LEVEL: i32 = 3;

/// First byte of packed spans. It identifies the dictionary that they were packed with.
const FORMAT: u8 = 1;

/// Field number of the spans in a `ScopeSpans`.
const SPANS_FIELD: u32 = 2;

/// Compression dictionary: a sample of spans of common SDKs, which makes a small export a quarter
/// smaller. It must never change, because spans that were packed with it cannot be read without
/// it. A new dictionary requires a new format. The sample is the message created from
/// `tests/fixtures/typical.json`.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

static ENCODER_DICTIONARY: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, COMPRESSION_LEVEL));
static DECODER_DICTIONARY: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// The compressed spans of one export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedExport {
    /// Compressed bytes, split into parts in this order. There is nearly always a single part.
    pub parts: Vec<Vec<u8>>,
}

/// Packs the spans of one export into parts of at most `limit` bytes.
#[must_use]
pub fn pack(spans: &[Span], limit: usize) -> PackedExport {
    let message = message(spans);
    // Compressing in memory cannot fail.
    let packed = compressed(&message).unwrap_or_default();
    PackedExport { parts: packed.chunks(limit.max(1)).map(<[u8]>::to_vec).collect() }
}

/// Returns the size of spans in bytes before compression.
#[must_use]
pub fn size(spans: &[Span]) -> usize {
    encoded_len_repeated(SPANS_FIELD, spans)
}

/// Encodes spans as a message, which is the form that is then compressed.
#[must_use]
pub fn message(spans: &[Span]) -> Vec<u8> {
    // Writes a `ScopeSpans` with no other fields. Creating the struct would require a copy of the
    // spans.
    let mut message = Vec::with_capacity(size(spans));
    encode_repeated(SPANS_FIELD, spans, &mut message);
    message
}

/// Decodes the spans of a [`message`].
pub fn of_message(message: &[u8]) -> Result<Vec<Span>, UnpackError> {
    ScopeSpans::decode(message).map(|scope| scope.spans).map_err(|_| UnpackError)
}

fn compressed(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::with_prepared_dictionary(vec![FORMAT], &ENCODER_DICTIONARY)?;
    encoder.set_pledged_src_size(Some(message.len() as u64))?;
    encoder.write_all(message)?;
    encoder.finish()
}

/// Error for bytes that were not written by [`pack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackError;

impl fmt::Display for UnpackError {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("packed spans cannot be read")
    }
}

impl std::error::Error for UnpackError {}

/// Unpacks the spans of one export from its joined parts.
pub fn unpack(joined: &[u8]) -> Result<Vec<Span>, UnpackError> {
    unpack_within(joined, &mut MAX_UNPACKED_BYTES.clone())?.ok_or(UnpackError)
}

/// Unpacks the spans of one export if they take at most `left` bytes, and subtracts their size from
/// `left`. Returns `None` if they take more.
pub fn unpack_within(joined: &[u8], left: &mut usize) -> Result<Option<Vec<Span>>, UnpackError> {
    let mut message = Vec::new();
    let frame = joined.strip_prefix(&[FORMAT]).ok_or(UnpackError)?;
    let decoder = Decoder::with_prepared_dictionary(frame, &DECODER_DICTIONARY).map_err(|_| UnpackError)?;
    let read = decoder.take(*left as u64 + 1).read_to_end(&mut message).map_err(|_| UnpackError)?;
    let Some(rest) = left.checked_sub(read) else { return Ok(None) };
    *left = rest;
    of_message(&message).map(Some)
}

/// Joins the exports of a trace, given in order of arrival, and returns all its spans. If several
/// spans have the same ID, the last one is kept. As in MLflow, roots come first. Apart from that,
/// spans are ordered by start time and then by arrival.
#[must_use]
pub fn join(exports: impl IntoIterator<Item = Vec<Span>>) -> Vec<Span> {
    let latest: IndexMap<Vec<u8>, Span> =
        exports.into_iter().flatten().map(|span| (span.span_id.clone(), span)).collect();
    let mut spans: Vec<Span> = latest.into_values().collect();
    spans.sort_by_key(|span| (!span.parent_span_id.is_empty(), span.start_time_unix_nano));
    spans
}
