//! What MLflow's UI asks for about traces and this server does not have yet. The answers here make its pages show nothing, where a 404
//! would make them show an error (`docs/ui.md`). These rows are no endpoints, as in the tracking function.

use service::Paths::{AjaxV2, AjaxV3};
use service::Route;

use crate::store::Store;

/// Their rows.
#[must_use]
pub fn rows() -> Vec<Route<Store>> {
    vec![
        // On the pages of experiments, runs and models.
        Route::json("POST", "traces/search", AjaxV3, "{}"),
        Route::json("POST", "traces/metrics", AjaxV3, "{}"),
        Route::json("GET", "traces", AjaxV2, "{}"),
    ]
}
