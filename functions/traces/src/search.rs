//! Endpoints that search traces.

use access::{Needs, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{SearchTracesResponse, TraceInfo};
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::response_visibility::{self, search_needs, with_traces};
use crate::store::{Store, TraceSearchRequest};

fn needs(search: &TraceSearchRequest) -> Needs {
    let needs = search_needs(&search.experiments, search.related());
    with_traces(needs, search.experiments.iter().copied().map(Target::Experiment))
}

async fn search_response(
    search: TraceSearchRequest,
    scope: &Scope,
    store: &Store,
    json: fn(&TraceInfo) -> serde_json::Value,
) -> Result<SearchTracesResponse> {
    let experiments = scope.listed_experiments(&search.experiments)?;
    let shown = |info: TraceInfo| {
        let experiment = Target::Experiment(info.experiment);
        json(&response_visibility::visible_trace(scope, &experiment, info))
    };
    store.trace_search(&experiments, search, shown).await
}

pub(crate) struct Search(TraceSearchRequest);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchTracesResponse;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::SearchTraces = request.read()?;
        // As in MLflow, locations other than experiments are ignored.
        let places = asked.locations.iter().filter_map(|location| location.mlflow_experiment.as_ref());
        let experiments: Vec<_> = places.map(|place| place.experiment_id.as_str()).collect();
        TraceSearchRequest::read(&experiments, &asked.filter, asked.max_results, &asked.order_by, &asked.page_token)
            .map(Self)
    }

    fn needs(&self) -> Needs {
        needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SearchTracesResponse> {
        search_response(self.0, scope, store, TraceInfo::json).await
    }
}

/// The endpoint of version 2 of the API.
pub(crate) struct SearchV2(TraceSearchRequest);

impl Endpoint for SearchV2 {
    type Store = Store;
    type Answer = SearchTracesResponse;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::SearchTracesV2 = request.read()?;
        let experiments: Vec<_> = asked.experiment_ids.iter().map(String::as_str).collect();
        TraceSearchRequest::read(&experiments, &asked.filter, asked.max_results, &asked.order_by, &asked.page_token)
            .map(Self)
    }

    fn needs(&self) -> Needs {
        needs(&self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SearchTracesResponse> {
        search_response(self.0, scope, store, TraceInfo::json_v2).await
    }
}
