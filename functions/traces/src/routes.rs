//! The route table: method, path, permission, handler.

use access::Permission::{Delete, List, Read, Update};
use access::Resource::{Experiment, Trace};
use service::Paths::{AjaxV2, AjaxV3, Bare, V3};
use service::Route;

use crate::store::Store;
use crate::{artifact, assessments, delete, figures, link, otlp, read, search, start, tags};

/// The rows of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        // OpenTelemetry's exporter gives up 10 seconds after it began.
        Route::to::<otlp::Export>("POST", "/v1/traces", Update(Experiment)).under(Bare).coming_back_after(1..=3),
        //
        Route::to::<start::Start>("POST", "traces", Update(Experiment)).under(V3),
        Route::to::<search::Search>("POST", "traces/search", List(Experiment)).under(V3),
        Route::to::<figures::Query>("POST", "traces/metrics", List(Experiment)).under(V3),
        Route::to::<figures::Correlate>("POST", "traces/calculate-filter-correlation", List(Experiment)).under(V3),
        Route::to::<read::Get>("GET", "traces/get", Read(Trace)).under(V3),
        Route::to::<read::BatchGet>("GET", "traces/batchGet", Read(Trace)).under(V3),
        Route::to::<read::BatchGetInfos>("POST", "traces/batchGetInfos", Read(Trace)).under(V3),
        Route::to::<delete::Delete>("POST", "traces/delete-traces", Delete(Experiment)).under(V3),
        Route::to::<read::GetInfo>("GET", "traces/{trace_id}", Read(Trace)).under(V3),
        Route::to::<tags::Set>("PATCH", "traces/{trace_id}/tags", Update(Trace)).under(V3),
        Route::to::<tags::Delete>("DELETE", "traces/{trace_id}/tags", Update(Trace)).under(V3),
        //
        Route::to::<assessments::Create>("POST", "traces/{trace_id}/assessments", Update(Trace)).under(V3),
        Route::to::<assessments::Get>("GET", "traces/{trace_id}/assessments/{assessment_id}", Read(Trace)).under(V3),
        Route::to::<assessments::Modify>("PATCH", "traces/{trace_id}/assessments/{assessment_id}", Update(Trace))
            .under(V3),
        Route::to::<assessments::Delete>("DELETE", "traces/{trace_id}/assessments/{assessment_id}", Update(Trace))
            .under(V3),
        //
        Route::to::<start::StartV2>("POST", "traces", Update(Experiment)),
        Route::to::<search::SearchV2>("GET", "traces", List(Experiment)),
        Route::to::<start::EndV2>("PATCH", "traces/{request_id}", Update(Trace)),
        Route::to::<read::GetInfoV2>("GET", "traces/{request_id}/info", Read(Trace)),
        Route::to::<delete::Delete>("POST", "traces/delete-traces", Delete(Experiment)),
        Route::to::<tags::Set>("PATCH", "traces/{request_id}/tags", Update(Trace)),
        Route::to::<tags::Delete>("DELETE", "traces/{request_id}/tags", Update(Trace)),
        // As in MLflow, the run is what is changed.
        Route::to::<link::LinkToRun>("POST", "traces/link-to-run", Read(Trace)),
        Route::to::<link::LinkPrompts>("POST", "traces/link-prompts", Update(Trace)),
        //
        Route::to::<artifact::Get>("GET", "get-trace-artifact", Read(Trace)).under(AjaxV2),
        Route::to::<artifact::Get>("GET", "get-trace-artifact", Read(Trace)).under(AjaxV3),
    ]
}
