//! The work of jobs, and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_engine::limits::Throughput;

use crate::lag::Waits;
use crate::load::Load;
use crate::machine::Machine;
use crate::partitions::Kind;
use crate::tally::Tally;
use crate::world::World;
use crate::{Result, jobs};

/// A load on one experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called in file names.
    pub name: &'static str,
    /// What the jobs do.
    pub load: Load,
    /// What each partition takes.
    pub throughput: Throughput,
    /// How long it runs before anything is counted.
    pub warm_up: Duration,
    /// For how long it is counted.
    pub sample: Duration,
}

/// What was counted of a scenario.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What ran.
    pub scenario: Scenario,
    /// The calls.
    pub tally: Tally,
    /// The calls before anything was counted.
    pub before: Tally,
    /// What partitions took, by the form of their keys.
    pub partitions: BTreeMap<String, Kind>,
    /// How long changes waited for the indexer.
    pub waits: Waits,
    /// Records of the stream that wait at the end of each second.
    pub queue: Vec<f64>,
    /// Sandboxes of the function at the end.
    pub sandboxes: u32,
}

impl Scenario {
    /// Lets it run, on the thread that calls this, and says after each second of the model that it is over.
    ///
    /// # Errors
    /// A call was answered as no call should be, or the engine failed.
    pub fn run(&self, second: impl Fn() + 'static) -> Result<Measured> {
        let mut machine = Machine::new()?;
        let (spawner, busy, scenario) = (machine.spawner(), machine.busy(), self.clone());
        machine.run(async move {
            let world = World::new(spawner, busy, scenario.throughput, scenario.load).await?;
            world.begin_feed().await?;
            jobs::begin(&world, scenario.load)?;
            jobs::begin_searches(&world, scenario.load)?;
            world.pass(scenario.warm_up, &second).await?;
            let before = world.reset();
            let queue = world.pass(scenario.sample, &second).await?;
            let partitions = world.kinds().await?;
            Ok(Measured {
                before,
                tally: world.tally.borrow().clone(),
                partitions,
                waits: world.lag.found(world.now()),
                queue,
                sandboxes: world.sandboxes.started(),
                scenario,
            })
        })
    }
}
