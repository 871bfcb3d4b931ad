//! Reads traces from an MLflow database, without their spans.

use std::collections::HashMap;

use mlflow_api::traces::{SPANS_LOCATION_TAG, TraceState};
use mlflow_api::{ExperimentId, proto_json};

use super::record::TraceRecord;
use super::{assessment_rows, usage_columns};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::source::{Source, placeholders};

/// Number of traces that are read together.
const BATCH: usize = 100;

/// The position of a trace in the order in which traces are read: its time in ms, and its id.
pub(super) type SourcePlace = (i64, String);

/// A trace that was read.
pub(super) struct ReadTrace {
    /// The id in the database.
    pub(super) id: String,
    /// The trace, or the reason why this server cannot store it.
    pub(super) record: Result<TraceRecord, String>,
    /// The ids of assessments that this server cannot store, each with the reason.
    pub(super) omitted_assessments: Vec<(String, String)>,
}

/// Reads the next traces of an experiment after a position, in the order of their times. Also
/// returns the position of the last one, or `None` at the end. Takes up to seven queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_traces(
    source: &Source,
    experiment: ExperimentId,
    after: &SourcePlace,
) -> Result<(Vec<ReadTrace>, Option<SourcePlace>), Failure> {
    if !source.has_table("trace_info") {
        return Ok((Vec::new(), None));
    }
    let columns =
        ["timestamp_ms", "execution_time_ms", "status", "client_request_id", "request_preview", "response_preview"];
    let columns = source.columns("trace_info", &columns);
    let usage = source.columns("trace_info", &usage_columns::COLUMNS);
    let sql = format!(
        "SELECT request_id, {columns}, {usage} FROM trace_info WHERE experiment_id = ? AND timestamp_ms >= ? AND \
         (timestamp_ms > ? OR request_id > ?) ORDER BY timestamp_ms, request_id LIMIT {BATCH}"
    );
    let experiment = SqlValue::Integer(i64::try_from(experiment.number())?);
    let arguments = vec![experiment, after.0.into(), after.0.into(), after.1.as_str().into()];
    let rows = source.rows(&sql, arguments).await?;
    let Some(last) = rows.last() else { return Ok((Vec::new(), None)) };
    let last = (last.integer(1)?, last.text(0)?);
    let ids: Vec<_> = rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?;
    let mut parts = TraceParts::read(source, &ids).await?;
    let mut read = Vec::with_capacity(rows.len());
    for (row, id) in rows.iter().zip(ids) {
        read.push(parts.trace(row, id)?);
    }
    Ok((read, Some(last)))
}

/// Rows of tables other than `trace_info`, by the id of their trace.
#[derive(Default)]
struct TraceParts {
    tags: HashMap<String, Vec<(String, String)>>,
    metadata: HashMap<String, Vec<(String, String)>>,
    assessments: HashMap<String, Vec<Row>>,
    links: HashMap<String, Vec<(String, String)>>,
    /// Whether `trace_info` has the columns of [`usage_columns`].
    has_usage_columns: bool,
    metrics: HashMap<String, Vec<(String, Option<f64>)>>,
    span_costs: HashMap<String, f64>,
}

