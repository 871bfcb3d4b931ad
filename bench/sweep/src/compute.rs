//! The rule that predicts the processor time of functions, and with it the simulated time that
//! computing takes. It is the rule of `tools/cost`, applied to the fraction of a core that comes
//! with a function's memory. The processor time of this machine is measured as well, to check the
//! rule.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::Value;
use table::ConsumedUnits;

use crate::{Failure, Result};

const ASSUMPTIONS: &str = include_str!("../../../tools/cost/assumptions.json");

/// Coefficients of the rule for processor time, in ms on a whole core.
#[derive(Clone, Copy, Debug)]
pub struct CpuRule {
    /// Processor time per call of a client.
    pub call_ms: f64,
    /// Processor time per unit that a call reads or writes, not counting the units of indexes.
    pub unit_ms: f64,
    /// Processor time per unit that the indexer reads or writes while it indexes runs, not counting
    /// the units of indexes.
    pub indexed_unit_ms: f64,
    /// Processor time per unit that the indexer reads or writes while it packs traces, not counting
    /// the units of indexes.
    pub packed_unit_ms: f64,
    /// Memory of a function that has a whole core, in MB.
    pub whole_core_mb: f64,
}

impl CpuRule {
    /// Reads the rule from `tools/cost/assumptions.json`.
    ///
    /// # Errors
    /// The file lacks a value.
    pub fn read() -> Result<Self> {
        let assumptions: Value = serde_json::from_str(ASSUMPTIONS)?;
        let number = |path: &str| {
            assumptions.pointer(path).and_then(Value::as_f64).ok_or_else(|| Failure::from(format!("no {path}")))
        };
        let slower = number("/core of the load model/value")?;
        Ok(Self {
            call_ms: number("/cpu/ms a call")? * slower,
            unit_ms: number("/cpu/ms a unit")? * slower,
            indexed_unit_ms: number("/ms to index a run/value")? / number("/units to index a run/value")?,
            packed_unit_ms: number("/ms a unit of packing/value")?,
            whole_core_mb: number("/MB of a whole core/value")?,
        })
    }

    /// Returns how long a function with this memory takes for a computation that takes `computed`
    /// on a whole core. More memory than `whole_core_mb` does not make the function faster, because
    /// it has a single thread.
    #[must_use]
    pub fn slowed(&self, computed: Duration, memory_mb: u32) -> Duration {
        computed.mul_f64((self.whole_core_mb / f64::from(memory_mb)).max(1.0))
    }

    pub(crate) fn of_call(&self, usage: &ConsumedUnits) -> Duration {
        milliseconds(self.call_ms + self.unit_ms * units(usage))
    }

    pub(crate) fn of_indexer(&self, usage: &ConsumedUnits, packs_traces: bool) -> Duration {
        milliseconds(units(usage) * if packs_traces { self.packed_unit_ms } else { self.indexed_unit_ms })
    }
}

fn milliseconds(count: f64) -> Duration {
    Duration::from_secs_f64(count.max(0.0) / 1_000.0)
}

/// Returns the number of units that are read and written, without those of indexes.
pub(crate) fn units(usage: &ConsumedUnits) -> f64 {
    usage.read_units + usage.write_units - usage.local_index_units - usage.global_index_units
}

/// Runs the future, and returns its output with the processor time that this thread spent on it.
pub(crate) async fn measured<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let (mut work, total) = (pin!(work), Cell::new(Duration::ZERO));
    let output = poll_fn(|context| {
        let begin = thread_time();
        let state = work.as_mut().poll(context);
        total.set(total.get() + thread_time().saturating_sub(begin));
        state
    })
    .await;
    (output, total.get())
}

fn thread_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(tv_sec.try_into().unwrap_or_default(), tv_nsec.try_into().unwrap_or_default())
}
