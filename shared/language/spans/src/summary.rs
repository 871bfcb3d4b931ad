//! Facts about a trace that MLflow's store derives from its spans when it logs them.

use indexmap::IndexMap;
use mlflow_api::{Json, Result, limits};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use crate::Span;
use crate::attributes::{text, text_of, value_of};
use crate::preview::preview;
use crate::translate::keys;
use crate::usage::TraceUsage;
use crate::values::decoded;

/// Maximum number of characters in a session's ID.
const MAX_SESSION_LENGTH: usize = 250;
/// Maximum number of characters in a trace's name.
const MAX_TRACE_NAME_LENGTH: usize = 4096;
/// Prefix of the root's attributes that are tags of the trace.
const TAG_PREFIX: &str = "mlflow.traceTag.";
/// The tag with the trace's name.
const NAME_TAG: &str = "mlflow.traceName";

/// Facts about a trace, derived from its spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    /// Start time of the earliest span, in milliseconds since 1970.
    pub start_ms: i64,
    /// End time of the last span to end. `None` if no span has ended.
    pub end_ms: Option<i64>,
    /// Number of spans.
    pub spans: usize,
    /// Facts of the root, if it is among the spans.
    pub root: Option<RootSpan>,
    /// The session that the trace belongs to.
    pub session: Option<String>,
    /// The user on whose behalf the trace ran.
    pub user: Option<String>,
    /// Name of the trace, if the root has one.
    pub trace_name: Option<String>,
    /// Tags of the root. They take precedence over those of the sender's resource.
    pub tags: Vec<(String, String)>,
    /// Tokens and cost.
    pub usage: TraceUsage,
}

/// The facts of a trace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSpan {
    /// Name of the span.
    pub name: String,
    /// Outcome of the trace.
    pub state: TraceOutcome,
    /// Preview of the input.
    pub request_preview: Option<String>,
    /// Preview of the output.
    pub response_preview: Option<String>,
}

/// The outcome of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOutcome {
    /// Success.
    Ok,
    /// Failure.
    Error,
}

impl TraceOutcome {
    /// Returns MLflow's word for the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Error => "ERROR",
        }
    }

    fn of(span: &Span) -> Self {
        let failed = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        if failed { Self::Error } else { Self::Ok }
    }
}

/// Summarizes the spans of one export, or all spans of a trace. Returns MLflow's error if the
/// session ID or the trace name is too long. Nothing of the export may be stored in that case.
pub fn summarize(spans: &[Span]) -> Result<TraceSummary> {
    let start = spans.iter().map(|span| span.start_time_unix_nano).min().unwrap_or_default();
    let end = spans.iter().map(|span| span.end_time_unix_nano).max().filter(|end| milliseconds(*end) > 0);
    let mut summary = TraceSummary {
        start_ms: milliseconds(start),
        end_ms: end.map(milliseconds),
        spans: spans.len(),
        root: None,
        session: None,
        user: None,
        trace_name: None,
        tags: Vec::new(),
        usage: TraceUsage::default(),
    };
    // The tags of all root spans are collected in a map, because a trace can have many thousands of
    // roots.
    let mut tags = IndexMap::new();
    for span in spans {
        summary.usage.add(span);
        if summary.session.is_none() {
            let session = ["session.id", "gen_ai.conversation.id"].into_iter().find_map(|key| text_of(span, key));
            if let Some(session) = &session {
                limits::at_most("Session ID", MAX_SESSION_LENGTH, session)?;
            }
            summary.session = session;
        }
        if summary.user.is_none() {
            summary.user = text_of(span, "user.id");
        }
        if span.parent_span_id.is_empty() {
            summary.take_root(span, &mut tags)?;
        }
    }
    summary.tags = tags.into_iter().collect();
    // Only the first session and the first user are used. If one of them is empty, the trace has
    // none.
    summary.session = summary.session.filter(|session| !session.is_empty());
    summary.user = summary.user.filter(|user| !user.is_empty());
    Ok(summary)
}

impl TraceSummary {
    /// Adds the facts of a root. If there are several roots, the first one determines the state,
    /// and the last one determines everything else.
    fn take_root(&mut self, span: &Span, tags: &mut IndexMap<String, String>) -> Result<()> {
        let state = self.root.as_ref().map_or_else(|| TraceOutcome::of(span), |root| root.state);
        let (request_preview, response_preview) = previews(span);
        self.root = Some(RootSpan { name: span.name.clone(), state, request_preview, response_preview });
        for attribute in &span.attributes {
            let Some(key) = attribute.key.strip_prefix(TAG_PREFIX) else { continue };
            let value = text(decoded(attribute.value.as_ref()));
            let Ok(value) = limits::trace_tag(key, &value) else { continue };
            if key == NAME_TAG {
                limits::at_most("Trace name", MAX_TRACE_NAME_LENGTH, &value)?;
                self.trace_name = Some(value);
                continue;
            }
            tags.insert(key.to_owned(), value);
        }
        Ok(())
    }
}

fn previews(span: &Span) -> (Option<String>, Option<String>) {
    let of = |key: &str, role: &str| {
        value_of(span, key).filter(Json::is_true).map(|value| preview(&value, role)).transpose()
    };
    let Ok(request) = of(keys::INPUTS, "user") else { return (None, None) };
    (request, of(keys::OUTPUTS, "assistant").unwrap_or_default())
}

fn milliseconds(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX)
}
