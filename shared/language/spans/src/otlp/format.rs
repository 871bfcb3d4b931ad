//! The format of an export, and the response to a stored export in the same format.

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::json;

use crate::export_error::ExportError;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Protobuf.
    Protobuf,
    /// Protobuf's JSON.
    Json,
}

impl ExportFormat {
    /// Returns the format that a request names. Any other format is rejected.
    pub fn of(content_type: Option<&str>) -> Result<Self, ExportError> {
        let given = content_type.unwrap_or("None");
        let media_type = given.split(';').next().unwrap_or_default().trim();
        let named = [Self::Protobuf, Self::Json].into_iter().find(|format| format.media_type() == media_type);
        named.ok_or_else(|| {
            let [protobuf, json] = [Self::Protobuf, Self::Json].map(Self::media_type);
            ExportError::new(400, format!("Invalid Content-Type: {given}. Expected: {protobuf} or {json}"))
        })
    }

    /// Returns the format's media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    /// Returns the response for a stored export: all spans were accepted, or some were rejected,
    /// with their number and the reason.
    #[must_use]
    pub fn answer(self, rejected: Option<(usize, &str)>) -> Vec<u8> {
        let partial_success = rejected.map(|(spans, why)| ExportTracePartialSuccess {
            rejected_spans: i64::try_from(spans).unwrap_or(i64::MAX),
            error_message: why.to_owned(),
        });
        match (self, partial_success) {
            (Self::Protobuf, partial_success) => ExportTraceServiceResponse { partial_success }.encode_to_vec(),
            (Self::Json, None) => b"{}".to_vec(),
            // A 64-bit integer is a string in protobuf's JSON.
            (Self::Json, Some(partial)) => json!({ "partialSuccess": {
                "rejectedSpans": partial.rejected_spans.to_string(),
                "errorMessage": partial.error_message,
            } })
            .to_string()
            .into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_as_its_request() {
        let json = ExportFormat::of(Some("application/json; charset=utf-8")).unwrap();
        assert_eq!(json.answer(None), b"{}");
        let partial = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#;
        assert_eq!(json.answer(Some((3, "no"))), partial);
        let protobuf = ExportFormat::of(Some("application/x-protobuf")).unwrap();
        assert_eq!(protobuf.answer(None), b"");
        assert_eq!(protobuf.answer(Some((3, "no"))), b"\x0a\x06\x08\x03\x12\x02no");
        assert!([None, Some("text/plain"), Some("")].into_iter().all(|other| ExportFormat::of(other).is_err()));
    }
}
