//! Writes `docs/measured/scale.md`: `make scale`.

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Parser;
use embedded_engine::limits::Throughput;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sweep::{Failure, Load, RequestLimit, Result, Scenario};

/// Replaces the system's allocator, in which the model spent a third of its run time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SECOND: Duration = Duration::from_secs(1);
/// Maximum number of traces per second in a partition of a day. At higher rates, the partition is
/// split into two.
const MAX_PARTITION_RATE: u32 = 250;

/// Number of traces per second of the scenario `steady-traces`: five times the average of 50 million
/// traces a month.
const STEADY_TRACES: u32 = 100;

/// Runs the scenarios and writes a page of results, with charts in `images` next to its directory.
#[derive(Parser)]
struct Options {
    /// Directory of the page.
    #[arg(long, value_name = "DIR", default_value = "docs/measured")]
    output: PathBuf,
    /// How long to measure each scenario with runs, in seconds.
    #[arg(long, default_value_t = 60)]
    sample: u64,
    /// Number of long runs.
    #[arg(long, default_value_t = 1_000)]
    runs: u32,
    /// Number of metrics in each batch of a long run. At least four, because a search orders by the
    /// fourth.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(4..))]
    metrics: u16,
    /// Interval between the batches of a long run, in seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Number of short runs per second.
    #[arg(long, default_value_t = 80)]
    per_second: u32,
    /// Number of traces per second of the scenario `traces`.
    #[arg(long, default_value_t = 2_000)]
    traces: u32,
    /// Seconds of traces before the measurement starts. Traces are packed after some minutes.
    #[arg(long, default_value_t = 300)]
    traces_warm_up: u64,
    /// How long to measure the scenarios with traces, in seconds.
    #[arg(long, default_value_t = 300)]
    traces_sample: u64,
    /// Memory of the indexer in MB, if not that of its declaration.
    #[arg(long, default_value_t = fts_indexer::FUNCTION.memory)]
    indexer_memory: u32,
    /// Requests per second that the gateway accepts, if not the template's default.
    #[arg(long)]
    request_rate: Option<f64>,
    /// Run only the scenario with this name, and write the results to a temporary directory.
    #[arg(long)]
    only: Option<String>,
}

fn scenarios(options: &Options) -> Result<Vec<Scenario>> {
    let (runs, per_second) = (options.runs, options.per_second);
    let sample = SECOND * u32::try_from(options.sample)?;
    let indexer_memory = options.indexer_memory;
    let default = RequestLimit::of_template()?;
    let requests = RequestLimit { rate: options.request_rate.unwrap_or(default.rate), ..default };
    let traces = |name, per_second: u32, spans| -> Result<Scenario> {
        Ok(Scenario {
            name,
            throughput: Throughput::PARTITION_MAX,
            requests,
            indexer_memory,
            load: Load::Traces {
                per_second,
                exporters: per_second.div_ceil(10),
                spans,
                partitions: per_second.div_ceil(MAX_PARTITION_RATE),
            },
            // The warm-up has to last some minutes, because traces are only packed after they have
            // not changed for some minutes.
            warm_up: SECOND * u32::try_from(options.traces_warm_up)?,
            sample: SECOND * u32::try_from(options.traces_sample)?,
        })
    };
    Ok(vec![
        Scenario {
            name: "long",
            throughput: Throughput::PARTITION_MAX,
            requests,
            indexer_memory,
            load: Load::Long {
                runs,
                metrics: options.metrics.into(),
                every: SECOND * options.every,
                ramp: SECOND * 30,
            },
            // After the warm-up, each run has been packed twice, and is packed every three minutes from
            // then on. The sample is as long as that.
            warm_up: SECOND * 75,
            sample: sample * 3,
        },
        Scenario {
            name: "short",
            throughput: Throughput::PARTITION_MAX,
            requests,
            indexer_memory,
            load: Load::Short { per_second, batch: [10, 5, 3] },
            // The warm-up and the sample together last longer than a change may wait for the
            // indexer, so that a violation of this limit is noticed.
            warm_up: SECOND * 70,
            sample,
        },
        traces("steady-traces", STEADY_TRACES, 10)?,
        traces("traces", options.traces, 5)?,
    ])
}

fn main() -> Result<()> {
    let options = Options::parse();
    let wanted = |scenario: &Scenario| options.only.as_ref().is_none_or(|only| *only == scenario.name);
    let scenarios: Vec<_> = scenarios(&options)?.into_iter().filter(wanted).collect();
    let style = ProgressStyle::with_template("{msg:6} {bar:40} {pos} of {len} s, {eta} left")?;
    // Each scenario has a thread, and thus a clock, of its own.
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
    for one in &measured {
        write!(std::io::stderr(), "{}", sweep::processor_time(one))?;
    }
    let directory = if options.only.is_some() { std::env::temp_dir().join("scale") } else { options.output };
    sweep::write(&directory, &measured)
}
