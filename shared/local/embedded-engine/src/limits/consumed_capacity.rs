//! The reports of consumed capacity. They are always requested from the engine, and removed from
//! the responses to clients that did not request them.

use serde_json::{Value, json};

use super::throughput::CapacityKind;

const REQUEST_FIELD: &str = "ReturnConsumedCapacity";
const REPORT_FIELD: &str = "ConsumedCapacity";

/// Requests the report, and returns whether the caller requested it as well.
pub(super) fn ask(body: &mut Value) -> bool {
    let is_wanted = !matches!(body[REQUEST_FIELD].as_str(), None | Some("NONE"));
    body[REQUEST_FIELD] = "INDEXES".into();
    is_wanted
}

/// Returns the units reported in a response. Writes to a global index are left out, because they go
/// to partitions of the index.
pub(super) fn units(answer: &Value, direction: CapacityKind) -> f64 {
    match &answer[REPORT_FIELD] {
        Value::Array(reports) => reports.iter().map(|report| of_report(report, direction)).sum(),
        report => of_report(report, direction),
    }
}

fn of_report(report: &Value, direction: CapacityKind) -> f64 {
    let of = |value: &Value| value["CapacityUnits"].as_f64().unwrap_or_default();
    let global = report["GlobalSecondaryIndexes"].as_object().into_iter().flat_map(|indexes| indexes.values());
    match direction {
        CapacityKind::Read => of(report),
        CapacityKind::Write => of(report) - global.map(of).sum::<f64>(),
    }
}

/// Removes the report from a response.
pub(super) fn drop(answer: &mut Value) {
    if let Some(answer) = answer.as_object_mut() {
        answer.remove(REPORT_FIELD);
    }
}

/// Adds the reports of one response to those of another, table by table.
pub(super) fn add(sum: &mut Value, answer: &Value) {
    let Some(reports) = answer[REPORT_FIELD].as_array() else { return };
    if !sum[REPORT_FIELD].is_array() {
        sum[REPORT_FIELD] = json!([]);
    }
    let Some(sums) = sum[REPORT_FIELD].as_array_mut() else { return };
    for report in reports {
        match sums.iter_mut().find(|sum| sum["TableName"] == report["TableName"]) {
            Some(sum) => add_up(sum, report),
            None => sums.push(report.clone()),
        }
    }
}

fn add_up(sum: &mut Value, other: &Value) {
    match (sum, other) {
        (Value::Object(sum), Value::Object(other)) => {
            for (name, value) in other {
                match sum.get_mut(name) {
                    Some(sum) => add_up(sum, value),
                    None => {
                        sum.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (sum @ Value::Number(_), Value::Number(other)) => {
            *sum = json!(sum.as_f64().unwrap_or_default() + other.as_f64().unwrap_or_default());
        }
        _ => {}
    }
}