impl TraceParts {
    async fn read(source: &Source, ids: &[String]) -> Result<Self, Failure> {
        let list = placeholders(ids.len());
        let arguments: Vec<_> = ids.iter().map(|id| SqlValue::from(id.as_str())).collect();
        let rows = async |table: &str, sql: String| {
            if source.has_table(table) { source.rows(&sql, arguments.clone()).await } else { Ok(Vec::new()) }
        };
        let mut parts =
            Self { has_usage_columns: source.column("trace_info", "trace_name") != "NULL", ..Self::default() };
        for (table, map) in [("trace_tags", &mut parts.tags), ("trace_request_metadata", &mut parts.metadata)] {
            let sql = format!(r#"SELECT request_id, "key", value FROM {table} WHERE request_id IN {list}"#);
            for row in rows(table, sql).await? {
                map.entry(row.text(0)?).or_default().push((row.text(1)?, row.text(2)?));
            }
        }
        let columns = source.columns("assessments", &assessment_rows::COLUMNS);
        for row in rows("assessments", format!("SELECT {columns} FROM assessments WHERE trace_id IN {list}")).await? {
            parts.assessments.entry(row.text(1)?).or_default().push(row);
        }
        let sql = format!(
            "SELECT source_id, destination_type, destination_id FROM entity_associations WHERE source_type = 'trace' AND \
             destination_type IN ('run', 'prompt_version') AND source_id IN {list}"
        );
        for row in rows("entity_associations", sql).await? {
            parts.links.entry(row.text(0)?).or_default().push((row.text(1)?, row.text(2)?));
        }
        if !parts.has_usage_columns {
            let sql = format!(r#"SELECT request_id, "key", value FROM trace_metrics WHERE request_id IN {list}"#);
            for row in rows("trace_metrics", sql).await? {
                parts.metrics.entry(row.text(0)?).or_default().push((row.text(1)?, row.optional_number(2)?));
            }
            let sql = format!(
                r#"SELECT trace_id, sum(value) FROM span_metrics WHERE "key" = 'total_cost' AND trace_id IN {list} GROUP BY trace_id"#
            );
            for row in rows("span_metrics", sql).await? {
                if let Some(cost) = row.optional_number(1)? {
                    parts.span_costs.insert(row.text(0)?, cost);
                }
            }
        }
        Ok(parts)
    }

    fn trace(&mut self, row: &Row, id: String) -> Result<ReadTrace, Failure> {
        let mut tags = self.tags.remove(&id).unwrap_or_default();
        let mut metadata = self.metadata.remove(&id).unwrap_or_default();
        if self.has_usage_columns {
            usage_columns::of_row(row, 7, &mut tags, &mut metadata)?;
        } else {
            let metrics = self.metrics.remove(&id).unwrap_or_default();
            usage_columns::of_older_schema(&mut tags, &mut metadata, &metrics, self.span_costs.get(&id).copied());
        }
        let (location, mut tags): (Vec<_>, Vec<_>) = tags.into_iter().partition(|(key, _)| key == SPANS_LOCATION_TAG);
        tags.sort_unstable();
        metadata.sort_unstable();
        let (mut assessments, mut omitted) = (Vec::new(), Vec::new());
        for row in self.assessments.remove(&id).unwrap_or_default() {
            match assessment_rows::parse(&row) {
                Ok(assessment) => assessments.push((row.text(0)?, assessment.to_stored().to_string())),
                Err(reason) => omitted.push((row.text(0)?, reason)),
            }
        }
        assessments.sort_unstable();
        let (runs, prompts): (Vec<_>, Vec<_>) =
            self.links.remove(&id).unwrap_or_default().into_iter().partition(|(kind, _)| kind == "run");
        let ids = |links: Vec<(String, String)>| {
            let mut ids: Vec<_> = links.into_iter().map(|(_, id)| id).collect();
            ids.sort_unstable();
            ids
        };
        let time = row.integer(1)?;
        let record = TraceRecord {
            time,
            duration: row.optional_integer(2)?,
            state: TraceState::Unspecified,
            client_request_id: row.optional_text(4)?,
            request_preview: row.optional_text(5)?,
            response_preview: row.optional_text(6)?,
            tags,
            metadata,
            assessments,
            runs: ids(runs),
            prompts: ids(prompts),
            spans: String::new(),
            spans_location: location.into_iter().next().map(|(_, location)| location),
        };
        let record = match (row.text(3)?.as_str(), proto_json::is_time(time)) {
            (_, false) => Err("because their time is not between the years 1 and 9999".to_owned()),
            ("STATE_UNSPECIFIED" | "TRACE_STATUS_UNSPECIFIED", _) => Ok(record),
            (name, _) => match TraceState::from_name(name) {
                Some(state) => Ok(TraceRecord { state, ..record }),
                None => Err(format!("because their state is {name}")),
            },
        };
        Ok(ReadTrace { id, record, omitted_assessments: omitted })
    }
}
