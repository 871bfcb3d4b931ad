//! A style sheet and a script that hide the parts of the page whose features this server does not
//! have. The page loads them before the build's own files. When a feature is implemented, the lines
//! that hide it are removed here.

/// Path of the style sheet.
pub(crate) const STYLE_PATH: &str = "/static-files/absent.css";
/// Path of the script.
pub(crate) const SCRIPT_PATH: &str = "/static-files/absent.js";

/// A style sheet that hides buttons and links that would lead nowhere: the Assistant, demo data,
/// and the pages of missing features.
pub(crate) const STYLE: &str = include_str!("absent.css");

/// A script that keeps the Assistant from opening automatically, and hides a notice about
/// telemetry, which is off.
pub(crate) const SCRIPT: &str = include_str!("absent.js");
