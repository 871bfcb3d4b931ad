//! Endpoints that search traces.

use access::{Needs, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{FoundTraces, TraceInfo};
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::shown::{self, of_traces_in, with_traces};
use crate::store::{Store, TraceSearch};

fn needs(search: &TraceSearch) -> Needs {
    let needs = of_traces_in(&search.experiments, search.related());
    with_traces(needs, search.experiments.iter().copied().map(Target::Experiment))
}

async fn found(
    search: TraceSearch,
    scope: &Scope,
    store: &Store,
    json: fn(&TraceInfo) -> serde_json::Value,
) -> Result<FoundTraces> {
    let experiments = scope.listed_experiments(&search.experiments)?;
    let shown = |info: TraceInfo| {
        let experiment = Target::Experiment(info.experiment);
        json(&shown::trace(scope, &experiment, info))
    };
    store.trace_search(&experiments, search, shown).await
}

pub(crate) struct Search(TraceSearch);

impl Endpoint for Search {
    type Store = Store;
    type Answer = FoundTraces;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::SearchTraces = request.read()?;
        // As in MLflow, locations other than experiments are ignored.
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

/// The endpoint of version 2 of the API.
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
