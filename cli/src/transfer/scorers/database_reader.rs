//! Reads scorers from an MLflow database.

use std::collections::HashMap;

use super::{KIND, OnlineConfigRecord, ScorerRecord, ScorerVersionRecord};
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::ImportContext;
use crate::transfer::source::placeholders;

/// Number of scorers that are read together. All versions of a scorer are in memory at once,
/// because MLflow's list of versions has no pages.
const BATCH: usize = 20;

/// Reads the next scorers of an experiment after an id, in the order of their ids. Returns an empty
/// list at the end. Takes three queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_scorers(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    after: &str,
    reports: bool,
) -> Result<Vec<ScorerRecord>, Failure> {
    let source = &context.source;
    if !source.has_table("scorers") {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT scorer_id, scorer_name FROM scorers WHERE experiment_id = ? AND scorer_id > ? ORDER BY scorer_id LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.source_id.number())?);
    let mut records = Vec::new();
    for row in source.rows(&sql, vec![number, after.into()]).await? {
        let (id, name) = (row.text(0)?, row.text(1)?);
        records.push(ScorerRecord { id, name, versions: Vec::new(), online_config: None });
    }
    if records.is_empty() {
        return Ok(records);
    }
    let ids: Vec<_> = records.iter().map(|record| SqlValue::from(record.id.as_str())).collect();
    let list = placeholders(ids.len());
    let mut by_id: HashMap<String, &mut ScorerRecord> =
        records.iter_mut().map(|record| (record.id.clone(), record)).collect();
    let sql = format!(
        "SELECT scorer_id, scorer_version, serialized_scorer, creation_time FROM scorer_versions WHERE scorer_id IN {list}"
    );
    for row in source.rows(&sql, ids.clone()).await? {
        let Some(record) = by_id.get_mut(&row.text(0)?) else { continue };
        let number = row.integer(1)?;
        match u32::try_from(number) {
            Ok(version) => {
                let (serialized, created) = (row.text(2)?, row.integer(3)?);
                record.versions.push(ScorerVersionRecord { version, serialized, created });
            }
            Err(_) if reports => {
                let id = format!("version {number} of {}", record.name);
                context.report.omitted(KIND, &id, "because its number is not valid");
            }
            Err(_) => {}
        }
    }
    if source.has_table("online_scoring_configs") {
        // If a scorer has several online configurations, the last one applies.
        let sql = format!(
            "SELECT scorer_id, online_scoring_config_id, sample_rate, filter_string FROM online_scoring_configs WHERE \
             scorer_id IN {list} ORDER BY online_scoring_config_id"
        );
        for row in source.rows(&sql, ids).await? {
            let Some(record) = by_id.get_mut(&row.text(0)?) else { continue };
            record.online_config = Some(OnlineConfigRecord {
                id: row.text(1)?,
                rate_bits: row.number(2)?.to_bits(),
                filter: row.optional_text(3)?,
            });
        }
    }
    for record in by_id.into_values() {
        record.versions.sort_unstable_by_key(|version| version.version);
    }
    Ok(records)
}
