//! Endpoints that read traces by id.

use std::collections::HashSet;

use access::{Action, Granted, Needs, Resource, Scope, Target};
use entities::{LocatedTrace, StoredTrace};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{
    BatchGetTraceInfosResponse, BatchGetTracesResponse, TraceInfo, TraceInfoV2Response, TraceResponse,
};
use mlflow_api::{Error, ExperimentId, Request, Result, TraceId};
use service::Endpoint;

use crate::response_visibility::{self, with_traces};
use crate::store::Store;

/// Maximum number of traces that one request may name.
const MAX_TRACES: usize = 1_000;
/// Maximum number of traces that one request for spans may name. MLflow's client requests ten.
const MAX_TRACES_WITH_SPANS: usize = 100;

/// Checks that a request names at most the maximum number of traces.
pub(crate) fn check_trace_count(traces: usize) -> Result<()> {
    if traces <= MAX_TRACES {
        Ok(())
    } else {
        Err(Error::invalid(format!("A request names at most {MAX_TRACES} traces.")))
    }
}

/// Returns the permissions that reading a trace requires, including those for the related entities
/// that the response shows.
fn read_needs(trace: &TraceId) -> Needs {
    let trace = Target::Trace(trace.clone());
    with_traces(Needs::read(trace.clone()), [trace])
}

/// Removes the parts of a trace that the caller may not see. The trace must be one of the targets
/// of the request's permission check.
fn visible_info(scope: &Scope, info: TraceInfo) -> TraceInfo {
    response_visibility::visible_trace(scope, &Target::Trace(info.id.clone()), info)
}

pub(crate) struct GetInfo(TraceId);

impl Endpoint for GetInfo {
    type Store = Store;
    type Answer = TraceResponse;

    fn read(request: &Request) -> Result<Self> {
        crate::trace_path::parse_trace_id(request).map(Self)
    }

    fn needs(&self) -> Needs {
        read_needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceResponse> {
        let trace = store.trace_document(&scope.trace(&self.0)?).await?;
        Ok(TraceResponse::without_spans(&visible_info(scope, trace.info()?)))
    }
}

pub(crate) struct GetInfoV2(TraceId);

impl Endpoint for GetInfoV2 {
    type Store = Store;
    type Answer = TraceInfoV2Response;

    fn read(request: &Request) -> Result<Self> {
        crate::trace_path::parse_trace_id(request).map(Self)
    }

    fn needs(&self) -> Needs {
        read_needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceInfoV2Response> {
        let trace = store.trace_document(&scope.trace(&self.0)?).await?;
        Ok(TraceInfoV2Response { trace_info: visible_info(scope, trace.info()?).json_v2() })
    }
}

pub(crate) struct Get {
    trace: TraceId,
    allow_partial: bool,
}

/// Returns MLflow's error for a missing trace. Its wording differs from the error that MLflow
/// returns for other missing entities.
pub(crate) fn trace_not_found(trace: &str) -> Error {
    Error::not_found(format!("Trace with ID {trace} is not found."))
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = TraceResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetTrace = request.read()?;
        let trace = TraceId::parse(&message.trace_id).ok_or_else(|| trace_not_found(&message.trace_id))?;
        Ok(Self { trace, allow_partial: message.allow_partial })
    }

    fn needs(&self) -> Needs {
        read_needs(&self.trace)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceResponse> {
        let missing = || trace_not_found(self.trace.as_str());
        let trace = scope.known_trace(&self.trace)?.ok_or_else(missing)?;
        let trace = store.trace_with_block(&trace).await?.ok_or_else(missing)?;
        let mut whole = store.trace_get(&trace, self.allow_partial).await?;
        whole.info = visible_info(scope, whole.info);
        Ok(TraceResponse { trace: whole.parts()? })
    }
}

/// The traces that a request names. Invalid ids are skipped. If the request is limited to some
/// experiments, traces of all others are skipped too.
struct RequestedTraces {
    traces: Vec<TraceId>,
    experiments: Option<HashSet<ExperimentId>>,
}

impl RequestedTraces {
    fn read(request: &Request, most: usize) -> Result<Self> {
        let message: message::BatchGet = request.read()?;
        check_trace_count(message.trace_ids.len())?;
        if message.trace_ids.len() > most {
            return Err(Error::invalid(format!("A request for spans names at most {most} traces.")));
        }
        let mut seen = HashSet::new();
        let traces = message.trace_ids.iter().filter_map(|id| TraceId::parse(id));
        let traces = traces.filter(|id| seen.insert(id.clone())).collect();
        let experiments = message.experiment_ids.map(|ids| ids.iter().map(|id| ExperimentId::parse(id)).collect());
        Ok(Self { traces, experiments: experiments.transpose()? })
    }

    fn needs(&self) -> Needs {
        let traces = || self.traces.iter().cloned().map(Target::Trace);
        let needs = Needs::of(Action::Read, traces()).or(Needs::read(Target::Any(Resource::Trace)));
        with_traces(needs, traces())
    }

    fn found(&self, scope: &Scope) -> Result<Vec<Granted<LocatedTrace>>> {
        let passes = |trace: &LocatedTrace| {
            self.experiments.as_ref().is_none_or(|experiments| experiments.contains(&trace.experiment()))
        };
        let mut found = Vec::new();
        for id in &self.traces {
            found.extend(scope.known_trace(id)?.filter(|trace| passes(trace)));
        }
        Ok(found)
    }
}

pub(crate) struct BatchGet(RequestedTraces);

impl Endpoint for BatchGet {
    type Store = Store;
    type Answer = BatchGetTracesResponse;

    fn read(request: &Request) -> Result<Self> {
        RequestedTraces::read(request, MAX_TRACES_WITH_SPANS).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<BatchGetTracesResponse> {
        let found = self.0.found(scope)?;
        let traces = store.trace_get_many(&found, |info| visible_info(scope, info)).await?;
        Ok(BatchGetTracesResponse { traces })
    }
}

pub(crate) struct BatchGetInfos(RequestedTraces);

impl Endpoint for BatchGetInfos {
    type Store = Store;
    type Answer = BatchGetTraceInfosResponse;

    fn read(request: &Request) -> Result<Self> {
        RequestedTraces::read(request, MAX_TRACES).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<BatchGetTraceInfosResponse> {
        let found = store.located_documents(&self.0.found(scope)?).await?;
        let info = |trace: &StoredTrace| Ok(visible_info(scope, trace.info()?).json());
        let infos = found.iter().map(info).collect::<Result<_>>()?;
        Ok(BatchGetTraceInfosResponse { trace_infos: infos })
    }
}
