//! Exports scorers.

use entities::listing;
use futures::stream::TryStreamExt;
use key_schema::rows;
use rusqlite::params;
use table::Query;

use super::table_reader;
use crate::Failure;
use crate::transfer::experiments::ExportedExperiment;
use crate::transfer::export::ExportContext;

/// Exports the scorers of an experiment. Takes one request per MB of scorers, and two for each
/// scorer.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let number = i64::try_from(id.number())?;
    let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(rows::Scorer::all(&id))));
    loop {
        let page = pages.try_next().await.map_err(|failure| format!("cannot read scorers: {failure:?}"))?;
        let Some(headers) = page else { return Ok(()) };
        for header in headers {
            let scorer = table_reader::record(&context.table, id, &header).await?;
            context.insert(
                "INSERT INTO scorers (experiment_id, scorer_name, scorer_id) VALUES (?, ?, ?)",
                params![number, scorer.name, scorer.id],
            )?;
            for version in &scorer.versions {
                context.insert(
                    "INSERT INTO scorer_versions (scorer_id, scorer_version, serialized_scorer, creation_time) VALUES \
                     (?, ?, ?, ?)",
                    params![scorer.id, version.version, version.serialized, version.created],
                )?;
            }
            if let Some(config) = &scorer.online_config {
                context.insert(
                    "INSERT INTO online_scoring_configs (online_scoring_config_id, scorer_id, sample_rate, experiment_id, \
                     filter_string) VALUES (?, ?, ?, ?, ?)",
                    params![config.id, scorer.id, f64::from_bits(config.rate_bits), number, config.filter],
                )?;
            }
        }
    }
}
