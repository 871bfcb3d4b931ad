//! Reads points of metrics from an MLflow database.

use std::collections::HashMap;

use entities::points::Point;
use futures::stream::{Stream, StreamExt};

use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::source::{Source, placeholders};

/// Maximum number of points of the runs that are read together, unless it is a single run.
const MAX_BATCH_POINTS: u64 = 100_000;

/// A point of a metric of a run.
pub(super) struct RunPoint {
    pub(super) run: String,
    pub(super) metric: String,
    pub(super) point: Point,
}

/// Splits runs into groups that have a bounded number of points together. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn groups(source: &Source, runs: Vec<String>) -> Result<Vec<Vec<String>>, Failure> {
    let sql = format!(
        "SELECT run_uuid, count(*) FROM metrics WHERE run_uuid IN {} GROUP BY run_uuid",
        placeholders(runs.len())
    );
    let mut counts = HashMap::new();
    for row in source.rows(&sql, arguments(&runs)).await? {
        counts.insert(row.text(0)?, row.integer(1)?.unsigned_abs());
    }
    let (mut groups, mut group, mut points) = (Vec::new(), Vec::new(), 0);
    for run in runs {
        let count = counts.get(&run).copied().unwrap_or_default();
        if points + count > MAX_BATCH_POINTS && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
            points = 0;
        }
        points += count;
        group.push(run);
    }
    groups.extend((!group.is_empty()).then_some(group));
    Ok(groups)
}

/// Returns the points of runs in batches, ordered by run and metric, and those of a metric in the
/// order of MLflow's history. Other queries wait until the stream ends.
pub(super) fn points(source: &Source, runs: &[String]) -> impl Stream<Item = Result<Vec<RunPoint>, Failure>> + use<> {
    let sql = format!(
        r#"SELECT run_uuid, "key", "timestamp", step, value, is_nan FROM metrics WHERE run_uuid IN {} ORDER BY run_uuid, "key", "timestamp", step, value, is_nan"#,
        placeholders(runs.len())
    );
    source.stream(sql, arguments(runs)).map(|rows| rows?.iter().map(read).collect())
}

fn read(row: &Row) -> Result<RunPoint, Failure> {
    let value = if row.boolean(5)? { f64::NAN } else { row.number(4)? };
    Ok(RunPoint { run: row.text(0)?, metric: row.text(1)?, point: Point::new(row.integer(2)?, row.integer(3)?, value) })
}

fn arguments(runs: &[String]) -> Vec<SqlValue> {
    runs.iter().map(|run| SqlValue::from(run.as_str())).collect()
}
