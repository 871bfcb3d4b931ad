//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Public, Read, Update};
use access::Resource::{Experiment, LoggedModel, Run};
use service::{Paths, Route};

use crate::store::Store;
use crate::{experiments, logged_models, logging, metrics, runs, server};

/// The rows of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::new("POST", "experiments/create", Create(Experiment), experiments::create),
        Route::new("GET", "experiments/get", Read(Experiment), experiments::get),
        Route::new("GET", "experiments/get-by-name", Read(Experiment), experiments::get_by_name),
        Route::new("GET", "experiments/search", List(Experiment), experiments::search),
        Route::new("POST", "experiments/search", List(Experiment), experiments::search),
        Route::new("POST", "experiments/update", Update(Experiment), experiments::update),
        Route::new("POST", "experiments/delete", Delete(Experiment), experiments::delete),
        Route::new("POST", "experiments/restore", Delete(Experiment), experiments::restore),
        Route::new("POST", "experiments/search-datasets", List(Experiment), experiments::search_datasets)
            .under(Paths::AjaxV2),
        Route::new("POST", "experiments/set-experiment-tag", Update(Experiment), experiments::set_tag),
        Route::new("POST", "experiments/delete-experiment-tag", Update(Experiment), experiments::delete_tag),
        //
        Route::to::<runs::Create>("POST", "runs/create", Update(Experiment)),
        Route::to::<runs::Get>("GET", "runs/get", Read(Run)),
        Route::to::<runs::Search>("POST", "runs/search", List(Experiment)),
        Route::to::<runs::Update>("POST", "runs/update", Update(Run)),
        Route::to::<runs::Delete>("POST", "runs/delete", Delete(Run)),
        Route::to::<runs::Restore>("POST", "runs/restore", Delete(Run)),
        //
        Route::to::<logging::LogMetric>("POST", "runs/log-metric", Update(Run)),
        Route::to::<logging::LogParam>("POST", "runs/log-parameter", Update(Run)),
        Route::to::<logging::LogBatch>("POST", "runs/log-batch", Update(Run)),
        Route::to::<logging::LogModel>("POST", "runs/log-model", Update(Run)),
        Route::to::<logging::LogInputs>("POST", "runs/log-inputs", Update(Run)),
        Route::to::<logging::LogOutputs>("POST", "runs/outputs", Update(Run)),
        Route::to::<logging::SetTag>("POST", "runs/set-tag", Update(Run)),
        Route::to::<logging::DeleteTag>("POST", "runs/delete-tag", Update(Run)),
        //
        Route::to::<metrics::History>("GET", "metrics/get-history", Read(Run)),
        Route::to::<metrics::HistoryBulk>("GET", "metrics/get-history-bulk", Read(Run)).under(Paths::AjaxV2),
        Route::to::<metrics::HistoryBulkInterval>("GET", "metrics/get-history-bulk-interval", Read(Run)),
        //
        Route::new("POST", "logged-models", Update(Experiment), logged_models::create),
        Route::new("POST", "logged-models/search", List(LoggedModel), logged_models::search),
        Route::new("GET", "logged-models/{model_id}", Read(LoggedModel), logged_models::get),
        Route::new("PATCH", "logged-models/{model_id}", Update(LoggedModel), logged_models::finalize),
        Route::new("DELETE", "logged-models/{model_id}", Delete(LoggedModel), logged_models::delete),
        Route::new("POST", "logged-models/{model_id}/params", Update(LoggedModel), logged_models::log_params),
        Route::new("PATCH", "logged-models/{model_id}/tags", Update(LoggedModel), logged_models::set_tags),
        Route::new("DELETE", "logged-models/{model_id}/tags/{tag_key}", Update(LoggedModel), logged_models::delete_tag),
        Route::new(
            "GET",
            "logged-models/{model_id}/artifacts/directories",
            Read(LoggedModel),
            logged_models::list_artifacts,
        ),
        Route::new("GET", "logged-models/{model_id}/artifacts/files", Read(LoggedModel), logged_models::get_artifact)
            .under(Paths::AjaxV2),
        //
        Route::new("GET", "server-info", Public, server::info).under(Paths::V3),
        Route::text("/health", "OK"),
        Route::text("/version", server::VERSION),
    ]
}
