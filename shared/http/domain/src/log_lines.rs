//! The log of a function, which Lambda, the stack's metric filters and operators' queries read.
//!
//! Each line is a JSON object on standard output:
//!
//! ```json
//! {"timestamp":"2026-01-31T18:56:24.086123Z","level":"INFO","fields":{"message":"request"},"target":"request","requestId":"6d68ca91-49c9-448d-89b8-7ca3e6dc66aa"}
//! ```
//!
//! Lambda requires the timestamp: it treats JSON lines without a valid one as `INFO`, and drops
//! them if the function's log level is `WARN`. `requestId` is Lambda's id of the call. Lines that
//! are written outside of a call do not have it.

use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::{Format, Json, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

/// Variable in which Lambda passes the function's `ApplicationLogLevel`.
const LEVEL_VARIABLE: &str = "AWS_LAMBDA_LOG_LEVEL";
/// Field of the span in which `lambda_runtime` runs a call.
const REQUEST_ID: &str = "requestId";
/// Crates with lines of the levels `DEBUG` and `TRACE`. Dependencies do not get these levels,
/// because they log complete requests, including credentials.
const DETAILED: [&str; 4] = ["artifact_store", "runtime", "table", "tracking"];

/// Writes this process's log to standard output, including panics, from now on.
pub(crate) fn install() {
    let level = std::env::var(LEVEL_VARIABLE).map_or(LevelFilter::INFO, |level| parse_level(&level));
    log_lines(level, std::io::stdout).init();
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, panic = panic.payload_as_str(), "panicked");
    }));
}

/// Returns a subscriber that writes the events of a function up to this level as JSON lines.
pub fn log_lines<W>(level: LevelFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let json = tracing_subscriber::fmt::format().json().with_current_span(false).with_span_list(false);
    // The request id is the only field of a span that is written to a line.
    let fields = debug_fn(|writer, field, value| match field.name() {
        REQUEST_ID => write!(writer, "{value:?}"),
        _ => Ok(()),
    });
    let lines = tracing_subscriber::fmt::layer().event_format(LogLine(json)).fmt_fields(fields).with_writer(writer);
    let filter =
        filter_fn(move |metadata| is_written(metadata, level)).with_max_level_hint(level.max(LevelFilter::INFO));
    Registry::default().with(lines.with_filter(filter))
}

/// Checks whether an event is written, or a span is recorded.
fn is_written(metadata: &Metadata<'_>, level: LevelFilter) -> bool {
    if metadata.is_span() {
        // Warnings and errors need the span of the call for their request id.
        return *metadata.level() <= Level::INFO;
    }
    let crate_name = metadata.target().split("::").next().unwrap_or_default();
    *metadata.level() <= level && (*metadata.level() <= Level::INFO || DETAILED.contains(&crate_name))
}

/// Returns the filter for one of Lambda's levels. Unknown levels count as `INFO`, the default.
fn parse_level(level: &str) -> LevelFilter {
    match level.to_ascii_uppercase().as_str() {
        "TRACE" => LevelFilter::TRACE,
        "DEBUG" => LevelFilter::DEBUG,
        "WARN" => LevelFilter::WARN,
        // `tracing` has no more severe level than `ERROR`.
        "ERROR" | "FATAL" => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    }
}

/// The format of a line: JSON, with the request id of the call instead of the list of spans.
struct LogLine(Format<Json>);

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let request = context.event_scope().into_iter().flatten().find_map(|span| {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>()?.fields.clone();
            (!fields.is_empty()).then_some(fields)
        });
        match (request, line.trim_end().strip_suffix('}')) {
            // The id is formatted with its quotes.
            (Some(request), Some(object)) => writeln!(writer, "{object},\"{REQUEST_ID}\":{request}}}"),
            _ => writer.write_str(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that `log` writes if Lambda's log level is `level`.
    fn lines(level: &str, log: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = log_lines(parse_level(level), move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Logs within the span of a call, as `lambda_runtime` does.
    fn in_call(log: impl FnOnce()) {
        let call =
            tracing::info_span!("Lambda runtime invoke", requestId = "6d68ca91", xrayTraceId = "Root=1-5759e988");
        call.in_scope(|| tracing::info_span!("inner", other = 1).in_scope(log));
    }

    #[test]
    fn a_line_has_a_timestamp_and_the_request_id_once() {
        let lines = lines("INFO", || {
            tracing::error!(why = "a \"quote\"", "outside");
            in_call(|| tracing::info!(target: "request", ms = 1.5, "inside"));
        });
        let [outside, inside] = lines.as_slice() else { panic!("{lines:?}") };
        let keys = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let expected = ["fields", "level", "target", "timestamp"].map(str::to_owned).into();
        assert_eq!(keys(outside), expected);
        assert_eq!(&keys(inside) - &expected, [REQUEST_ID.to_owned()].into());
        assert_eq!(outside["fields"]["why"], "a \"quote\"");
        assert_eq!((&inside["requestId"], &inside["fields"]["ms"]), (&"6d68ca91".into(), &1.5.into()));
        let timestamp = inside["timestamp"].as_str().unwrap();
        assert_eq!((timestamp.len(), &timestamp[10..11], &timestamp[26..]), (27, "T", "Z"), "{timestamp}");
    }

    #[test]
    fn lambda_decides_on_the_level() {
        for (level, expected) in [
            ("TRACE", ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].as_slice()),
            ("DEBUG", &["ERROR", "WARN", "INFO", "DEBUG"]),
            ("INFO", &["ERROR", "WARN", "INFO"]),
            ("info", &["ERROR", "WARN", "INFO"]),
            ("nonsense", &["ERROR", "WARN", "INFO"]),
            ("WARN", &["ERROR", "WARN"]),
            ("ERROR", &["ERROR"]),
            ("FATAL", &["ERROR"]),
        ] {
            let lines = lines(level, || {
                in_call(|| {
                    tracing::error!("1");
                    tracing::warn!("2");
                    tracing::info!("3");
                    tracing::debug!(target: "table::retry", "4");
                    tracing::trace!(target: "table", "5");
                    tracing::debug!(target: "lambda_runtime::requests", "the payload of a call");
                    tracing::trace!(target: "aws_smithy_runtime", "the headers of a request");
                });
            });
            let levels: Vec<_> = lines.iter().map(|line| line["level"].as_str().unwrap()).collect();
            assert_eq!(levels, expected, "{level}");
            assert!(lines.iter().all(|line| line["requestId"] == "6d68ca91"), "{level}");
        }
    }
}
