//! Scenarios, and their results.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_engine::limits::Throughput;

use crate::call_counts::CallCounts;
use crate::compute::CpuRule;
use crate::executor::Executor;
use crate::gateway::RequestLimit;
use crate::indexing_lag::WaitingTimes;
use crate::load::Load;
use crate::partitions::PartitionKind;
use crate::simulated_stack::{SimulatedStack, StackSettings};
use crate::stream_delivery::IndexerWork;
use crate::{Result, run_clients};

/// A load on one experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario, as used in file names.
    pub name: &'static str,
    /// The load that the jobs cause.
    pub load: Load,
    /// Throughput limit of each partition.
    pub throughput: Throughput,
    /// Limit of the requests that the gateway accepts.
    pub requests: RequestLimit,
    /// Memory of the indexer, in MB.
    pub indexer_memory: u32,
    /// Simulated time before the measurement starts.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub sample: Duration,
}

/// The results of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The scenario that was run.
    pub scenario: Scenario,
    /// The calls during the measurement.
    pub tally: CallCounts,
    /// The calls before the measurement.
    pub before: CallCounts,
    /// Consumption of partitions, by the form of their keys.
    pub partitions: BTreeMap<String, PartitionKind>,
    /// How long changes waited for the indexer.
    pub waits: WaitingTimes,
    /// Number of waiting stream records at the end of each second.
    pub queue: Vec<f64>,
    /// Number of sandboxes that were started for the function that serves the load.
    pub sandboxes: u32,
    /// Work of each shard's indexer, and work of the ticks.
    pub indexers: Vec<IndexerWork>,
    /// The rule that determines how much simulated time computing takes.
    pub rule: CpuRule,
}

impl Scenario {
    /// Runs the scenario on the current thread. Calls `second` after each second of simulated time.
    ///
    /// # Errors
    /// A call was answered with an unexpected status, or the engine failed.
    pub fn run(&self, second: impl Fn() + 'static) -> Result<ScenarioResult> {
        let mut machine = Executor::new()?;
        let (spawner, busy, scenario) = (machine.spawner(), machine.busy(), self.clone());
        machine.run(async move {
            let settings = StackSettings {
                load: scenario.load,
                throughput: scenario.throughput,
                requests: scenario.requests,
                indexer_memory: scenario.indexer_memory,
            };
            let world = Box::pin(SimulatedStack::new(spawner, busy, settings)).await?;
            world.begin_feed().await?;
            run_clients::begin(&world, scenario.load)?;
            run_clients::begin_searches(&world, scenario.load)?;
            world.advance(scenario.warm_up, &second).await?;
            let before = world.reset();
            let queue = world.advance(scenario.sample, &second).await?;
            let partitions = world.kinds().await?;
            Ok(ScenarioResult {
                before,
                tally: world.tally.borrow().clone(),
                partitions,
                waits: world.lag.waiting_times(world.now()),
                queue,
                sandboxes: world.sandboxes.started(),
                indexers: world.indexer_work(),
                rule: world.rule,
                scenario,
            })
        })
    }
}
