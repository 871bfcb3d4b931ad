//! A simulated clock that only advances on request.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use crate::clock::Moment;

thread_local! {
    static CLOCK: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// Time past a full second at which simulations start. DynamoDB does not store trailing zeros of a
/// number, so a time in ms that ends in zero takes one byte less. If the times of a thousand items
/// ended in zero, one unit less would be metered for them.
const START_OFFSET: Duration = Duration::from_millis(123);

struct Clock {
    begin: Moment,
    elapsed: Duration,
    /// Wakers of sleeping tasks, by the time at which the tasks wake up, and then in the order in
    /// which they fell asleep.
    sleepers: BTreeMap<(Duration, u64), Waker>,
    asleep: u64,
    /// The task that advances the clock when a task falls asleep.
    driver: Option<Waker>,
}

/// The simulated clock of the current thread, used by all code on the thread until this is dropped.
/// It stands still until [`advance`](Self::advance) sets it to the next time at which a task wakes
/// up.
#[derive(Debug)]
pub struct SimulatedClock {
    /// Makes this type neither `Send` nor `Sync`, because the clock belongs to its thread.
    _of_this_thread: PhantomData<*const ()>,
}

impl SimulatedClock {
    /// Starts a simulated clock at [`START_OFFSET`] past the next full second. A thread has one
    /// simulation at a time: starting another one replaces it.
    #[must_use]
    pub fn begin() -> Self {
        let now = Moment::of_the_machine();
        let of_second = now.time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        let begin =
            now.after((Duration::from_secs(1) + START_OFFSET).saturating_sub(Duration::from_nanos(of_second.into())));
        let clock = Clock { begin, elapsed: Duration::ZERO, sleepers: BTreeMap::new(), asleep: 0, driver: None };
        CLOCK.with_borrow_mut(|current| *current = Some(clock));
        Self { _of_this_thread: PhantomData }
    }

    /// Returns the simulated time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        CLOCK.with_borrow(|clock| clock.as_ref().map(|clock| clock.elapsed).unwrap_or_default())
    }

    /// Advances the clock to the next time at which tasks wake up, and wakes them. Returns `false`
    /// if no task is sleeping.
    #[must_use]
    pub fn advance(&self) -> bool {
        let woken = CLOCK.with_borrow_mut(|clock| {
            let clock = clock.as_mut()?;
            let (next, _) = *clock.sleepers.first_key_value()?.0;
            clock.elapsed = clock.elapsed.max(next);
            let later = clock.sleepers.split_off(&(clock.elapsed, u64::MAX));
            Some(std::mem::replace(&mut clock.sleepers, later))
        });
        // Tasks are woken after the borrow of the clock has ended, because a woken task may read
        // the clock.
        let is_any = woken.is_some();
        woken.into_iter().flatten().for_each(|(_, waker)| waker.wake());
        is_any
    }

    /// Advances the clock whenever a task falls asleep, so that no task waits in real time. Never
    /// returns.
    pub async fn drive(&self) {
        poll_fn::<(), _>(|context| {
            while self.advance() {}
            CLOCK.with_borrow_mut(|clock| {
                if let Some(clock) = clock {
                    clock.driver = Some(context.waker().clone());
                }
            });
            Poll::Pending
        })
        .await;
    }
}

impl Drop for SimulatedClock {
    fn drop(&mut self) {
        // The wakers are dropped after the borrow of the clock has ended. Dropping the last waker
        // of a task drops the task and its `Sleep`s, which borrow the clock themselves.
        let ended = CLOCK.with_borrow_mut(Option::take);
        drop(ended);
    }
}

/// Returns the current time of this thread's simulation, if there is one.
pub(crate) fn now() -> Option<Moment> {
    CLOCK.with_borrow(|clock| clock.as_ref().map(|clock| clock.begin.after(clock.elapsed)))
}

/// Returns a future that sleeps in this thread's simulation, if there is one.
pub(crate) fn sleep(duration: Duration) -> Option<impl Future<Output = ()> + Send> {
    let until = CLOCK.with_borrow(|clock| clock.as_ref().map(|clock| clock.elapsed + duration))?;
    Some(Sleep { until, number: None })
}

/// A sleeping task. Dropping it, for example because the other half of a joined call has failed,
/// removes it, so that the clock does not advance for it.
struct Sleep {
    until: Duration,
    /// Number of this sleep, in the order in which tasks fell asleep. `None` until the task falls
    /// asleep.
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        CLOCK.with_borrow_mut(|clock| match clock {
            Some(clock) if clock.elapsed < self.until => {
                let number = *self.number.get_or_insert_with(|| {
                    clock.asleep += 1;
                    clock.asleep
                });
                clock.sleepers.insert((self.until, number), context.waker().clone());
                if let Some(driver) = clock.driver.take() {
                    driver.wake();
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let forget = |clock: &RefCell<Option<Clock>>| {
            // The clock can only be borrowed already if the simulation is ending and drops its
            // sleepers, because tasks are never woken while the clock is borrowed.
            let mut clock = clock.try_borrow_mut().ok()?;
            clock.as_mut()?.sleepers.remove(&(self.until, number))
        };
        let waker = CLOCK.try_with(forget);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::clock::now_ms;

    #[test]
    fn time_passes_only_where_somebody_sleeps() {
        let simulation = SimulatedClock::begin();
        let (moment, time) = (Moment::now(), now_ms());
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!((moment.age(), now_ms()), (Duration::ZERO, time));
        let mut context = Context::from_waker(Waker::noop());
        let (mut long, mut short) =
            (pin!(crate::clock::sleep(Duration::from_hours(1))), pin!(crate::clock::sleep(Duration::from_secs(1))));
        assert!(long.as_mut().poll(&mut context).is_pending() && short.as_mut().poll(&mut context).is_pending());
        assert!(simulation.advance());
        assert_eq!((moment.age(), simulation.elapsed()), (Duration::from_secs(1), Duration::from_secs(1)));
        assert!(short.poll(&mut context).is_ready() && long.as_mut().poll(&mut context).is_pending());
        assert!(simulation.advance());
        assert_eq!((moment.age(), now_ms() - time), (Duration::from_hours(1), 3_600_000));
        assert!(long.poll(&mut context).is_ready() && !simulation.advance());
        drop(simulation);
        assert!(Moment::now().age() < Duration::from_mins(1));
    }

    #[test]
    fn no_time_passes_for_a_sleeper_who_was_dropped() {
        let simulation = SimulatedClock::begin();
        let mut context = Context::from_waker(Waker::noop());
        let mut dropped = Box::pin(crate::clock::sleep(Duration::from_hours(1)));
        assert!(dropped.as_mut().poll(&mut context).is_pending() && dropped.as_mut().poll(&mut context).is_pending());
        drop(dropped);
        assert!(!simulation.advance());
        assert_eq!(simulation.elapsed(), Duration::ZERO);
    }

    #[test]
    fn nobody_waits_while_it_is_driven() {
        let simulation = SimulatedClock::begin();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let hours = async {
            // The driver is polled together with `hours`, and not with the spawned task. It must
            // advance the clock for the spawned task nevertheless.
            let spawned = tokio::spawn(crate::clock::sleep(Duration::from_hours(2)));
            crate::clock::sleep(Duration::from_hours(1)).await;
            spawned.await.unwrap();
        };
        runtime.block_on(async {
            tokio::select! { () = hours => {}, () = simulation.drive() => {} }
        });
        assert!(simulation.elapsed() >= Duration::from_hours(2));
    }
}
