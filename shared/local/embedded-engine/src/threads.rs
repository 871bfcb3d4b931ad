//! The threads of an engine.
//!
//! Operations run one at a time. If each call had its own thread, the threads would mostly wait for
//! each other, and memory would be allocated by one thread and freed by another. Instead, the
//! engine has a few threads that take turns executing the calls. A write that has to wait for the
//! disk is passed on to another thread, so that the next call can run in the meantime, and waiting
//! writes share one sync.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use crate::aws_json::EngineResponse;
use crate::log_sync::SyncedLog;

/// Number of threads for calls that may write. While one thread is in the engine, the other can
/// parse a request or serialize a response.
const WRITE_THREADS: usize = 2;
/// Number of threads for reads that run concurrently with writes. Only on disk.
const READ_THREADS: usize = 2;

/// A call, with the channel for its response.
struct EngineCall {
    run: Box<dyn FnOnce() -> EngineResponse + Send>,
    /// The log that has to be synced before the response is sent, if the call succeeds. `None` if
    /// the call does not wait for a sync.
    log: Option<Arc<SyncedLog>>,
    reply: oneshot::Sender<EngineResponse>,
}

/// A write that is answered once it is on disk, with its position in the log's queue.
struct PendingWrite {
    log: Arc<SyncedLog>,
    place: u64,
    answer: EngineResponse,
    reply: oneshot::Sender<EngineResponse>,
}

/// The threads of an engine. They end when the last clone of the engine is dropped and all calls
/// are answered.
pub(crate) struct EngineThreads {
    writes: Sender<EngineCall>,
    reads: Option<Sender<EngineCall>>,
}

impl fmt::Debug for EngineThreads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Threads")
    }
}

impl EngineThreads {
    /// Starts the threads. An engine in memory needs fewer threads, because no operation waits for
    /// a disk, and reads do not run concurrently with writes.
    ///
    /// # Errors
    /// The operating system cannot start more threads.
    pub(crate) fn start(on_disk: bool) -> std::io::Result<Self> {
        let (writes, calls) = mpsc::channel();
        if !on_disk {
            start("engine", WRITE_THREADS, calls, |call: EngineCall| call.run(None))?;
            return Ok(Self { writes, reads: None });
        }
        let (to_disk, written) = mpsc::channel();
        start("engine-disk", 1, written, |written: PendingWrite| written.sync_and_answer())?;
        start("engine", WRITE_THREADS, calls, move |call: EngineCall| call.run(Some(&to_disk)))?;
        let (reads, calls) = mpsc::channel();
        start("engine-read", READ_THREADS, calls, |call: EngineCall| call.run(None))?;
        Ok(Self { writes, reads: Some(reads) })
    }

    /// Runs a call that may write. If there is a log, the call is answered once the log is synced.
    /// Returns `None` if the engine has failed and the outcome of the call is unknown.
    pub(crate) async fn write(
        &self,
        log: Option<Arc<SyncedLog>>,
        run: impl FnOnce() -> EngineResponse + Send + 'static,
    ) -> Option<EngineResponse> {
        let (reply, answer) = oneshot::channel();
        self.writes.send(EngineCall { run: Box::new(run), log, reply }).ok()?;
        answer.await.ok()
    }

    /// Runs a call that reads. If the engine is on disk, it runs concurrently with writes.
    pub(crate) async fn read(&self, run: impl FnOnce() -> EngineResponse + Send + 'static) -> Option<EngineResponse> {
        let (reply, answer) = oneshot::channel();
        let reads = self.reads.as_ref().unwrap_or(&self.writes);
        reads.send(EngineCall { run: Box::new(run), log: None, reply }).ok()?;
        answer.await.ok()
    }
}

impl EngineCall {
    fn run(self, to_disk: Option<&Sender<PendingWrite>>) {
        let Self { run, log, reply } = self;
        // A panic loses only the response to this call. The thread survives.
        let Ok(answer) = catch_unwind(AssertUnwindSafe(run)) else {
            tracing::error!("the engine has failed");
            return;
        };
        // A refused call has written nothing, so it does not wait for the log. Sending fails if the
        // receiver is gone, which is ignored.
        match log.filter(|_| answer.status == 200) {
            Some(log) => {
                let written = PendingWrite { place: log.arrive(), log, answer, reply };
                match to_disk {
                    Some(to_disk) => drop(to_disk.send(written)),
                    // An engine without a disk thread syncs the log on the thread that has run the
                    // call.
                    None => written.sync_and_answer(),
                }
            }
            None => {
                let _ = reply.send(answer);
            }
        }
    }
}

impl PendingWrite {
    fn sync_and_answer(self) {
        let is_on_disk = self.log.wait_for(self.place).is_ok();
        let _ = self.reply.send(if is_on_disk { self.answer } else { EngineResponse::failed() });
    }
}

