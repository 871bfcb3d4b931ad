//! Reads scorers from the table.

use entities::attributes::{CONFIG, CREATED, FILTER, NAME, RATE, SCORER, VERSION};
use entities::documents::content;
use evaluation::store::scorer_part_key;
use key_schema::rows;
use mlflow_api::{ExperimentId, ScorerId};
use table::{Item, Query, Table};

use super::{OnlineConfigRecord, ScorerRecord, ScorerVersionRecord};
use crate::Failure;

/// Returns a scorer, given its own item. Takes two requests, or more if the versions exceed one MB.
///
/// # Errors
/// The table or the scorer cannot be read.
pub(super) async fn record(table: &Table, experiment: ExperimentId, header: &Item) -> Result<ScorerRecord, Failure> {
    let id: ScorerId = header.get(SCORER).ok_or("a scorer has no id")?;
    let failed = |failure: table::Failure| Failure::from(format!("cannot read scorer {id}: {failure:?}"));
    let rows = table.query(Query::of(rows::ScorerVersion::all(&experiment).scorer(&id).range())).await;
    let mut versions = Vec::new();
    for row in rows.map_err(failed)? {
        let found = content::read_with_item(table, row, scorer_part_key(experiment)).await;
        // A version that was deleted in the meantime is left out.
        if let Some((row, serialized)) = found.map_err(|error| error.message)? {
            let version = row.get(VERSION).unwrap_or_default();
            versions.push(ScorerVersionRecord { version, serialized, created: row.get(CREATED).unwrap_or_default() });
        }
    }
    let config = table.get(&rows::ScorerOnlineConfig::key(&experiment, &id)).await.map_err(failed)?;
    let online_config = config.map(|item| OnlineConfigRecord {
        id: item.get(CONFIG).unwrap_or_default().to_owned(),
        rate_bits: item.get(RATE).unwrap_or_default().to_bits(),
        filter: item.get(FILTER).map(str::to_owned),
    });
    Ok(ScorerRecord {
        id: id.to_string(),
        name: header.get(NAME).unwrap_or_default().to_owned(),
        versions,
        online_config,
    })
}
