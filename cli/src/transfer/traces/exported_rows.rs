//! The rows of a trace in an MLflow database.

use mlflow_api::ExperimentId;
use mlflow_api::assessments::Assessment;
use mlflow_api::traces::{COST, NAME_TAG, SESSION, SPANS_LOCATION_TAG, TOKEN_USAGE};
use rusqlite::params;
use rusqlite::types::Value as SqliteValue;
use serde_json::Value;
use spans::Span;

use super::record::TraceRecord;
use super::{assessment_rows, usage_columns};
use crate::Failure;
use crate::transfer::export::ExportContext;
use crate::transfer::import::replacement_digits_of;

/// Key of an assessment's metadata that holds the id of the run that created the assessment.
/// MLflow's table has a column for it.
const ASSESSMENT_RUN: &str = "mlflow.assessment.sourceRunId";

/// Inserts a trace with its tags, metadata, assessments, links and spans.
///
/// # Errors
/// The file cannot be written.
pub(super) fn insert(
    context: &ExportContext,
    experiment: ExperimentId,
    id: &str,
    record: &TraceRecord,
    spans: &[Span],
) -> Result<(), Failure> {
    let experiment = i64::try_from(experiment.number())?;
    insert_info(context, experiment, id, record)?;
    let location = record.spans_location.iter().map(|location| (SPANS_LOCATION_TAG, location.as_str()));
    let tags = record.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).chain(location);
    for (key, value) in tags.filter(|(key, _)| *key != NAME_TAG) {
        let sql = "INSERT INTO trace_tags (request_id, key, value) VALUES (?, ?, ?)";
        context.insert(sql, params![id, key, value])?;
    }
    for (key, value) in record.metadata.iter().filter(|(key, _)| ![SESSION, TOKEN_USAGE, COST].contains(&key.as_str()))
    {
        let sql = "INSERT INTO trace_request_metadata (request_id, key, value) VALUES (?, ?, ?)";
        context.insert(sql, params![id, key, value])?;
    }
    for (assessment_id, stored) in &record.assessments {
        if let Some(assessment) = Assessment::from_stored(stored) {
            insert_assessment(context, (experiment, record.time), id, assessment_id, &assessment)?;
        }
    }
    let runs = record.runs.iter().map(|run| ("run", run));
    for (kind, destination) in runs.chain(record.prompts.iter().map(|prompt| ("prompt_version", prompt))) {
        // MLflow draws this id at random, and nothing refers to it. Here, it depends on the link,
        // so that two exports of the same table are equal.
        let association = replacement_digits_of(&["association", id, kind, destination]);
        context.insert(
            "INSERT INTO entity_associations (association_id, source_type, source_id, destination_type, destination_id, \
             created_time) VALUES (?, 'trace', ?, ?, ?, ?)",
            params![association, id, kind, destination, record.time],
        )?;
    }
    for span in spans {
        insert_span(context, experiment, id, span)?;
    }
    Ok(())
}

fn insert_info(context: &ExportContext, experiment: i64, id: &str, record: &TraceRecord) -> Result<(), Failure> {
    let (name, session, numbers) = usage_columns::of_trace(&record.tags, &record.metadata);
    let mut values: Vec<SqliteValue> = vec![
        id.to_owned().into(),
        experiment.into(),
        record.time.into(),
        record.duration.into(),
        record.state.name().to_owned().into(),
        record.client_request_id.clone().into(),
        record.request_preview.clone().into(),
        record.response_preview.clone().into(),
        name.into(),
        session.into(),
    ];
    values.extend(numbers.into_iter().map(SqliteValue::from));
    let columns = usage_columns::COLUMNS.join(", ");
    let places = vec!["?"; values.len()].join(", ");
    context.insert(
        &format!(
            "INSERT INTO trace_info (request_id, experiment_id, timestamp_ms, execution_time_ms, status, client_request_id, \
             request_preview, response_preview, {columns}) VALUES ({places})"
        ),
        rusqlite::params_from_iter(values),
    )
}

/// Inserts an assessment of a trace, given the experiment and the time of the trace.
fn insert_assessment(
    context: &ExportContext,
    (experiment, time): (i64, i64),
    trace: &str,
    id: &str,
    assessment: &Assessment,
) -> Result<(), Failure> {
    let columns = assessment_rows::columns_of(&assessment.judgement);
    let metadata = (!assessment.metadata.is_empty()).then(|| {
        let entries = assessment.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        assessment_rows::print(&Value::Object(entries.collect()))
    });
    let run = assessment.metadata.iter().find(|(key, _)| key == ASSESSMENT_RUN).map(|(_, run)| run);
    context.insert(
        "INSERT INTO assessments (assessment_id, trace_id, name, assessment_type, value, error, created_timestamp, \
         last_updated_timestamp, source_type, source_id, run_id, span_id, rationale, overrides, valid, assessment_metadata, \
         experiment_id, trace_timestamp_ms, aggregate_value, is_numeric_value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
         ?, ?, ?, ?, ?, ?, ?)",
        params![
            id,
            trace,
            assessment.name,
            columns.kind,
            columns.value,
            columns.error,
            assessment.created,
            assessment.updated,
            assessment.source.0,
            assessment.source.1,
            run,
            assessment.span,
            assessment.rationale,
            assessment.overrides,
            assessment.is_valid,
            metadata,
            experiment,
            time,
            columns.number,
            columns.is_number,
        ],
    )
}

fn insert_span(context: &ExportContext, experiment: i64, trace: &str, span: &Span) -> Result<(), Failure> {
    let facts = spans::facts(span);
    let time = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let [input, output, total] = facts.cost;
    // The contents of archived spans are in the file of their trace, as in MLflow.
    let json = if spans::is_archived(span) { String::new() } else { spans::artifact_json(span) };
    context.insert(
        "INSERT INTO spans (trace_id, experiment_id, span_id, parent_span_id, name, type, status, start_time_unix_nano, \
         end_time_unix_nano, content, input_cost, output_cost, total_cost, model_name, model_provider) VALUES (?, ?, ?, ?, \
         ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            trace,
            experiment,
            facts.span_id,
            facts.parent_id,
            facts.name,
            facts.span_type,
            facts.status,
            time(facts.start_ns),
            facts.end_ns.map(time),
            json,
            input,
            output,
            total,
            facts.model,
            facts.provider,
        ],
    )
}
