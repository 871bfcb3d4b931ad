//! What runs the model: one thread, whose clock goes on when nobody there has anything left to do.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use clock::Simulation;
use futures::future::poll_fn;
use futures::task::{AtomicWaker, LocalSpawnExt};
use futures_executor::{LocalPool, LocalSpawner};
use tokio::runtime::{Builder, Runtime};

use crate::{Failure, Result};

/// A thread with a virtual clock.
pub(crate) struct Machine {
    pool: LocalPool,
    simulation: Simulation,
    busy: Busy,
    /// The engine's threads are its own. Nothing else runs here.
    runtime: Runtime,
}

impl Machine {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { pool: LocalPool::new(), simulation: Simulation::begin(), busy: Busy::default(), runtime })
    }

    /// Where tasks are begun.
    pub(crate) fn spawner(&self) -> LocalSpawner {
        self.pool.spawner()
    }

    /// What keeps the clock from going on.
    pub(crate) fn busy(&self) -> Busy {
        self.busy.clone()
    }

    /// Runs all tasks until this one has ended.
    pub(crate) fn run<T: 'static>(&mut self, task: impl Future<Output = Result<T>> + 'static) -> Result<T> {
        let _threads = self.runtime.enter();
        let outcome = Rc::new(Cell::new(None));
        let place = Rc::clone(&outcome);
        self.pool.spawner().spawn_local(async move { place.set(Some(task.await)) })?;
        loop {
            self.pool.run_until_stalled();
            if let Some(outcome) = outcome.take() {
                return outcome;
            }
            if self.busy.is_any() {
                self.pool.run_until(self.busy.none());
            } else if !self.simulation.advance() {
                return Err(Failure::from("everybody waits for something that never comes"));
            }
        }
    }
}

/// Work on other threads, which takes no time of the model.
#[derive(Clone, Default, Debug)]
pub(crate) struct Busy(Arc<(AtomicUsize, AtomicWaker)>);

impl Busy {
    /// Does such work.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let (count, _) = &*self.0;
        count.fetch_add(1, Ordering::SeqCst);
        let _end = End(self);
        work.await
    }

    fn is_any(&self) -> bool {
        self.0.0.load(Ordering::SeqCst) > 0
    }

    async fn none(&self) {
        poll_fn(|context| {
            self.0.1.register(context.waker());
            if self.is_any() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

struct End<'a>(&'a Busy);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let (count, waker) = &*self.0.0;
        count.fetch_sub(1, Ordering::SeqCst);
        waker.wake();
    }
}

/// Sleeps until so long after the beginning.
pub(crate) async fn sleep_until(since: &clock::Moment, until: Duration) {
    clock::sleep(until.saturating_sub(since.age())).await;
}
