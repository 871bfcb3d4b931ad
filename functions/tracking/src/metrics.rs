//! Handlers of `metrics/…`.

use mlflow_api::checks::Check::{Custom, Integer, List, Required, Text, TextItems};
use mlflow_api::checks::as_integer;
use mlflow_api::tracking::{self as wire, BulkMetrics, Metrics};
use mlflow_api::{Error, Request, Result, python};
use serde_json::Value;

use crate::runs::run_id;
use crate::store::{SampleRange, Store};

/// Runs in one bulk request.
const BULK_RUNS: usize = 100;
/// Points in the answer to `get-history-bulk`.
const BULK_POINTS: i64 = 25_000;
/// Points a run in the answer to `get-history-bulk-interval`.
const SAMPLE_POINTS: i64 = 2_500;

pub(crate) async fn history(store: Store, request: Request) -> Result<Metrics> {
    let message = request.message(
        wire::GET_METRIC_HISTORY,
        &[("run_id", &[Text, Required]), ("metric_key", &[Text, Required]), ("page_token", &[Text])],
    )?;
    let max_results = message.optional_int("max_results");
    if let Some(results) = max_results
        && results <= 0
    {
        return Err(Error::invalid(format!(
            "Invalid value {results} for parameter 'max_results' supplied. It must be a positive integer."
        )));
    }
    let max_results = max_results.map(|results| usize::try_from(results).unwrap_or(usize::MAX));
    let (metrics, next_page_token) = store
        .metric_history(run_id(&message), message.text("metric_key"), max_results, message.text("page_token"))
        .await?;
    Ok(Metrics { metrics, next_page_token })
}

/// Reads its arguments without a message, as MLflow does.
pub(crate) async fn history_bulk(store: Store, request: Request) -> Result<BulkMetrics> {
    let run_ids = request.arguments("run_id");
    if run_ids.is_empty() {
        return Err(Error::invalid("GetMetricHistoryBulk request must specify at least one run_id."));
    }
    if run_ids.len() > BULK_RUNS {
        return Err(Error::invalid(format!(
            "GetMetricHistoryBulk request cannot specify more than {BULK_RUNS} run_ids. Received {} run_ids.",
            run_ids.len()
        )));
    }
    let Some(metric) = request.argument("metric_key") else {
        return Err(Error::invalid("GetMetricHistoryBulk request must specify a metric_key."));
    };
    let max_results = match request.argument("max_results") {
        None => BULK_POINTS,
        Some(text) => integer_argument("max_results", text)?.min(BULK_POINTS),
    };
    let Ok(max_results) = usize::try_from(max_results) else {
        return Err(Error::invalid(format!("Invalid value {max_results} for parameter 'max_results' supplied.")));
    };
    let metrics = store.metric_history_bulk(&run_ids, metric, max_results).await?;
    Ok(BulkMetrics { metrics })
}

pub(crate) async fn history_bulk_interval(store: Store, request: Request) -> Result<Metrics> {
    let message = request.message(
        wire::GET_METRIC_HISTORY_BULK_INTERVAL,
        &[
            ("run_ids", &[Required, List, TextItems, Custom(at_most_bulk_runs)]),
            ("metric_key", &[Required, Text]),
            ("start_step", &[Integer]),
            ("end_step", &[Integer]),
            ("max_results", &[Integer, Custom(within_sample_points)]),
        ],
    )?;
    // MLflow reads these three from the query string whatever the message says.
    let argument = |name| request.argument(name).map(|text| integer_argument(name, text)).transpose();
    let max_results = argument("max_results")?.unwrap_or(SAMPLE_POINTS);
    let range = match (argument("start_step")?, argument("end_step")?) {
        (None, None) => None,
        (Some(start), Some(end)) if start > end => {
            return Err(Error::invalid(format!(
                "end_step must be greater than start_step. Found start_step={start} and end_step={end}."
            )));
        }
        (Some(start), Some(end)) => Some(SampleRange { start, end }),
        _ => return Err(Error::invalid("If either start step or end step are specified, both must be specified.")),
    };
    let max_results = usize::try_from(max_results).unwrap_or(1);
    let metrics =
        store.metric_history_sample(message.texts("run_ids"), message.text("metric_key"), range, max_results).await?;
    Ok(Metrics { metrics, next_page_token: None })
}

fn at_most_bulk_runs(value: &Value) -> std::result::Result<(), Option<String>> {
    match value.as_array().map(Vec::len) {
        Some(runs) if runs > BULK_RUNS => Err(Some(format!(
            "GetMetricHistoryBulkInterval request must specify at most {BULK_RUNS} run_ids. Received {runs} run_ids."
        ))),
        _ => Ok(()),
    }
}

fn within_sample_points(value: &Value) -> std::result::Result<(), Option<String>> {
    match as_integer(value) {
        Some(points) if !(1..=SAMPLE_POINTS).contains(&points) => {
            Err(Some(format!("max_results must be between 1 and {SAMPLE_POINTS}.")))
        }
        _ => Ok(()),
    }
}

/// A query argument that is an integer.
fn integer_argument(name: &str, text: &str) -> Result<i64> {
    let number = python::int(text).and_then(|digits| digits.parse().ok());
    number
        .ok_or_else(|| Error::invalid(format!("Invalid value {} for parameter '{name}' supplied.", python::repr(text))))
}
