//! Endpoints that link traces to runs and to versions of prompts.

use std::collections::BTreeSet;

use access::{Action, Needs, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, Request, Result, RunId, TraceId, python};
use service::Endpoint;

use crate::store::Store;

/// Maximum number of traces per request to link traces to a run (`MAX_TRACE_LINKS_PER_REQUEST`).
const MAX_TRACES: usize = 100;

pub(crate) struct LinkToRun {
    traces: Vec<TraceId>,
    run: RunId,
}

impl Endpoint for LinkToRun {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LinkToRun = request.read()?;
        let count = message.trace_ids.len();
        if count > MAX_TRACES {
            return Err(Error::invalid(format!(
                "Cannot link more than {MAX_TRACES} traces to a run in a single request. Provided {count} traces."
            )));
        }
        let traces = message.trace_ids.iter().filter_map(|id| TraceId::parse(id)).collect();
        Ok(Self { traces, run: RunId::named(&message.run_id)? })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Read, self.traces.iter().cloned().map(Target::Trace))
            .and(Action::Update, [Target::Run(self.run.clone())])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let (mut traces, mut awaited) = (Vec::new(), BTreeSet::new());
        for id in &self.traces {
            match scope.known_trace(id)? {
                Some(trace) => traces.push(trace),
                None => drop(awaited.insert(id)),
            }
        }
        store.trace_link_to_run(&traces, self.run.as_str()).await?;
        // If the run does not exist, no permissions on it can be checked, so the link is not
        // stored.
        if let Some(run) = scope.known_run(&self.run)? {
            store.traces_link_before_arrival(&awaited, &run).await?;
        }
        Ok(EmptyResponse {})
    }
}

pub(crate) struct LinkPrompts {
    trace: TraceId,
    prompts: Vec<String>,
}

impl Endpoint for LinkPrompts {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LinkPrompts = request.read()?;
        let prompt = |prompt: &message::PromptVersion| {
            let (name, version) = (&prompt.name, python::int(&prompt.version));
            let version = version.ok_or_else(|| Error::invalid(format!("Invalid version '{}'.", prompt.version)))?;
            Ok(format!("{name}/{version}"))
        };
        let prompts = message.prompt_versions.iter().map(prompt).collect::<Result<_>>()?;
        Ok(Self { trace: TraceId::named(&message.trace_id)?, prompts })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Trace(self.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.trace_link_prompts(&scope.trace(&self.trace)?, self.prompts).await?;
        Ok(EmptyResponse {})
    }
}
