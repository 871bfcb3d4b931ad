//! Endpoints that read traces by id.

use std::collections::HashSet;

use access::{Action, Granted, Needs, Resource, Scope, Target};
use entities::StoredTrace;
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{OneTrace, OneTraceInfo, TraceInfo, TraceInfos, Traces};
use mlflow_api::{Error, ExperimentId, Request, Result, TraceId};
use service::Endpoint;

use crate::shown::{self, with_traces};
use crate::store::Store;

/// Maximum number of traces that one request may name.
const MOST: usize = 1_000;
/// Maximum number of traces that one request for spans may name. MLflow's client requests ten.
const MOST_WITH_SPANS: usize = 100;

/// Checks the number of traces that a request names.
pub(crate) fn check_number(traces: usize) -> Result<()> {
    if traces <= MOST { Ok(()) } else { Err(Error::invalid(format!("A request names at most {MOST} traces."))) }
}

/// Returns the needs of reading a trace, with those of the other entities that the response shows.
fn readable(trace: &TraceId) -> Needs {
    let trace = Target::Trace(trace.clone());
    with_traces(Needs::read(trace.clone()), [trace])
}

/// Removes the parts of a trace that the caller may not see. The request's needs must include the
/// trace.
fn shown(scope: &Scope, info: TraceInfo) -> TraceInfo {
    shown::trace(scope, &Target::Trace(info.id.clone()), info)
}

pub(crate) struct GetInfo(TraceId);

impl Endpoint for GetInfo {
    type Store = Store;
    type Answer = OneTrace;

    fn read(request: &Request) -> Result<Self> {
        crate::named::trace(request).map(Self)
    }

    fn needs(&self) -> Needs {
        readable(&self.0)
    }

    async fn act(self, scope: &Scope, _: &Store) -> Result<OneTrace> {
        Ok(OneTrace::without_spans(&shown(scope, scope.trace(&self.0)?.info()?)))
    }
}

pub(crate) struct GetInfoV2(TraceId);

impl Endpoint for GetInfoV2 {
    type Store = Store;
    type Answer = OneTraceInfo;

    fn read(request: &Request) -> Result<Self> {
        crate::named::trace(request).map(Self)
    }

    fn needs(&self) -> Needs {
        readable(&self.0)
    }

    async fn act(self, scope: &Scope, _: &Store) -> Result<OneTraceInfo> {
        Ok(OneTraceInfo { trace_info: shown(scope, scope.trace(&self.0)?.info()?).json_v2() })
    }
}

pub(crate) struct Get {
    trace: TraceId,
    allow_partial: bool,
}

/// Returns MLflow's error for a missing trace, whose wording differs from that of other endpoints.
pub(crate) fn is_not_found(trace: &str) -> Error {
    Error::not_found(format!("Trace with ID {trace} is not found."))
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = OneTrace;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetTrace = request.read()?;
        let trace = TraceId::parse(&message.trace_id).ok_or_else(|| is_not_found(&message.trace_id))?;
        Ok(Self { trace, allow_partial: message.allow_partial })
    }

    fn needs(&self) -> Needs {
        readable(&self.trace)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneTrace> {
        let trace = scope.known_trace(&self.trace)?.ok_or_else(|| is_not_found(self.trace.as_str()))?;
        let mut whole = store.trace_get(&trace, self.allow_partial).await?;
        whole.info = shown(scope, whole.info);
        Ok(OneTrace { trace: whole.parts()? })
    }
}

/// The traces that a request names. Invalid ids are skipped, and so are traces of other experiments
/// if the request is limited to some.
struct Batch {
    traces: Vec<TraceId>,
    experiments: Option<HashSet<ExperimentId>>,
}

impl Batch {
    fn read(request: &Request, most: usize) -> Result<Self> {
        let message: message::BatchGet = request.read()?;
        check_number(message.trace_ids.len())?;
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

    fn found(&self, scope: &Scope) -> Result<Vec<Granted<StoredTrace>>> {
        let passes = |trace: &StoredTrace| {
            self.experiments.as_ref().is_none_or(|experiments| experiments.contains(&trace.experiment()))
        };
        let mut found = Vec::new();
        for id in &self.traces {
            found.extend(scope.known_trace(id)?.filter(|trace| passes(trace)));
        }
        Ok(found)
    }
}

pub(crate) struct BatchGet(Batch);

impl Endpoint for BatchGet {
    type Store = Store;
    type Answer = Traces;

    fn read(request: &Request) -> Result<Self> {
        Batch::read(request, MOST_WITH_SPANS).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Traces> {
        let found = self.0.found(scope)?;
        let found: Vec<_> = found.iter().map(|trace| &**trace).collect();
        let traces = store.trace_get_many(&found, |info| shown(scope, info)).await?;
        Ok(Traces { traces })
    }
}

pub(crate) struct BatchGetInfos(Batch);

impl Endpoint for BatchGetInfos {
    type Store = Store;
    type Answer = TraceInfos;

    fn read(request: &Request) -> Result<Self> {
        Batch::read(request, MOST).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    async fn act(self, scope: &Scope, _: &Store) -> Result<TraceInfos> {
        let info = |trace: &Granted<StoredTrace>| Ok(shown(scope, trace.info()?).json());
        let infos = self.0.found(scope)?.iter().map(info).collect::<Result<_>>()?;
        Ok(TraceInfos { trace_infos: infos })
    }
}
