//! `POST /v1/traces`: the OpenTelemetry protocol. It is answered as MLflow's server answers it, which is none of its usual errors where the
//! request cannot be read.

use access::{Action, Needs, Scope, Target};
use http::StatusCode;
use mlflow_api::{ExperimentId, Request, Result, RunId};
use serde_json::json;
use service::{Answer, Endpoint};

use crate::store::Store;

const EXPERIMENT: &str = "x-mlflow-experiment-id";
const RUN: &str = "x-mlflow-run-id";
const ENCODING: &str = "content-encoding";
const JSON: &str = "application/json";

/// Spans, or the answer to what is none.
pub(crate) enum Export {
    Spans { experiment: ExperimentId, run: Option<RunId>, exports: Vec<spans::Export> },
    Refused { status: u16, body: String },
}

/// The body in which `FastAPI` names a header that is missing.
fn missing(header: &str) -> String {
    json!({"detail": [{"type": "missing", "loc": ["header", header], "msg": "Field required", "input": null}]})
        .to_string()
}

impl Endpoint for Export {
    type Store = Store;
    type Answer = Answer;

    fn read(request: &Request) -> Result<Self> {
        let Some(experiment) = request.header(EXPERIMENT) else {
            return Ok(Self::Refused { status: 422, body: missing(EXPERIMENT) });
        };
        let read = spans::read(request.content_type.as_deref(), request.header(ENCODING), &request.body);
        let exports = match read {
            Ok(exports) => exports,
            Err(refusal) => return Ok(Self::Refused { status: refusal.status, body: refusal.body() }),
        };
        // Linking is all that is lost with a run that cannot be.
        let run = request.header(RUN).filter(|run| !run.is_empty()).and_then(RunId::parse);
        Ok(Self::Spans { experiment: ExperimentId::parse(experiment)?, run, exports })
    }

    fn needs(&self) -> Needs {
        match self {
            Self::Spans { experiment, run, .. } => {
                Needs::update(Target::Experiment(*experiment)).and(Action::Update, run.iter().cloned().map(Target::Run))
            }
            Self::Refused { .. } => Needs::nothing(),
        }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        let (experiment, run, exports) = match self {
            Self::Spans { experiment, run, exports } => (experiment, run, exports),
            Self::Refused { status, body } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                return Ok(Answer::Foreign { status, content_type: JSON, body: body.into_bytes() });
            }
        };
        let run = run.map(|run| scope.known_run(&run)).transpose()?.flatten();
        store.spans_log(&scope.experiment(experiment)?, run.as_ref(), exports).await?;
        let (content_type, body) = spans::answer();
        Ok(Answer::Foreign { status: StatusCode::OK, content_type, body })
    }
}
