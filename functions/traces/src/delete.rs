//! The endpoint that deletes traces.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::DeleteTracesResponse;
use mlflow_api::{Error, ExperimentId, Request, Result, TraceId};
use service::Endpoint;

use crate::read::check_trace_count;
use crate::store::Store;

/// The traces to delete: given by id, or all that began up to a time.
enum TracesToDelete {
    ById(Vec<TraceId>),
    Until { latest: i64, most: Option<usize> },
}

pub(crate) struct Delete {
    experiment: ExperimentId,
    traces: TracesToDelete,
}

impl Endpoint for Delete {
    type Store = Store;
    type Answer = DeleteTracesResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DeleteTraces = request.read()?;
        let named = &message.request_ids;
        let which = match (message.max_timestamp_millis, named.is_empty()) {
            (None, true) => {
                return Err(Error::invalid("Either `max_timestamp_millis` or `trace_ids` must be specified."));
            }
            (Some(_), false) => {
                return Err(Error::invalid("Only one of `max_timestamp_millis` and `trace_ids` can be specified."));
            }
            (None, false) => {
                check_trace_count(named.len())?;
                if message.max_traces.is_some() {
                    return Err(Error::invalid("`max_traces` can't be specified if `trace_ids` is specified."));
                }
                TracesToDelete::ById(named.iter().filter_map(|id| TraceId::parse(id)).collect())
            }
            (Some(latest), true) => {
                if let Some(most) = message.max_traces.filter(|most| *most <= 0) {
                    return Err(Error::invalid(format!("`max_traces` must be a positive integer, received {most}.")));
                }
                TracesToDelete::Until { latest, most: message.max_traces.and_then(|most| usize::try_from(most).ok()) }
            }
        };
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, traces: which })
    }

    /// Requires the right to delete assessments as well, because the assessments of a trace are
    /// deleted with it.
    fn needs(&self) -> Needs {
        let experiment = Target::Experiment(self.experiment);
        let traces = Needs::of_in(Action::Delete, Resource::Trace, experiment.clone());
        traces.and_in(Action::Delete, Resource::Assessment, [experiment])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DeleteTracesResponse> {
        // For an experiment of another workspace, no traces are deleted, as for one that does not
        // exist, so that callers cannot tell them apart.
        let Some(experiment) = scope.listed_experiment(self.experiment)? else {
            return Ok(DeleteTracesResponse { traces_deleted: 0 });
        };
        let traces_deleted = match self.traces {
            TracesToDelete::ById(traces) => store.traces_delete(&experiment, &traces).await?,
            TracesToDelete::Until { latest, most } => store.traces_delete_until(&experiment, latest, most).await?,
        };
        Ok(DeleteTracesResponse { traces_deleted })
    }
}
