//! Endpoints that detect issues by jobs, which this server does not run. They respond as MLflow
//! does without job execution; the other features that are switched off are in the function
//! `tracking`.

use service::Paths::AjaxV3;
use service::{Refusal, Route};

use crate::store::Store;

/// Returns the routes of features that are switched off.
pub(crate) fn routes() -> Vec<Route<Store>> {
    vec![
        Route::refused("POST", "issues/invoke", AjaxV3, Refusal::JOBS),
        // The page requests this after it has stored a schedule. No detection is scheduled.
        Route::json("POST", "issues/schedule/state", AjaxV3, r#"{"next_fire_time_ms":null}"#),
    ]
}
