//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, Read, Update};
use access::Resource::{Assessment, Run, Trace};
use service::Paths::{AjaxV2, AjaxV3, Bare, V3};
use service::Route;

use crate::store::Store;
use crate::{assessments, delete, link, otlp, read, search, start, tags, trace_artifact, trace_metrics};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        // `Retry-After` is a few seconds, because OpenTelemetry's exporter gives up after 10
        // seconds, including retries.
        Route::to::<otlp::Export>("POST", "/v1/traces", Create(Trace)).under(Bare).with_retry_after(1..=3),
        //
        Route::to::<start::Start>("POST", "traces", Create(Trace)).under(V3),
        Route::to::<search::Search>("POST", "traces/search", Read(Trace)).under(V3),
        Route::to::<trace_metrics::Query>("POST", "traces/metrics", Read(Trace)).under(V3),
        Route::to::<trace_metrics::Correlate>("POST", "traces/calculate-filter-correlation", Read(Trace)).under(V3),
        Route::to::<read::Get>("GET", "traces/get", Read(Trace)).under(V3),
        Route::to::<read::BatchGet>("GET", "traces/batchGet", Read(Trace)).under(V3),
        Route::to::<read::BatchGetInfos>("POST", "traces/batchGetInfos", Read(Trace)).under(V3),
        Route::to::<delete::Delete>("POST", "traces/delete-traces", Delete(Trace)).under(V3),
        Route::to::<read::GetInfo>("GET", "traces/{trace_id}", Read(Trace)).under(V3),
        Route::to::<tags::Set>("PATCH", "traces/{trace_id}/tags", Update(Trace)).under(V3),
        Route::to::<tags::Delete>("DELETE", "traces/{trace_id}/tags", Update(Trace)).under(V3),
        //
        Route::to::<assessments::Create>("POST", "traces/{trace_id}/assessments", Create(Assessment)).under(V3),
        Route::to::<assessments::Get>("GET", "traces/{trace_id}/assessments/{assessment_id}", Read(Assessment))
            .under(V3),
        Route::to::<assessments::Modify>("PATCH", "traces/{trace_id}/assessments/{assessment_id}", Update(Assessment))
            .under(V3),
        Route::to::<assessments::Delete>("DELETE", "traces/{trace_id}/assessments/{assessment_id}", Delete(Assessment))
            .under(V3),
        //
        Route::to::<start::StartV2>("POST", "traces", Create(Trace)),
        Route::to::<search::SearchV2>("GET", "traces", Read(Trace)),
        Route::to::<start::EndV2>("PATCH", "traces/{request_id}", Update(Trace)),
        Route::to::<read::GetInfoV2>("GET", "traces/{request_id}/info", Read(Trace)),
        Route::to::<delete::Delete>("POST", "traces/delete-traces", Delete(Trace)),
        Route::to::<tags::Set>("PATCH", "traces/{request_id}/tags", Update(Trace)),
        Route::to::<tags::Delete>("DELETE", "traces/{request_id}/tags", Update(Trace)),
        // As in MLflow, linking a trace to a run requires permission to update the run.
        Route::to::<link::LinkToRun>("POST", "traces/link-to-run", Update(Run)),
        Route::to::<link::LinkPrompts>("POST", "traces/link-prompts", Update(Trace)),
        //
        Route::to::<trace_artifact::Get>("GET", "get-trace-artifact", Read(Trace)).under(AjaxV2),
        Route::to::<trace_artifact::Get>("GET", "get-trace-artifact", Read(Trace)).under(AjaxV3),
    ]
}
