//! Waiting for the signal to shut down.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for ctrl-c or `SIGTERM`.
pub(crate) async fn wait_for_shutdown() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // If the handler cannot be installed, ctrl-c still works.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