/// Starts threads that take turns at the calls.
fn start<T: Send + 'static>(
    name: &str,
    count: usize,
    come: Receiver<T>,
    run: impl Fn(T) + Send + Clone + 'static,
) -> std::io::Result<()> {
    let come = Arc::new(Mutex::new(come));
    for _ in 0..count {
        let (come, run) = (Arc::clone(&come), run.clone());
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                let next = come.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(next) = next else { return };
                run(next);
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    fn answer(body: &str) -> EngineResponse {
        EngineResponse::ok(body.to_owned())
    }

    /// Returns a function that blocks until the returned sender is dropped.
    fn barrier() -> (Sender<()>, impl FnOnce() + Send) {
        let (open, closed) = mpsc::channel::<()>();
        let wait = move || {
            let _ = closed.recv();
        };
        (open, wait)
    }

    async fn body(call: impl Future<Output = Option<EngineResponse>>) -> String {
        call.await.unwrap().body
    }

    /// Checks whether a call stays unanswered for 100 ms.
    async fn waits(call: &mut (impl Future<Output = Option<EngineResponse>> + Unpin)) -> bool {
        tokio::time::timeout(Duration::from_millis(100), call).await.is_err()
    }

    #[tokio::test]
    async fn a_call_that_panics_takes_its_own_answer_with_it() {
        for on_disk in [false, true] {
            let threads = EngineThreads::start(on_disk).unwrap();
            for _ in 0..3 * (WRITE_THREADS + READ_THREADS) {
                assert!(threads.write(None, || panic!("a test")).await.is_none());
                assert!(threads.read(|| panic!("a test")).await.is_none());
            }
            assert_eq!(body(threads.write(None, || answer("written"))).await, "written");
            assert_eq!(body(threads.read(|| answer("read"))).await, "read");
        }
    }

    #[tokio::test]
    async fn what_reads_does_not_wait_for_writes_on_disk() {
        for on_disk in [false, true] {
            let threads = EngineThreads::start(on_disk).unwrap();
            let (opens, closed): (Vec<_>, Vec<_>) = (0..WRITE_THREADS).map(|_| barrier()).unzip();
            let writes = closed.into_iter().map(|closed| {
                threads.write(None, move || {
                    closed();
                    answer("written")
                })
            });
            let mut writes = Box::pin(join_all(writes));
            assert!(tokio::time::timeout(Duration::from_millis(100), &mut writes).await.is_err());
            let mut read = Box::pin(threads.read(|| answer("read")));
            if on_disk {
                assert_eq!(body(read).await, "read");
                drop(opens);
            } else {
                assert!(waits(&mut read).await, "all calls share one queue");
                drop(opens);
                assert_eq!(body(read).await, "read");
            }
            assert_eq!(writes.await.into_iter().flatten().count(), WRITE_THREADS);
        }
    }

    #[tokio::test]
    async fn a_write_is_answered_when_the_disk_has_it_and_the_next_runs_meanwhile() {
        let threads = EngineThreads::start(true).unwrap();
        let (open, closed) = mpsc::channel::<()>();
        let (closed, syncs) = (Mutex::new(closed), Arc::<AtomicU64>::default());
        let log = Arc::new(SyncedLog::new({
            let syncs = Arc::clone(&syncs);
            move || {
                let _ = closed.lock().unwrap().recv();
                syncs.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        }));
        let ran = Arc::<AtomicU64>::default();
        let calls = (0..10 * WRITE_THREADS).map(|_| {
            let ran = Arc::clone(&ran);
            let write = move || {
                ran.fetch_add(1, Ordering::SeqCst);
                answer("written")
            };
            threads.write(Some(Arc::clone(&log)), write)
        });
        let mut calls = Box::pin(join_all(calls));
        while ran.load(Ordering::SeqCst) < 10 * WRITE_THREADS as u64 {
            assert!(tokio::time::timeout(Duration::from_millis(10), &mut calls).await.is_err());
        }
        // Two kinds of writes do not wait for a sync: a refused write, because it has changed
        // nothing, and a write without a log.
        let refused = || EngineResponse { status: 400, body: "refused".to_owned() };
        assert_eq!(body(threads.write(Some(Arc::clone(&log)), refused)).await, "refused");
        assert_eq!(body(threads.write(None, || answer("no log"))).await, "no log");
        drop(open);
        assert_eq!(calls.await.into_iter().flatten().count(), 10 * WRITE_THREADS);
        assert!(syncs.load(Ordering::SeqCst) < 5, "concurrent writes share a sync");
    }

    #[tokio::test]
    async fn a_write_that_the_disk_refuses_has_failed() {
        for on_disk in [false, true] {
            let threads = EngineThreads::start(on_disk).unwrap();
            let log = Arc::new(SyncedLog::new(|| Err(std::io::Error::other("full"))));
            let failed = threads.write(Some(log), || answer("written")).await.unwrap();
            assert_eq!(failed.status, 500);
        }
    }

    #[tokio::test]
    async fn what_has_been_asked_for_is_answered_when_the_engine_is_gone() {
        for on_disk in [false, true] {
            let threads = EngineThreads::start(on_disk).unwrap();
            let (open, closed) = barrier();
            let (reply, first) = oneshot::channel();
            let run = Box::new(move || {
                closed();
                answer("written")
            });
            threads.writes.send(EngineCall { run, log: None, reply }).unwrap();
            drop(threads);
            drop(open);
            assert_eq!(first.await.unwrap().body, "written");
        }
    }
}
