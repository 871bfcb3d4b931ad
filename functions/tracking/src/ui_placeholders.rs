//! Responses to the MLflow UI's requests for features that this server does not have. With these
//! responses, pages show such a feature as empty, or do not show it at all. With a 404, they would
//! show an error (`docs/guide/ui.md`).
//!
//! The placeholder routes are not endpoints: they are not in [`crate::routes`], count as missing in
//! `docs/reference/coverage.md`, and are served only under `/ajax-api`. Under `/api`, a client that
//! requests one of these paths gets MLflow's 404, or the response of a feature that is switched off
//! ([`crate::disabled_features`]), so it never mistakes a missing feature for an empty result.

use service::Paths::{AjaxV2, AjaxV3};
use service::Route;

use crate::store::Store;

/// Returns the routes of the placeholders, in the order of the UI's pages.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        // Requests of the Assistant. `functions/ui` also hides the Assistant's button, because the
        // page does not send this request if it is served from a local address.
        Route::json(
            "GET",
            "assistant/config",
            AjaxV3,
            r#"{"providers":{},"projects":{},"remote_access_allowed":false}"#,
        ),
        Route::json("GET", "assistant/providers", AjaxV3, r#"{"providers":[]}"#),
        // Requests of the AI gateway's pages. `server-info` reports that the server has no gateway,
        // so the UI hides most of them.
        Route::json("GET", "gateway-proxy", AjaxV2, r#"{"endpoints":[]}"#),
        Route::json("POST", "gateway-proxy", AjaxV2, r#"{"endpoints":[]}"#),
        Route::json("GET", "gateway/endpoints/list", AjaxV3, r#"{"endpoints":[]}"#),
        Route::json("GET", "gateway/endpoints/bindings/list", AjaxV3, "{}"),
        Route::json("GET", "gateway/model-definitions/list", AjaxV3, "{}"),
        Route::json("GET", "gateway/secrets/list", AjaxV3, "{}"),
    ]
}
