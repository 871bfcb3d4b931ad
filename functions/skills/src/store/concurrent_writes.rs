//! Concurrent writes that are all complete when an error is returned.

use futures::stream::{FuturesUnordered, StreamExt};
use mlflow_api::Result;

/// Executes writes, at most `concurrency` of them at a time. After a failure, begins no other write,
/// and waits until all writes that have begun are complete. What they have written can then be
/// deleted.
///
/// # Errors
/// Returns the first failure.
pub(super) async fn complete_writes<F: Future<Output = Result<()>>>(
    writes: impl Iterator<Item = F>,
    concurrency: usize,
) -> Result<()> {
    let (mut running, mut outcome) = (FuturesUnordered::new(), Ok(()));
    for write in writes {
        if running.len() >= concurrency
            && let Some(written) = running.next().await
        {
            outcome = outcome.and(written);
        }
        if outcome.is_err() {
            break;
        }
        running.push(write);
    }
    while let Some(written) = running.next().await {
        outcome = outcome.and(written);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use mlflow_api::Error;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_failure_ends_no_write_that_has_begun() {
        let (failed, is_failed) = oneshot::channel();
        let (mut failed, mut is_failed) = (Some(failed), Some(is_failed));
        let written = &Mutex::new(Vec::new());
        let writes = (0..4).map(|number| {
            let (failed, is_failed) = match number {
                0 => (None, is_failed.take()),
                1 => (failed.take(), None),
                _ => (None, None),
            };
            async move {
                if let Some(failed) = failed {
                    failed.send(()).unwrap();
                    return Err(Error::invalid("the disk is full"));
                }
                if let Some(is_failed) = is_failed {
                    is_failed.await.unwrap();
                    tokio::task::yield_now().await;
                }
                written.lock().unwrap().push(number);
                Ok(())
            }
        });
        assert_eq!(complete_writes(writes, 2).await.unwrap_err().message, "the disk is full");
        assert_eq!(*written.lock().unwrap(), [0]);
    }
}
