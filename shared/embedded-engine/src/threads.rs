//! The threads of an engine.
//!
//! Operations run one at a time, whoever asks, so a thread for each call would only wait for others, and what one allocates another would
//! free. A few threads of the engine's own take them in turn. A write that has to wait for the disk is handed on: the next one runs
//! meanwhile, and what has come together shares one wait.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use crate::log::Log;
use crate::wire::Answer;

/// Threads that run what may write. One reads a request or makes an answer of JSON while another has the engine.
const WRITING: usize = 2;
/// Threads that read beside them; only on disk.
const READING: usize = 2;

/// A call, and who waits for its answer.
struct Call {
    run: Box<dyn FnOnce() -> Answer + Send>,
    /// What has to be on the disk before the answer, if the call succeeds.
    log: Option<Arc<Log>>,
    reply: oneshot::Sender<Answer>,
}

/// A write that is to be answered when the disk has it: its place in the log's queue.
struct Written {
    log: Arc<Log>,
    place: u64,
    answer: Answer,
    reply: oneshot::Sender<Answer>,
}

/// They end when the last clone of their engine is gone and all is answered.
pub(crate) struct Threads {
    writes: Sender<Call>,
    reads: Option<Sender<Call>>,
}

impl fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Threads")
    }
}

impl Threads {
    /// Starts them; those that read only where there is something to read beside the writes.
    ///
    /// # Errors
    /// The operating system's, where it has no threads left.
    pub(crate) fn start(has_readers: bool) -> std::io::Result<Self> {
        let (to_disk, written) = mpsc::channel();
        start("engine-disk", 1, written, |written: Written| written.sync_and_answer())?;
        let (writes, calls) = mpsc::channel();
        start("engine", WRITING, calls, {
            let to_disk = to_disk.clone();
            move |call: Call| call.run(&to_disk)
        })?;
        let reads = if has_readers {
            let (reads, calls) = mpsc::channel();
            start("engine-read", READING, calls, move |call: Call| call.run(&to_disk))?;
            Some(reads)
        } else {
            None
        };
        Ok(Self { writes, reads })
    }

    /// Runs a call that writes; it is answered when the log is on the disk, where there is one. `None` if the engine has failed in a way
    /// of which nobody knows what became of the call.
    pub(crate) async fn write(
        &self,
        log: Option<Arc<Log>>,
        run: impl FnOnce() -> Answer + Send + 'static,
    ) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.writes.send(Call { run: Box::new(run), log, reply }).ok()?;
        answer.await.ok()
    }

    /// Runs a call that reads; beside the writes, where the engine can.
    pub(crate) async fn read(&self, run: impl FnOnce() -> Answer + Send + 'static) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        let reads = self.reads.as_ref().unwrap_or(&self.writes);
        reads.send(Call { run: Box::new(run), log: None, reply }).ok()?;
        answer.await.ok()
    }
}

impl Call {
    fn run(self, to_disk: &Sender<Written>) {
        let Self { run, log, reply } = self;
        // A call that panics takes its own answer with it, not the thread.
        let Ok(answer) = catch_unwind(AssertUnwindSafe(run)) else {
            tracing::error!("the engine has failed");
            return;
        };
        // What was refused has written nothing. And who asked may have gone away.
        match log.filter(|_| answer.status == 200) {
            Some(log) => {
                let place = log.arrive();
                let _ = to_disk.send(Written { log, place, answer, reply });
            }
            None => {
                let _ = reply.send(answer);
            }
        }
    }
}

impl Written {
    fn sync_and_answer(self) {
        let is_on_disk = self.log.wait_for(self.place).is_ok();
        let _ = self.reply.send(if is_on_disk { self.answer } else { Answer::failed() });
    }
}

/// Starts threads that take turns at what comes.
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
