//! A span as a search sees it.

use std::borrow::Cow;

use search::trace::SpanFields;
use search::trace::metrics::SpanFigures;
use spans::Span;

/// The attribute that holds a span's type, as JSON.
const TYPE: &str = "mlflow.spanType";

/// A span of a trace.
pub(super) struct SeenSpan<'a> {
    span: &'a Span,
    kind: Option<String>,
}

impl<'a> SeenSpan<'a> {
    pub(super) fn of(span: &'a Span) -> Self {
        let kind =
            spans::attribute(span, TYPE).map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()));
        Self { span, kind }
    }
}

impl SpanFields for SeenSpan<'_> {
    fn name(&self) -> Option<&str> {
        Some(&self.span.name)
    }

    fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    fn status(&self) -> &str {
        match self.span.status.as_ref().map_or(0, |status| status.code) {
            1 => "OK",
            2 => "ERROR",
            _ => "UNSET",
        }
    }

    fn start(&self) -> i64 {
        i64::try_from(self.span.start_time_unix_nano).unwrap_or(i64::MAX)
    }

    fn content(&self) -> Cow<'_, str> {
        Cow::Owned(spans::artifact_json(self.span))
    }
}

impl SpanFigures for SeenSpan<'_> {
    fn end(&self) -> Option<i64> {
        i64::try_from(self.span.end_time_unix_nano).ok().filter(|end| *end > 0)
    }

    fn attribute(&self, key: &str) -> Option<&str> {
        spans::attribute(self.span, key)
    }
}
