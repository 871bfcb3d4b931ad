//! Writes `docs/scale.md`: `make scale`.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Parser;
use embedded_engine::limits::Throughput;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sweep::{Failure, Load, Result, Scenario};

/// A third of the time went to the system's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SECOND: Duration = Duration::from_secs(1);
/// Traces a second from which on a partition of a day becomes two.
const OF_PARTITION: u32 = 250;

/// Runs the scenarios and writes the page about them, with its pictures in `images` next to it.
#[derive(Parser)]
struct Options {
    /// Where the page is written.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    output: PathBuf,
    /// How many seconds of the hour are counted.
    #[arg(long, default_value_t = 60)]
    sample: u64,
    /// How many long runs there are.
    #[arg(long, default_value_t = 1_000)]
    runs: u32,
    /// How many metrics each of them logs at a time: four at least, as a search orders by the fourth.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(4..))]
    metrics: u16,
    /// Every how many seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// How many short runs there are a second.
    #[arg(long, default_value_t = 80)]
    per_second: u32,
    /// How many traces there are a second.
    #[arg(long, default_value_t = 2_000)]
    traces: u32,
    /// How many seconds of them pass before anything is counted: they are packed after some minutes.
    #[arg(long, default_value_t = 300)]
    traces_warm_up: u64,
    /// How many seconds of them are counted.
    #[arg(long, default_value_t = 300)]
    traces_sample: u64,
    /// Only the scenario of this name, and no page: prints what was found.
    #[arg(long)]
    only: Option<String>,
}

fn scenarios(options: &Options) -> Result<Vec<Scenario>> {
    let (runs, per_second) = (options.runs, options.per_second);
    let sample = SECOND * u32::try_from(options.sample)?;
    Ok(vec![
        Scenario {
            name: "long",
            throughput: Throughput::OF_A_PARTITION,
            load: Load::Long {
                runs,
                metrics: options.metrics.into(),
                every: SECOND * options.every,
                ramp: SECOND * 30,
            },
            // Each was indexed once, and is put off.
            warm_up: SECOND * 70,
            sample,
        },
        Scenario {
            name: "short",
            throughput: Throughput::OF_A_PARTITION,
            load: Load::Short { per_second, batch: [10, 5, 3] },
            // With the sample, longer than a change may wait: one that waits for longer is seen.
            warm_up: SECOND * 70,
            sample,
        },
        Scenario {
            name: "traces",
            throughput: Throughput::OF_A_PARTITION,
            load: Load::Traces {
                per_second: options.traces,
                exporters: options.traces.div_ceil(10),
                spans: 5,
                partitions: options.traces.div_ceil(OF_PARTITION),
            },
            // They are packed when they have not changed for minutes.
            warm_up: SECOND * u32::try_from(options.traces_warm_up)?,
            sample: SECOND * u32::try_from(options.traces_sample)?,
        },
    ])
}

fn main() -> Result<()> {
    let options = Options::parse();
    let wanted = |scenario: &Scenario| options.only.as_ref().is_none_or(|only| *only == scenario.name);
    let scenarios: Vec<_> = scenarios(&options)?.into_iter().filter(wanted).collect();
    let style = ProgressStyle::with_template("{msg:6} {bar:40} {pos} of {len} s, {eta} left")?;
    // Each on a thread of its own, which has a clock of its own.
    let bars = MultiProgress::new();
    let begin = |scenario: Scenario| {
        let bar = ProgressBar::new((scenario.warm_up + scenario.sample).as_secs());
        let bar = bars.add(bar.with_style(style.clone()).with_message(scenario.name));
        thread::spawn(move || scenario.run(move || bar.inc(1)))
    };
    let threads: Vec<_> = scenarios.into_iter().map(begin).collect();
    let mut measured = Vec::new();
    for thread in threads {
        measured.push(thread.join().map_err(|_| Failure::from("a scenario panicked"))??);
    }
    let directory = if options.only.is_some() { std::env::temp_dir().join("scale") } else { options.output };
    sweep::write(&directory, &measured)
}
