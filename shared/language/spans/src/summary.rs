//! Facts about a trace from its spans, as MLflow's store derives them when it logs the spans.

use indexmap::IndexMap;
use mlflow_api::{Json, Result, limits};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use crate::Span;
use crate::attributes::{text, text_of, value_of};
use crate::preview::preview;
use crate::translate::keys;
use crate::usage::Usage;
use crate::values::decoded;

/// Characters of a session's id.
const SESSION: usize = 250;
/// Characters of a trace's name.
const TRACE_NAME: usize = 4096;
/// Attributes of a root that are tags of the trace begin with it.
const TAG: &str = "mlflow.traceTag.";
/// The tag that is the trace's name.
const NAME_TAG: &str = "mlflow.traceName";

/// Facts about a trace from its spans.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// When the first of them began, in milliseconds since 1970.
    pub start_ms: i64,
    /// When the last of them ended; nothing where none has.
    pub end_ms: Option<i64>,
    /// How many they are.
    pub spans: usize,
    /// The facts of the root, if it is among them.
    pub root: Option<Root>,
    /// The session that the trace belongs to.
    pub session: Option<String>,
    /// On whose behalf it ran.
    pub user: Option<String>,
    /// The trace's name, if the root says one.
    pub trace_name: Option<String>,
    /// Tags of the root. They win over those of the sender's resource.
    pub tags: Vec<(String, String)>,
    /// Tokens and cost.
    pub usage: Usage,
}

/// The facts of a trace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The span's name.
    pub name: String,
    /// How the trace ended.
    pub state: State,
    /// Its input, in short.
    pub request_preview: Option<String>,
    /// Its output, in short.
    pub response_preview: Option<String>,
}

/// How a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Well.
    Ok,
    /// With an error.
    Error,
}

impl State {
    /// MLflow's word for it.
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

/// The summary of the spans of one export, or of all spans of a trace. An error is MLflow's for
/// spans that are too long. Nothing of the export is to be stored then.
pub fn summarize(spans: &[Span]) -> Result<Summary> {
    let start = spans.iter().map(|span| span.start_time_unix_nano).min().unwrap_or_default();
    let end = spans.iter().map(|span| span.end_time_unix_nano).max().filter(|end| milliseconds(*end) > 0);
    let mut summary = Summary {
        start_ms: milliseconds(start),
        end_ms: end.map(milliseconds),
        spans: spans.len(),
        root: None,
        session: None,
        user: None,
        trace_name: None,
        tags: Vec::new(),
        usage: Usage::default(),
    };
    // Of all roots: a trace may have many thousands.
    let mut tags = IndexMap::new();
    for span in spans {
        summary.usage.add(span);
        if summary.session.is_none() {
            let session = ["session.id", "gen_ai.conversation.id"].into_iter().find_map(|key| text_of(span, key));
            if let Some(session) = &session {
                limits::at_most("Session ID", SESSION, session)?;
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
    // An empty one says nothing, but the first that is said counts.
    summary.session = summary.session.filter(|session| !session.is_empty());
    summary.user = summary.user.filter(|user| !user.is_empty());
    Ok(summary)
}

impl Summary {
    /// Of several roots the first says how the trace ended, and the last everything else.
    fn take_root(&mut self, span: &Span, tags: &mut IndexMap<String, String>) -> Result<()> {
        let state = self.root.as_ref().map_or_else(|| State::of(span), |root| root.state);
        let (request_preview, response_preview) = previews(span);
        self.root = Some(Root { name: span.name.clone(), state, request_preview, response_preview });
        for attribute in &span.attributes {
            let Some(key) = attribute.key.strip_prefix(TAG) else { continue };
            let value = text(decoded(attribute.value.as_ref()));
            let Ok(value) = limits::trace_tag(key, &value) else { continue };
            if key == NAME_TAG {
                limits::at_most("Trace name", TRACE_NAME, &value)?;
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
