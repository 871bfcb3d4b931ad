//! When to stop.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for ctrl-c or a request to end.
pub(crate) async fn wait_for_end() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // Without that signal, ctrl-c still works.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
