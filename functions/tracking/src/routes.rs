//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Open, Read, SignedIn, Update};
use access::Resource::{Experiment, LoggedModel, Run};
use service::{Paths, Route};

use crate::store::Store;
use crate::{experiments, logged_models, logging, metrics, runs, server_info};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<experiments::Create>("POST", "experiments/create", Create(Experiment)),
        Route::to::<experiments::Get>("GET", "experiments/get", Read(Experiment)),
        Route::to::<experiments::GetByName>("GET", "experiments/get-by-name", Read(Experiment)),
        Route::to::<experiments::Search>("GET", "experiments/search", List(Experiment)),
        Route::to::<experiments::Search>("POST", "experiments/search", List(Experiment)),
        Route::to::<experiments::Update>("POST", "experiments/update", Update(Experiment)),
        Route::to::<experiments::Delete>("POST", "experiments/delete", Delete(Experiment)),
        Route::to::<experiments::Restore>("POST", "experiments/restore", Delete(Experiment)),
        Route::to::<experiments::SearchDatasets>("POST", "experiments/search-datasets", Read(Experiment))
            .under(Paths::AjaxV2),
        Route::to::<experiments::SetTag>("POST", "experiments/set-experiment-tag", Update(Experiment)),
        Route::to::<experiments::DeleteTag>("POST", "experiments/delete-experiment-tag", Update(Experiment)),
        //
        Route::to::<runs::Create>("POST", "runs/create", Create(Run)),
        Route::to::<runs::Get>("GET", "runs/get", Read(Run)),
        Route::to::<runs::Search>("POST", "runs/search", List(Run)),
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
        Route::to::<logged_models::Create>("POST", "logged-models", Create(LoggedModel)),
        Route::to::<logged_models::Search>("POST", "logged-models/search", List(LoggedModel)),
        Route::to::<logged_models::Get>("GET", "logged-models/{model_id}", Read(LoggedModel)),
        Route::to::<logged_models::Finalize>("PATCH", "logged-models/{model_id}", Update(LoggedModel)),
        Route::to::<logged_models::Delete>("DELETE", "logged-models/{model_id}", Delete(LoggedModel)),
        Route::to::<logged_models::LogParams>("POST", "logged-models/{model_id}/params", Update(LoggedModel)),
        Route::to::<logged_models::SetTags>("PATCH", "logged-models/{model_id}/tags", Update(LoggedModel)),
        Route::to::<logged_models::DeleteTag>("DELETE", "logged-models/{model_id}/tags/{tag_key}", Delete(LoggedModel)),
        Route::to::<logged_models::ListArtifacts>(
            "GET",
            "logged-models/{model_id}/artifacts/directories",
            Read(LoggedModel),
        ),
        Route::to::<logged_models::GetArtifact>("GET", "logged-models/{model_id}/artifacts/files", Read(LoggedModel))
            .under(Paths::AjaxV2),
        //
        Route::to::<server_info::Info>("GET", "server-info", Open).under(Paths::V3),
        Route::json("GET", "ui-telemetry", Paths::AjaxV3, server_info::TELEMETRY_SETTINGS),
        Route::json("POST", "ui-telemetry", Paths::AjaxV3, r#"{"status":"disabled"}"#),
        Route::text("/health", Open, "OK"),
        Route::text("/version", SignedIn, server_info::VERSION),
    ]
}
