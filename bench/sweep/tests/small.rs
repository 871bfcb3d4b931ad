//! Small loads, to check that the model still works. `docs/measured/scale.md` is generated separately, with
//! large loads.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use embedded_engine::limits::Throughput;
use sweep::{CallKind, Load, RequestLimit, Scenario};

const SECOND: Duration = Duration::from_secs(1);

fn scenario(load: Load, throughput: Throughput, seconds: u32) -> Scenario {
    let requests = RequestLimit::of_template().unwrap();
    let (warm_up, sample) = (SECOND * 10, SECOND * seconds);
    let indexer_memory = fts_indexer::FUNCTION.memory;
    Scenario { name: "small", load, throughput, requests, indexer_memory, warm_up, sample }
}

#[test]
#[ignore = "takes six seconds of a core; part of `make test-slow`"]
fn a_few_long_runs_are_logged_to_indexed_and_found() {
    let load = Load::Long { runs: 10, metrics: 10, every: SECOND, ramp: SECOND };
    let scenario = scenario(load, Throughput::PARTITION_MAX, 70);
    let measured = scenario.run(|| ()).unwrap();
    let calls = |call: CallKind| measured.tally.0.get(&call).cloned().unwrap_or_default();
    let logged = calls(CallKind::Log);
    assert!((699..=701).contains(&logged.made), "{logged:?}");
    assert_eq!((logged.answered, logged.throttled), (logged.made, 0));
    for call in [CallKind::Latest, CallKind::ByMetric] {
        let searches = calls(call);
        assert_eq!((searches.made, searches.answered), (12, 12), "{call:?}");
        assert!(searches.usage.read_units > 0.0 && searches.longest < SECOND, "{searches:?}");
    }
    // The consumption measured by partition adds up to the consumption that the calls report.
    let taken: f64 = measured.partitions.values().map(|kind| kind.write_units * 70.0).sum();
    let paid = measured.tally.sum(|calls| calls.usage.write_units - calls.usage.global_index_units);
    assert!((taken - paid).abs() < paid * 0.02, "{taken} of {paid}");
    let experiment = &measured.partitions["EXP#"];
    assert_eq!((experiment.partitions, experiment.throttled), (1, 0));
    assert!(!measured.waits.indexed.is_empty());
    assert!(measured.waits.indexed.iter().all(|waited| *waited < 90.0), "{:?}", measured.waits.indexed);
}

#[test]
#[ignore = "takes seven seconds of a core; part of `make test-slow`"]
fn traces_are_exported_and_found() {
    let load = Load::Traces { per_second: 20, exporters: 2, spans: 2, partitions: 1 };
    let measured = scenario(load, Throughput::PARTITION_MAX, 40).run(|| ()).unwrap();
    let calls = |call: CallKind| measured.tally.0.get(&call).cloned().unwrap_or_default();
    let exports = calls(CallKind::Export);
    assert!((79..=81).contains(&exports.made), "{exports:?}");
    assert_eq!((exports.answered, exports.throttled), (exports.made, 0));
    for call in load.searches() {
        let searches = calls(call);
        assert!(searches.made >= 6 && searches.answered == searches.made, "{call:?}: {searches:?}");
    }
    assert!(measured.partitions["TRACE#"].partitions > 700, "{:?}", measured.partitions);
    assert!(measured.partitions["TR#"].largest_bytes.is_some_and(|bytes| bytes > 50_000), "{:?}", measured.partitions);
}

#[test]
fn a_partition_that_takes_less_than_is_asked_of_it_is_throttled() {
    let little = Throughput { writes: 20.0, ..Throughput::PARTITION_MAX };
    let asked = scenario(Load::Short { per_second: 20, batch: [10, 5, 3] }, little, 4);
    let measured = Scenario { warm_up: SECOND * 3, ..asked }.run(|| ()).unwrap();
    assert!(measured.tally.sum(|calls| f64::from(calls.throttled)) > 0.0, "{:?}", measured.tally);
    assert!(measured.partitions.values().any(|kind| kind.throttled > 0));
}

#[test]
fn the_gateway_refuses_what_exceeds_its_rate_and_computing_takes_time() {
    let asked = scenario(Load::Short { per_second: 10, batch: [10, 5, 3] }, Throughput::PARTITION_MAX, 4);
    let asked = Scenario { warm_up: SECOND * 3, ..asked };
    let measured = asked.run(|| ()).unwrap();
    let created = measured.tally.0[&CallKind::Create].clone();
    assert_eq!((created.throttled, created.refused), (0, 0), "{created:?}");
    // The simulated network takes 5 ms per request to the table. The remaining time is computing.
    let computed = created.time.saturating_sub(Duration::from_millis(5) * created.usage.requests);
    assert!(computed >= measured.rule.slowed(created.by_rule, 512).mul_f64(0.9), "{created:?}");
    assert!(created.by_rule > Duration::ZERO);

    let requests = RequestLimit { rate: 10.0, burst: 5.0 };
    let measured = Scenario { requests, ..asked }.run(|| ()).unwrap();
    let refused = measured.tally.sum(|calls| f64::from(calls.refused));
    assert!(refused > 0.0 && refused <= measured.tally.sum(|calls| f64::from(calls.throttled)));
    let of_jobs = [CallKind::Create, CallKind::Log, CallKind::End];
    let accepted: u32 = of_jobs.iter().filter_map(|call| measured.tally.0.get(call)).map(|calls| calls.answered).sum();
    assert!(accepted <= 10 * 4 + 5, "{accepted}");
}
