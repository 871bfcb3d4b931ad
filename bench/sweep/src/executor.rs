//! The executor of the model: a single thread with a simulated clock. The clock advances only when
//! all tasks are waiting.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::future::poll_fn;
use futures::task::{AtomicWaker, LocalSpawnExt};
use futures_executor::{LocalPool, LocalSpawner};
use runtime::clock::SimulatedClock;
use tokio::runtime::{Builder, Runtime};

use crate::{Failure, Result};

/// A thread with a simulated clock.
pub(crate) struct Executor {
    pool: LocalPool,
    simulation: SimulatedClock,
    busy: BusyCounter,
    /// A runtime that only serves to start the engine's threads. No tasks run on it.
    runtime: Runtime,
}

impl Executor {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { pool: LocalPool::new(), simulation: SimulatedClock::begin(), busy: BusyCounter::default(), runtime })
    }

    /// Returns the spawner for tasks.
    pub(crate) fn spawner(&self) -> LocalSpawner {
        self.pool.spawner()
    }

    /// Returns the counter of pending work on other threads. While there is any, the clock stands
    /// still.
    pub(crate) fn busy(&self) -> BusyCounter {
        self.busy.clone()
    }

    /// Runs all tasks until this one has finished.
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
                self.pool.run_until(self.busy.wait_until_idle());
            } else if !self.simulation.advance() {
                return Err(Failure::from("deadlock: all tasks wait, and none is sleeping"));
            }
        }
    }
}

/// A counter of pending work on other threads. Such work takes real time, but no simulated time.
#[derive(Clone, Default, Debug)]
pub(crate) struct BusyCounter(Arc<(AtomicUsize, AtomicWaker)>);

impl BusyCounter {
    /// Waits for work on another thread. The clock stands still until the work is done.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let (count, _) = &*self.0;
        count.fetch_add(1, Ordering::SeqCst);
        let _end = BusyGuard(self);
        work.await
    }

    fn is_any(&self) -> bool {
        self.0.0.load(Ordering::SeqCst) > 0
    }

    async fn wait_until_idle(&self) {
        poll_fn(|context| {
            self.0.1.register(context.waker());
            if self.is_any() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

struct BusyGuard<'a>(&'a BusyCounter);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        let (count, waker) = &*self.0.0;
        count.fetch_sub(1, Ordering::SeqCst);
        waker.wake();
    }
}

/// Sleeps until the duration `until` has passed since `since`.
pub(crate) async fn sleep_until(since: &runtime::clock::Moment, until: Duration) {
    runtime::clock::sleep(until.saturating_sub(since.age())).await;
}
