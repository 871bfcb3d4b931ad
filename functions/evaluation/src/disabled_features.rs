//! Endpoints of issue detection, which requires jobs. This server does not run jobs, so the
//! endpoints respond as MLflow does if job execution is switched off. The endpoints of all other
//! features that are switched off are in the function `tracking`.

use service::Paths::AjaxV3;
use service::{Refusal, Route};

use crate::store::Store;

/// Returns the routes of features that are switched off.
pub(crate) fn routes() -> Vec<Route<Store>> {
    vec![
        Route::refused("POST", "issues/invoke", AjaxV3, Refusal::JOBS),
        // The page sends this request after it has stored a schedule. The response says that no
        // detection is scheduled.
        Route::json("POST", "issues/schedule/state", AjaxV3, r#"{"next_fire_time_ms":null}"#),
    ]
}
