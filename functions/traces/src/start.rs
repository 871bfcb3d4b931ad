//! Endpoints that create and end a trace as a whole.

use access::{Action, Needs, Resource, Scope, Target};
use entities::now_ms;
use key_schema::sha256_128;
use mlflow_api::assessments::Assessment;
use mlflow_api::checks::Check::Required;
use mlflow_api::proto_json::{field, message, parse_duration, parse_time, text, texts};
use mlflow_api::requests::traces as message_v2;
use mlflow_api::traces::{TraceInfo, TraceInfoV2Response, TraceResponse, TraceState};
use mlflow_api::{AssessmentId, Error, ExperimentId, Request, Result, TraceId};
use rand::RngExt;
use serde_json::{Map, Value};
use service::Endpoint;

use crate::response_visibility::{self, with_traces};
use crate::store::{EndedTrace, Store};

pub(crate) struct Start(TraceInfo);

/// Parses the experiment in a trace's location.
fn experiment(info: &Map<String, Value>) -> Result<ExperimentId> {
    let location = message(info, "trace_location").and_then(|location| message(location, "mlflow_experiment"));
    let experiment = location.and_then(|location| text(location, "experiment_id"));
    let experiment = experiment.filter(|id| !id.is_empty());
    ExperimentId::parse(experiment.ok_or_else(|| Error::invalid("The trace's location does not name an experiment."))?)
}

/// Parses an optional time or duration.
fn ms(info: &Map<String, Value>, name: &str, parse: impl Fn(&str) -> Option<i64>) -> Result<Option<i64>> {
    let Some(value) = field(info, name) else { return Ok(None) };
    let ms = value.as_str().and_then(parse);
    ms.map(Some).ok_or_else(|| Error::invalid(format!("The value of '{name}' is neither a time nor a duration.")))
}

impl Endpoint for Start {
    type Store = Store;
    type Answer = TraceResponse;

    fn read(request: &Request) -> Result<Self> {
        let request = request.object(&[("trace", &[Required])])?;
        let empty = Map::new();
        let info = message(&request, "trace").and_then(|trace| message(trace, "trace_info")).unwrap_or(&empty);
        let sent = text(info, "trace_id").unwrap_or_default();
        let id = TraceId::parse(sent).ok_or_else(|| Error::invalid(format!("Invalid trace ID '{sent}'.")))?;
        let now = now_ms();
        let mut assessments = Vec::new();
        for (place, said) in field(info, "assessments").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let (assessment_id, assessment) = Assessment::read(said.as_object().unwrap_or(&empty), now)?;
            // The assessment ids are derived from the request, because a retried request must
            // result in the same ids.
            let digest = || AssessmentId::new(sha256_128(format!("{id} {place} {said}").as_bytes()));
            assessments.push((assessment_id.unwrap_or_else(digest), assessment));
        }
        let owned = |name: &str| text(info, name).map(str::to_owned);
        Ok(Self(TraceInfo {
            id,
            request_time: ms(info, "request_time", parse_time)?.unwrap_or_default(),
            duration: ms(info, "execution_duration", parse_duration)?,
            state: field(info, "state").and_then(TraceState::read).unwrap_or_default(),
            client_request_id: owned("client_request_id"),
            request_preview: owned("request_preview"),
            response_preview: owned("response_preview"),
            metadata: texts(info, "trace_metadata"),
            tags: texts(info, "tags"),
            assessments,
            experiment: experiment(info)?,
        }))
    }

    /// Clients may log assessments of the trace that they are creating. This requires a separate
    /// permission.
    fn needs(&self) -> Needs {
        let experiment = Target::Experiment(self.0.experiment);
        let trace = with_traces(Needs::create_in(experiment.clone(), Resource::Trace), [experiment.clone()]);
        if self.0.assessments.is_empty() {
            return trace;
        }
        trace.and_in(Action::Create, Resource::Assessment, [experiment])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceResponse> {
        let may_change = may_change(scope, store, self.0.experiment).await?;
        let info = store.trace_start(&scope.experiment(self.0.experiment)?, &self.0, may_change).await?;
        let experiment = Target::Experiment(self.0.experiment);
        Ok(TraceResponse::without_spans(&response_visibility::visible_trace(scope, &experiment, info)))
    }
}

/// Checks whether the caller may change traces of an experiment, rather than only add traces. Takes
/// no request if the caller's permissions on this experiment have already been loaded.
pub(crate) async fn may_change(scope: &Scope, store: &Store, experiment: ExperimentId) -> Result<bool> {
    let needs = Needs::of_in(Action::Update, Resource::Trace, Target::Experiment(experiment));
    scope.is_allowed(service::DomainStore::table(store), &needs).await
}

fn entries(entries: Vec<message_v2::Entry>) -> Vec<(String, String)> {
    entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

pub(crate) struct StartV2(TraceInfo);

impl Endpoint for StartV2 {
    type Store = Store;
    type Answer = TraceInfoV2Response;

    fn read(request: &Request) -> Result<Self> {
        let message: message_v2::StartTrace = request.read()?;
        Ok(Self(TraceInfo {
            id: TraceId::made_here(rand::rng().random()),
            experiment: ExperimentId::parse(&message.experiment_id)?,
            request_time: message.timestamp_ms,
            duration: None,
            state: TraceState::InProgress,
            client_request_id: None,
            request_preview: None,
            response_preview: None,
            metadata: entries(message.request_metadata),
            tags: entries(message.tags),
            assessments: Vec::new(),
        }))
    }

    fn needs(&self) -> Needs {
        let experiment = Target::Experiment(self.0.experiment);
        with_traces(Needs::create_in(experiment.clone(), Resource::Trace), [experiment])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceInfoV2Response> {
        let info = store.trace_start_v2(&scope.experiment(self.0.experiment)?, &self.0).await?;
        let experiment = Target::Experiment(self.0.experiment);
        Ok(TraceInfoV2Response { trace_info: response_visibility::visible_trace(scope, &experiment, info).json_v2() })
    }
}

pub(crate) struct EndV2 {
    trace: TraceId,
    ended: EndedTrace,
}

impl Endpoint for EndV2 {
    type Store = Store;
    type Answer = TraceInfoV2Response;

    fn read(request: &Request) -> Result<Self> {
        let message: message_v2::EndTrace = request.read()?;
        let ended = EndedTrace {
            end_time: message.timestamp_ms,
            state: message.status.unwrap_or_default(),
            metadata: entries(message.request_metadata),
            tags: entries(message.tags),
        };
        Ok(Self { trace: crate::trace_path::parse_trace_id(request)?, ended })
    }

    fn needs(&self) -> Needs {
        let trace = Target::Trace(self.trace.clone());
        with_traces(Needs::update(trace.clone()), [trace])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceInfoV2Response> {
        let info = store.trace_end_v2(&scope.trace(&self.trace)?, &self.ended).await?;
        Ok(TraceInfoV2Response {
            trace_info: response_visibility::visible_trace(scope, &Target::Trace(self.trace), info).json_v2(),
        })
    }
}
