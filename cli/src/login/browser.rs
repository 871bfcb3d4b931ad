//! Opens the user's browser.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// A program that opens a URL.
pub(crate) struct Browser(OsString);

/// Returns the program that opens URLs: the one in the variable `BROWSER`, or that of the desktop.
/// Returns `None` on a machine without a display, and in a remote session, whose browser would not
/// be in front of the user.
pub(crate) fn command() -> Option<Browser> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(browser) = variable("BROWSER") {
        return Some(Browser(browser));
    }
    if variable("SSH_CONNECTION").is_some() {
        return None;
    }
    if cfg!(target_os = "macos") {
        return Some(Browser("open".into()));
    }
    variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY")).map(|_| Browser("xdg-open".into()))
}

impl Browser {
    /// Opens a URL. Returns whether the program was started.
    pub(crate) fn open(&self, url: &str) -> bool {
        let mut command = Command::new(&self.0);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    }
}
