//! Long computing, where it holds nobody up.

use mlflow_api::{Error, Result};

/// Bytes from which on computing with them takes milliseconds.
const LONG: usize = 64 << 10;

/// Computes something of so many bytes: on a thread of its own, where that takes long, as an async worker has others to serve.
pub(super) async fn aside<T: Send + 'static>(bytes: usize, compute: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if bytes < LONG {
        return Ok(compute());
    }
    clock::aside(compute).await.map_err(Error::internal)
}
