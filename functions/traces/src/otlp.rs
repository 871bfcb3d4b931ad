//! `POST /v1/traces`: the OpenTelemetry protocol. Responses are those of MLflow's server. If the
//! request cannot be parsed, they have another format than MLflow's usual errors.

use std::collections::BTreeSet;

use access::{Action, Needs, Resource, Scope, Target};
use http::StatusCode;
use mlflow_api::{ExperimentId, Request, Result, RunId};
use serde_json::json;
use service::{Endpoint, EndpointResponse};
use spans::ExportFormat;

use crate::start::may_change;
use crate::store::{Store, archived_traces_error, day_of};

const EXPERIMENT_HEADER: &str = "x-mlflow-experiment-id";
const RUN_HEADER: &str = "x-mlflow-run-id";
const ENCODING_HEADER: &str = "content-encoding";
const JSON_TYPE: &str = "application/json";
/// Maximum number of different days on which the traces of one request may have begun.
const MAX_DAYS: usize = 32;

/// The spans of a request, or the response to a request that cannot be parsed.
pub(crate) enum Export {
    Spans { experiment: ExperimentId, run: Option<RunId>, exports: Vec<spans::TraceExport>, format: ExportFormat },
    Rejected { status: u16, body: String },
}

/// Returns the body of `FastAPI`'s response to a request without a required header.
fn missing_header(header: &str) -> String {
    json!({"detail": [{"type": "missing", "loc": ["header", header], "msg": "Field required", "input": null}]})
        .to_string()
}

/// Returns the reason for rejecting a request that would cause too much work, or `None` if the
/// request is accepted.
fn rejection_reason(exports: &[spans::TraceExport]) -> Option<String> {
    let ms = |export: &spans::TraceExport| {
        let start = export.spans.iter().map(|span| span.start_time_unix_nano).min().unwrap_or_default();
        i64::try_from(start / 1_000_000).unwrap_or(i64::MAX)
    };
    let days: BTreeSet<i64> = exports.iter().map(|export| day_of(ms(export))).collect();
    (days.len() > MAX_DAYS).then(|| format!("A request takes traces of at most {MAX_DAYS} days."))
}

impl Endpoint for Export {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let Some(experiment) = request.header(EXPERIMENT_HEADER) else {
            return Ok(Self::Rejected { status: 422, body: missing_header(EXPERIMENT_HEADER) });
        };
        let read = ExportFormat::of(request.content_type.as_deref())
            .and_then(|format| Ok((format, spans::read(format, request.header(ENCODING_HEADER), &request.body)?)));
        let (format, exports) = match read {
            Ok(read) => read,
            Err(refusal) => return Ok(Self::Rejected { status: refusal.status, body: refusal.body() }),
        };
        if let Some(detail) = rejection_reason(&exports) {
            return Ok(Self::Rejected { status: 413, body: json!({ "detail": detail }).to_string() });
        }
        // An invalid run id is ignored. The spans are stored, but not linked to a run.
        let run = request.header(RUN_HEADER).filter(|run| !run.is_empty()).and_then(RunId::parse);
        Ok(Self::Spans { experiment: ExperimentId::parse(experiment)?, run, exports, format })
    }

    fn needs(&self) -> Needs {
        match self {
            Self::Spans { experiment, run, .. } => {
                let run = run.iter().cloned().map(Target::Run);
                Needs::create_in(Target::Experiment(*experiment), Resource::Trace).and(Action::Update, run)
            }
            Self::Rejected { .. } => Needs::of(Action::Create, [Target::Nothing(Resource::Trace)]).revealing_absence(),
        }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let (experiment, run, exports, format) = match self {
            Self::Spans { experiment, run, exports, format } => (experiment, run, exports, format),
            Self::Rejected { status, body } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                return Ok(EndpointResponse::OtherProtocol {
                    status,
                    content_type: JSON_TYPE,
                    body: body.into_bytes(),
                });
            }
        };
        let run = run.map(|run| scope.known_run(&run)).transpose()?.flatten();
        let traces = exports.len();
        let may_change = may_change(scope, store, experiment).await?;
        let rejected = store.spans_log(&scope.experiment(experiment)?, run.as_ref(), exports, may_change).await?;
        // If all spans were rejected, the response is an error, as for any other request.
        if let (Some(first), true) = (rejected.first(), rejected.len() == traces) {
            let archived: Vec<_> = rejected.iter().filter_map(|rejected| rejected.archived.as_ref()).collect();
            return Err(if archived.len() == traces { archived_traces_error(archived) } else { first.error.clone() });
        }
        let count = rejected.iter().map(|rejected| rejected.spans).sum();
        let body = format.answer(rejected.first().map(|first| (count, first.error.message.as_str())));
        // MLflow 3.17.2 responds with protobuf even to JSON requests. The protocol forbids that,
        // and exporters cannot parse it.
        Ok(EndpointResponse::OtherProtocol { status: StatusCode::OK, content_type: format.media_type(), body })
    }
}
