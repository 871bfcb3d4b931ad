//! The clients: jobs that log, and users who search.

use std::rc::Rc;
use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};

use crate::call_counts::CallKind;
use crate::load::{Load, SEARCH_INTERVAL};
use crate::simulated_stack::SimulatedStack;
use crate::{Result, trace_clients};

/// Starts the jobs.
pub(crate) fn begin(world: &Rc<SimulatedStack>, load: Load) -> Result<()> {
    match load {
        Load::Long { runs, metrics, every, ramp } => {
            for number in 0..runs {
                let start = ramp.mul_f64(f64::from(number) / f64::from(runs));
                world.spawn(async move |world| long(world, number, metrics, every, start).await)?;
            }
            Ok(())
        }
        Load::Short { per_second, batch } => world.spawn(async move |world| {
            for number in 0.. {
                world.sleep_until(Duration::from_secs(1) * number / per_second).await;
                world.spawn(async move |world| short(world, number, batch).await)?;
            }
            Ok(())
        }),
        Load::Traces { per_second, exporters, spans, .. } => trace_clients::begin(world, per_second, exporters, spans),
    }
}

/// Runs a job that lasts longer than the simulation and logs at fixed times. If a call takes so
/// long that the next of these times has passed, the job logs again immediately.
async fn long(world: &SimulatedStack, number: u32, metrics: usize, every: Duration, start: Duration) -> Result<()> {
    world.sleep_until(start).await;
    let Some(run) = create(world, number).await? else { return Ok(()) };
    let mut due = world.now() + every.mul_f64(rand::rng().random());
    for step in 0_u32.. {
        world.sleep_until(due).await;
        log(world, &run, [metrics, 0, 0], step).await?;
        due += every;
    }
    Ok(())
}

async fn short(world: &SimulatedStack, number: u32, batch: [usize; 3]) -> Result<()> {
    let Some(run) = create(world, number).await? else { return Ok(()) };
    log(world, &run, batch, number).await?;
    let end = json!({ "run_id": run, "status": "FINISHED", "end_time": runtime::clock::now_ms() });
    let ended = world.post(CallKind::End, "runs/update", &end).await?;
    if ended.is_some() {
        world.lag.changed(&run, world.now());
    }
    Ok(())
}

/// Creates a run with the tags that the Python client sets. Returns its id, or `None` if the client
/// gave up.
async fn create(world: &SimulatedStack, number: u32) -> Result<Option<String>> {
    let tag = |key: &str, value: &str| json!({ "key": key, "value": value });
    let name = format!("calm-crane-{}", number % 1_000);
    let run = json!({
        "experiment_id": world.experiment,
        "user_id": "somebody",
        "run_name": name,
        "start_time": runtime::clock::now_ms(),
        "tags": [
            tag("mlflow.user", "somebody"),
            tag("mlflow.source.name", "train.py"),
            tag("mlflow.source.type", "LOCAL"),
            tag("mlflow.runName", &name),
        ],
    });
    let Some(answer) = world.post(CallKind::Create, "runs/create", &run).await? else { return Ok(None) };
    let run = answer["run"]["info"]["run_id"].as_str().ok_or("the response has no run id")?.to_owned();
    world.lag.changed(&run, world.now());
    Ok(Some(run))
}

/// Logs this number of metrics, params and tags in one call.
async fn log(world: &SimulatedStack, run: &str, [metrics, params, tags]: [usize; 3], step: u32) -> Result<()> {
    let timestamp = runtime::clock::now_ms();
    let spread = rand::rng().random_range(0..1_000);
    let metric = |number: usize| {
        let value: f64 = rand::rng().random();
        json!({ "key": format!("metric_{number}"), "value": value, "timestamp": timestamp, "step": step })
    };
    let text = |kind: &str, number: usize| {
        // Some params and tags have few distinct values, some have many.
        let value = format!("{kind} {}", spread % [3, 5, 12, 100, 1_000][number % 5]);
        json!({ "key": format!("{kind}_{number}"), "value": value })
    };
    let batch = json!({
        "run_id": run,
        "metrics": (0..metrics).map(metric).collect::<Vec<_>>(),
        "params": (0..params).map(|number| text("param", number)).collect::<Vec<_>>(),
        "tags": (0..tags).map(|number| text("tag", number)).collect::<Vec<_>>(),
    });
    if world.post(CallKind::Log, "runs/log-batch", &batch).await?.is_some() {
        world.lag.changed(run, world.now());
    }
    Ok(())
}

/// Starts the searches, ten per minute of each kind.
pub(crate) fn begin_searches(world: &Rc<SimulatedStack>, load: Load) -> Result<()> {
    match load {
        Load::Traces { .. } => trace_clients::begin_searches(world),
        Load::Long { .. } | Load::Short { .. } => begin_run_searches(world),
    }
}

/// Starts searches for the latest 100 runs, and for the 100 runs with the highest value of a
/// metric.
fn begin_run_searches(world: &Rc<SimulatedStack>) -> Result<()> {
    for (call, order_by) in [(CallKind::Latest, json!([])), (CallKind::ByMetric, json!(["metrics.metric_3 DESC"]))] {
        world.spawn(async move |world| {
            let search = json!({
                "experiment_ids": [world.experiment],
                "run_view_type": "ACTIVE_ONLY",
                "max_results": 100,
                "order_by": order_by,
            });
            for number in 1.. {
                world.sleep_until(SEARCH_INTERVAL * number).await;
                let search = search.clone();
                world.spawn(async move |world| send_search(world, call, &search).await)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

async fn send_search(world: &SimulatedStack, call: CallKind, search: &Value) -> Result<()> {
    let Some(page) = world.post(call, "runs/search", search).await? else { return Ok(()) };
    let runs = page["runs"].as_array().map_or(0, Vec::len);
    let ordered_but = if call == CallKind::ByMetric { misplaced(&page) } else { 0 };
    if runs == 0 || ordered_but > 0 {
        return Err(format!("{}: a page of {runs} runs, {ordered_but} of them out of order", call.name()).into());
    }
    Ok(())
}

/// Returns how many runs of a page are out of order, because they have a higher value than the run
/// before them.
fn misplaced(page: &Value) -> usize {
    let value = |run: &Value| {
        let metrics = run["data"]["metrics"].as_array()?;
        metrics.iter().find(|metric| metric["key"] == "metric_3")?["value"].as_f64()
    };
    let values: Vec<_> = page["runs"].as_array().into_iter().flatten().filter_map(value).collect();
    values.windows(2).filter(|pair| pair[0] < pair[1]).count()
}
