//! The fields of a span that searches use.

use std::borrow::Cow;

use search::trace::SpanFields;
use search::trace::metrics::{SpanCost, SpanMetricFields};
use spans::{Span, SpanColumns};

/// A span of a trace.
pub(super) struct SearchableSpan<'a> {
    span: &'a Span,
    facts: SpanColumns<'a>,
}

impl<'a> SearchableSpan<'a> {
    pub(super) fn of(span: &'a Span) -> Self {
        Self { span, facts: spans::facts(span) }
    }
}

impl SpanFields for SearchableSpan<'_> {
    fn name(&self) -> Option<&str> {
        Some(self.facts.name)
    }

    fn kind(&self) -> Option<&str> {
        self.facts.span_type.as_deref()
    }

    fn status(&self) -> &str {
        self.facts.status
    }

    fn start(&self) -> i64 {
        i64::try_from(self.facts.start_ns).unwrap_or(i64::MAX)
    }

    fn content(&self) -> Cow<'_, str> {
        // The content of archived spans is not in the table. In MLflow's database, it is empty.
        if spans::is_archived(self.span) {
            return Cow::Borrowed("");
        }
        Cow::Owned(spans::artifact_json(self.span))
    }
}

impl SpanMetricFields for SearchableSpan<'_> {
    fn end(&self) -> Option<i64> {
        self.facts.end_ns.and_then(|end| i64::try_from(end).ok())
    }

    fn model(&self) -> Option<&str> {
        self.facts.model.as_deref()
    }

    fn provider(&self) -> Option<&str> {
        self.facts.provider.as_deref()
    }

    fn cost(&self, kind: SpanCost) -> Option<f64> {
        let [input, output, total] = self.facts.cost;
        match kind {
            SpanCost::Input => input,
            SpanCost::Output => output,
            SpanCost::Total => total,
        }
    }
}
