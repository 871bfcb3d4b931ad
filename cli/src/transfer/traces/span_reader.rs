//! Reads spans from the rows of an MLflow database.

use std::collections::HashMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use spans::Span;

use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::source::{Source, placeholders};

/// Maximum size of the spans of a trace, in bytes. Readers refuse larger ones.
const MAX_SPANS_BYTES: usize = 63 << 20;

/// The spans of a trace, or the reason why this server cannot store them.
pub(super) type ReadSpans = Result<Vec<Span>, String>;

/// Reads the spans of traces from the database, in the order in which this server stores them.
/// Archived spans are left out, because their rows have no content. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn spans_of(source: &Source, ids: &[&str]) -> Result<HashMap<String, ReadSpans>, Failure> {
    let mut all: HashMap<String, ReadSpans> = HashMap::new();
    if ids.is_empty() || !source.has_table("spans") {
        return Ok(all);
    }
    let list = placeholders(ids.len());
    let sql = format!(
        "SELECT trace_id, content FROM spans WHERE trace_id IN {list} AND content <> '' ORDER BY trace_id, \
         start_time_unix_nano, span_id"
    );
    for row in source.rows(&sql, ids.iter().map(|id| SqlValue::from(*id)).collect()).await? {
        let spans = all.entry(row.text(0)?).or_insert_with(|| Ok(Vec::new()));
        match (spans.as_mut(), spans::of_recorded_json(&row.text(1)?)) {
            (Ok(spans), Some(span)) => spans.push(span),
            (Ok(_), None) => *spans = Err("because a span is not in MLflow's format".to_owned()),
            (Err(_), _) => {}
        }
    }
    Ok(all.into_iter().map(|(id, spans)| (id, spans.and_then(in_order))).collect())
}

/// Returns spans in the order in which this server stores them.
pub(super) fn in_order(spans: Vec<Span>) -> ReadSpans {
    if spans::size(&spans) > MAX_SPANS_BYTES {
        return Err(format!("because they have more than {MAX_SPANS_BYTES} bytes"));
    }
    Ok(spans::join([spans]))
}

/// Returns a hash of spans, which is empty if there are none.
pub(super) fn hash(spans: &[Span]) -> String {
    if spans.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(spans::message(spans));
    digest.iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
