//! Online configurations, each of which determines the traces that a scorer runs on automatically.

use access::Granted;
use entities::attributes::{CONFIG, EXPERIMENT, FILTER, RATE, SCORER};
use key_schema::rows;
use mlflow_api::scorers::OnlineScoringConfig;
use mlflow_api::{Error, ExperimentId, Result, ScorerId};
use rand::RngExt;
use table::{ChangePlan, Condition, Item, Write, text};

use super::items::online_config_item;
use super::payload_validation;
use super::scorer_row::{ScorerName, header_key};
use crate::store::Store;

impl Store {
    /// Sets the online configuration of a scorer, replacing the previous one. Takes two requests,
    /// and one more if the lease on the experiment has expired.
    pub async fn scorer_set_online_config(
        &self,
        scorer: &ScorerName,
        rate: f64,
        filter: Option<&str>,
    ) -> Result<OnlineScoringConfig> {
        let id = format!("{:032x}", rand::rng().random::<u128>());
        let id = &id;
        self.table
            .change("a scorer", |_| async move {
                let found = self.scorer_row(scorer).await?;
                if found.latest().is_some() && rate > 0.0 {
                    let latest = self.scorer_from_row(&found, &found.item).await?.ok_or_else(|| scorer.not_found(None))?;
                    if payload_validation::gateway_endpoint(&latest.serialized_scorer)?.is_none() {
                        return Err(Error::invalid(format!(
                            "Scorer '{}' does not use a gateway model. Automatic evaluation is only supported for scorers \
                             that use gateway models.",
                            scorer.name
                        )));
                    }
                }
                let item = online_config_item(found.experiment, &found.id, id, rate, filter);
                let config = config_of(&found.id, &item);
                // The condition only checks that the scorer has not been deleted. Versions may be
                // added in the meantime.
                let there = Condition::Equals(SCORER.into(), text(found.id.as_str()));
                let header = header_key(found.experiment, &scorer.name);
                Ok(ChangePlan::Write(vec![Write::Check(header, there), Write::Put(item, Condition::Always)], config))
            })
            .await
    }

    /// Returns the online configurations of these scorers, leaving out scorers that have none.
    /// Takes one request per 100 scorers.
    pub async fn scorer_online_configs(
        &self,
        scorers: Vec<(Granted<ExperimentId>, ScorerId)>,
    ) -> Result<Vec<OnlineScoringConfig>> {
        let mut scorers = scorers;
        scorers.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        scorers.dedup();
        let key = |(experiment, id): &(Granted<ExperimentId>, ScorerId)| rows::ScorerOnlineConfig::key(experiment, id);
        let keys: Vec<_> = scorers.iter().map(key).collect();
        let items = self.table.get_many(&keys).await?;
        Ok(scorers.iter().zip(&keys).filter_map(|((_, id), key)| Some(config_of(id, items.get(key)?))).collect())
    }
}

fn config_of(scorer: &ScorerId, item: &Item) -> OnlineScoringConfig {
    OnlineScoringConfig {
        online_scoring_config_id: item.get(CONFIG).unwrap_or_default().to_owned(),
        scorer_id: scorer.to_string(),
        sample_rate: item.get(RATE).unwrap_or_default(),
        experiment_id: item.get(EXPERIMENT).map(|id| id.to_string()).unwrap_or_default(),
        filter_string: item.get(FILTER).map(str::to_owned),
    }
}
