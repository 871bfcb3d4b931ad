//! Endpoints of `metrics/…`.

use access::{Action, Granted, Needs, Resource, Scope, Target};
use entities::RunLocation;
use mlflow_api::requests::metrics::{GetHistory, GetHistoryBulkInterval, MAX_BULK_RUNS, MAX_SAMPLE_POINTS};
use mlflow_api::requests::runs::new_or_old;
use mlflow_api::tracking::{BulkMetricHistoryResponse, MetricHistoryResponse};
use mlflow_api::{Error, Request, Result, RunId, python};
use service::Endpoint;

use crate::store::{SampleRange, Store, points_in_response, points_on_page};

/// Maximum number of points in the response to `get-history-bulk`.
const MAX_BULK_POINTS: i64 = 25_000;

pub(crate) struct History {
    run_id: String,
    metric: String,
    max_results: Option<usize>,
    page_token: String,
}

impl Endpoint for History {
    type Store = Store;
    type Answer = MetricHistoryResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: GetHistory = request.read()?;
        if let Some(results) = message.max_results
            && results <= 0
        {
            return Err(Error::invalid(format!(
                "Invalid value {results} for parameter 'max_results' supplied. It must be a positive integer."
            )));
        }
        Ok(Self {
            run_id: new_or_old(&message.run_id, &message.run_uuid).to_owned(),
            metric: message.metric_key,
            max_results: message.max_results.map(|results| usize::try_from(results).unwrap_or(usize::MAX)),
            page_token: message.page_token,
        })
    }

    fn needs(&self) -> Needs {
        run_needs([&self.run_id])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<MetricHistoryResponse> {
        let run = (self.run_id.clone(), known_run(scope, &self.run_id)?);
        // Clients that set `max_results` follow page tokens. Clients that do not set it, such as
        // those in R and Java, get either the whole history or an error.
        let most = match self.max_results {
            Some(results) => results.min(points_on_page(&self.metric)?),
            None => points_in_response(&self.metric)?,
        };
        let (metrics, next_page_token) = store.metric_history(&run, &self.metric, most, &self.page_token).await?;
        if self.max_results.is_none() && next_page_token.is_some() {
            return Err(Error::invalid(format!(
                "The history has more than {most} points, the maximum for one response. Use 'max_results' to request it in \
                 pages."
            )));
        }
        Ok(MetricHistoryResponse { metrics, next_page_token })
    }
}

/// `metrics/get-history-bulk`. Reads its arguments from the query string instead of parsing a
/// message, as MLflow does.
pub(crate) struct HistoryBulk {
    run_ids: Vec<String>,
    metric: String,
    max_results: usize,
}

impl Endpoint for HistoryBulk {
    type Store = Store;
    type Answer = BulkMetricHistoryResponse;

    fn read(request: &Request) -> Result<Self> {
        let run_ids = request.arguments("run_id");
        if run_ids.is_empty() {
            return Err(Error::invalid("GetMetricHistoryBulk request must specify at least one run_id."));
        }
        if run_ids.len() > MAX_BULK_RUNS {
            return Err(Error::invalid(format!(
                "GetMetricHistoryBulk request cannot specify more than {MAX_BULK_RUNS} run_ids. Received {} run_ids.",
                run_ids.len()
            )));
        }
        let Some(metric) = request.argument("metric_key") else {
            return Err(Error::invalid("GetMetricHistoryBulk request must specify a metric_key."));
        };
        let max_results = match request.argument("max_results") {
            None => MAX_BULK_POINTS,
            Some(text) => integer_argument("max_results", text)?.min(MAX_BULK_POINTS),
        };
        let Ok(max_results) = usize::try_from(max_results) else {
            return Err(Error::invalid(format!("Invalid value {max_results} for parameter 'max_results' supplied.")));
        };
        let run_ids = run_ids.into_iter().map(str::to_owned).collect();
        Ok(Self { run_ids, metric: metric.to_owned(), max_results })
    }

    fn needs(&self) -> Needs {
        run_needs(&self.run_ids).revealing_absence()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<BulkMetricHistoryResponse> {
        let runs = known_runs(scope, self.run_ids)?;
        Ok(BulkMetricHistoryResponse {
            metrics: store.metric_history_bulk(runs, &self.metric, self.max_results).await?,
        })
    }
}

pub(crate) struct HistoryBulkInterval {
    run_ids: Vec<String>,
    metric: String,
    range: Option<SampleRange>,
    max_results: usize,
}

impl Endpoint for HistoryBulkInterval {
    type Store = Store;
    type Answer = MetricHistoryResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: GetHistoryBulkInterval = request.read()?;
        // The limit on run ids is repeated here, because the message's own checks do not apply to
        // GraphQL requests.
        if message.run_ids.len() > MAX_BULK_RUNS {
            return Err(Error::invalid(format!("At most {MAX_BULK_RUNS} run_ids can be specified.")));
        }
        // MLflow always reads `max_results`, `start_step` and `end_step` from the query string,
        // even if the message contains them.
        let argument = |name| request.argument(name).map(|text| integer_argument(name, text)).transpose();
        let max_results = argument("max_results")?.unwrap_or(MAX_SAMPLE_POINTS);
        let range = match (argument("start_step")?, argument("end_step")?) {
            (None, None) => None,
            (Some(start), Some(end)) if start > end => {
                return Err(Error::invalid(format!(
                    "end_step must be greater than start_step. Found start_step={start} and end_step={end}."
                )));
            }
            (Some(start), Some(end)) => Some(SampleRange { start, end }),
            _ => {
                let message = "If either start step or end step are specified, both must be specified.";
                return Err(Error::invalid(message));
            }
        };
        // The clamp changes nothing if the message passed its own checks, which GraphQL requests
        // skip.
        let max_results = usize::try_from(max_results.clamp(1, MAX_SAMPLE_POINTS)).unwrap_or(1);
        Ok(Self { run_ids: message.run_ids, metric: message.metric_key, range, max_results })
    }

    fn needs(&self) -> Needs {
        run_needs(&self.run_ids).revealing_absence()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<MetricHistoryResponse> {
        let runs = known_runs(scope, self.run_ids)?;
        let metrics = store.metric_history_sample(runs, &self.metric, self.range, self.max_results).await?;
        Ok(MetricHistoryResponse { metrics, next_page_token: None })
    }
}

/// Returns the permissions needed for reading the metrics of these runs. Ids that are not valid run
/// ids need no permission, because their histories are empty. The list of ids may be empty.
fn run_needs<'a>(run_ids: impl IntoIterator<Item = &'a String>) -> Needs {
    let run = |run_id: &String| RunId::parse(run_id).map_or(Target::Nothing(Resource::Run), Target::Run);
    Needs::of(Action::Read, run_ids.into_iter().map(run)).or(Needs::read(Target::Nothing(Resource::Run)))
}

fn known_run(scope: &Scope, run_id: &str) -> Result<Option<Granted<RunLocation>>> {
    RunId::parse(run_id).map_or(Ok(None), |run| scope.known_run(&run))
}

fn known_runs(scope: &Scope, run_ids: Vec<String>) -> Result<Vec<(String, Option<Granted<RunLocation>>)>> {
    let runs = run_ids.into_iter().map(|run_id| Ok((run_id.clone(), known_run(scope, &run_id)?)));
    runs.collect()
}

/// Parses a query argument that has to be an integer.
fn integer_argument(name: &str, text: &str) -> Result<i64> {
    let number = python::int(text).and_then(|digits| digits.parse().ok());
    number
        .ok_or_else(|| Error::invalid(format!("Invalid value {} for parameter '{name}' supplied.", python::repr(text))))
}
