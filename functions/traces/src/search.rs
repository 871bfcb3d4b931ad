//! Searching traces.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{FoundTraces, TraceInfo};
use mlflow_api::{ExperimentId, Request, Result};
use service::Endpoint;

use crate::store::{Store, TraceSearch};

fn needs(search: &TraceSearch) -> Needs {
    of_traces_in(&search.experiments)
}

/// To read the traces of experiments. One that may not be read is an error, as in MLflow, and so is to name none, unless all may be read.
pub(crate) fn of_traces_in(experiments: &[ExperimentId]) -> Needs {
    let experiments = experiments.iter().copied().map(Target::Experiment);
    let needs = Needs::nothing().and_in(Action::Read, Resource::Trace, experiments);
    needs.or(Needs::read(Target::Any(Resource::Trace)))
}

async fn found(
    search: TraceSearch,
    scope: &Scope,
    store: &Store,
    json: fn(&TraceInfo) -> serde_json::Value,
) -> Result<FoundTraces> {
    store.trace_search(&scope.listed_experiments(&search.experiments)?, search, json).await
}

pub(crate) struct Search(TraceSearch);

impl Endpoint for Search {
    type Store = Store;
    type Answer = FoundTraces;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::SearchTraces = request.read()?;
        // What is no experiment is passed over, as in MLflow.
        let places = asked.locations.iter().filter_map(|location| location.mlflow_experiment.as_ref());
        let experiments: Vec<_> = places.map(|place| place.experiment_id.as_str()).collect();
        TraceSearch::read(&experiments, &asked.filter, asked.max_results, &asked.order_by, &asked.page_token).map(Self)
    }

    fn needs(&self) -> Needs {
        needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<FoundTraces> {
        found(self.0, scope, store, TraceInfo::json).await
    }
}

/// The second version.
pub(crate) struct SearchV2(TraceSearch);

impl Endpoint for SearchV2 {
    type Store = Store;
    type Answer = FoundTraces;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::SearchTracesV2 = request.read()?;
        let experiments: Vec<_> = asked.experiment_ids.iter().map(String::as_str).collect();
        TraceSearch::read(&experiments, &asked.filter, asked.max_results, &asked.order_by, &asked.page_token).map(Self)
    }

    fn needs(&self) -> Needs {
        needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<FoundTraces> {
        found(self.0, scope, store, TraceInfo::json_v2).await
    }
}
