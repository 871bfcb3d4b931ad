//! Counts the entities of a source that the retention policies of the table would remove soon after
//! their import.

use entities::now_ms;
use entities::trace_retention::TraceRetentionSetting;
use mlflow_api::{TRACE_RETENTION_TAG, TraceRetention};
use retention::RetentionPolicy;

use super::context::ImportContext;
use super::examples::Examples;
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::experiments::ImportedExperiment;

/// Number of ids that are listed for an experiment.
const MAX_IDS: usize = 10;

/// Entities of one kind that are older than a policy allows.
struct ExpiredRows {
    kind: &'static str,
    /// A clause that follows the number of entities in the report, such as "3 are older than …".
    what: &'static str,
    table: &'static str,
    id: &'static str,
    /// Column with the time in ms that determines the age of an entity.
    time: &'static str,
    /// Whether the policy only applies to deleted entities.
    is_deleted: bool,
}

const RUNS: ExpiredRows = ExpiredRows {
    kind: "runs",
    what: "were deleted longer ago than the retention of deleted entities allows, and would be removed",
    table: "runs",
    id: "run_uuid",
    time: "deleted_time",
    is_deleted: true,
};
const LOGGED_MODELS: ExpiredRows = ExpiredRows {
    kind: "logged models",
    table: "logged_models",
    id: "model_id",
    time: "last_updated_timestamp_ms",
    ..RUNS
};
const EXPERIMENTS: ExpiredRows =
    ExpiredRows { kind: "experiments", table: "experiments", id: "experiment_id", time: "last_update_time", ..RUNS };
const HISTORIES: ExpiredRows = ExpiredRows {
    kind: "runs",
    what: "ended longer ago than the retention of metrics allows, and would lose their histories",
    table: "runs",
    id: "run_uuid",
    time: "end_time",
    is_deleted: false,
};
const TRACES: ExpiredRows = ExpiredRows {
    kind: "traces",
    what: "are older than their retention, and would be hidden and removed",
    table: "trace_info",
    id: "request_id",
    time: "timestamp_ms",
    is_deleted: false,
};

/// Reports the entities that the retention policies of the table, and the trace retention of the
/// source's experiments, would remove. Takes three requests, and up to ten queries per experiment.
///
/// # Errors
/// The table or the source cannot be read.
pub(super) async fn report(context: &ImportContext, experiments: &[ImportedExperiment]) -> Result<(), Failure> {
    let failed = |failure: table::Failure| Failure::from(format!("cannot read the settings: {failure:?}"));
    let deleted = RetentionPolicy::Deleted.read(&context.table).await.map_err(failed)?;
    let histories = RetentionPolicy::Histories.read(&context.table).await.map_err(failed)?;
    let traces = TraceRetentionSetting::read(&context.table).await.map_err(failed)?.kept;
    for experiment in experiments {
        if let Some(age) = &deleted {
            for rows in [&RUNS, &LOGGED_MODELS, &EXPERIMENTS] {
                rows.report(context, experiment, age.before()).await?;
            }
        }
        if let Some(age) = &histories {
            HISTORIES.report(context, experiment, age.before()).await?;
        }
        let own = experiment.record.tags.iter().find(|(key, _)| key == TRACE_RETENTION_TAG);
        let own = own.and_then(|(_, value)| TraceRetention::parse(value).ok());
        if let Some(since) = own.or(traces).and_then(|retention| retention.since(now_ms())) {
            TRACES.report(context, experiment, since).await?;
        }
    }
    Ok(())
}

impl ExpiredRows {
    /// Reports the rows of an experiment whose time is before `before`. Takes up to two queries.
    async fn report(
        &self,
        context: &ImportContext,
        experiment: &ImportedExperiment,
        before: i64,
    ) -> Result<(), Failure> {
        let Self { kind, what, table, id, time, is_deleted } = *self;
        if !context.source.has_table(table) {
            return Ok(());
        }
        let time = context.source.column(table, time);
        let stage = if is_deleted { " AND lifecycle_stage = 'deleted'" } else { "" };
        let condition = format!("FROM {table} WHERE experiment_id = ? AND {time} < ?{stage}");
        let arguments = vec![SqlValue::Integer(i64::try_from(experiment.source_id.number())?), before.into()];
        let counted = context.source.rows(&format!("SELECT count(*) {condition}"), arguments.clone()).await?;
        let count = counted.first().map(|row| row.integer(0)).transpose()?.unwrap_or_default().unsigned_abs();
        if count == 0 {
            return Ok(());
        }
        let first = format!("SELECT {id} {condition} ORDER BY {id} LIMIT {MAX_IDS}");
        let rows = context.source.rows(&first, arguments).await?;
        let ids = if id == "experiment_id" {
            vec![experiment.source_id.to_string()]
        } else {
            rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?
        };
        context.report.expiring(kind, what, &Examples::of(count, ids));
        Ok(())
    }
}
