//! Parts that the page does not show, because this server does not have the feature: a style sheet
//! and a script of ours, which the page loads before the build's own. When a feature is built, its
//! lines here go.

/// Where the style sheet is.
pub(crate) const STYLE_PATH: &str = "/static-files/absent.css";
/// Where the script is.
pub(crate) const SCRIPT_PATH: &str = "/static-files/absent.js";

/// Hides buttons and links that would lead nowhere: the Assistant, demo data, and the pages of
/// features that are not built.
pub(crate) const STYLE: &str = include_str!("absent.css");

/// Keeps the Assistant from opening by itself, and a notice about telemetry away, which is off.
pub(crate) const SCRIPT: &str = include_str!("absent.js");
