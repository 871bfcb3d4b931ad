//! The items that store a scorer.

use entities::attributes::{CONFIG, CREATED, EXPERIMENT, FILTER, NAME, RATE, VERSION};
use entities::documents::content::PackedContent;
use key_schema::{Ordinal, rows};
use mlflow_api::{ExperimentId, ScorerId, Workspace};
use table::{Item, number, text};

use super::scorer_row::{header, with_version};

/// A scorer, as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredScorerItems<'a> {
    /// Experiment.
    pub experiment: ExperimentId,
    /// Workspace of the experiment.
    pub workspace: &'a Workspace,
    /// Name.
    pub name: &'a str,
    /// Id.
    pub id: &'a ScorerId,
}

impl StoredScorerItems<'_> {
    /// Returns the item of a version. The parts of its content must be written first.
    #[must_use]
    pub fn version(&self, version: u32, created: i64, packed: &PackedContent) -> Item {
        let key = rows::ScorerVersion::key(&self.experiment, self.id, &Ordinal(version));
        packed.on(Item::new(key)).with(VERSION, number(version)).with(CREATED, number(created))
    }

    /// Returns the item of the scorer itself, with the fields of the latest version if there is
    /// one.
    #[must_use]
    pub fn header(&self, latest: Option<&Item>) -> Item {
        let header = header(self.experiment, self.name, self.id);
        match latest {
            Some(version) => with_version(header, version),
            None => header,
        }
    }

    /// Returns the row that lists the scorer in its workspace.
    #[must_use]
    pub fn listed(&self) -> Item {
        let workspace = self.workspace.as_str().into();
        let key = rows::WorkspaceScorer::key(&workspace, &self.experiment, &self.name.into());
        Item::new(key).with(NAME, text(self.name))
    }
}

/// Returns the item of the online configuration of a scorer. `id` is the id of the configuration.
#[must_use]
pub fn online_config_item(
    experiment: ExperimentId,
    scorer: &ScorerId,
    id: &str,
    rate: f64,
    filter: Option<&str>,
) -> Item {
    let item = Item::new(rows::ScorerOnlineConfig::key(&experiment, scorer))
        .with(CONFIG, text(id))
        .with(RATE, text(rate.to_string()))
        .with(EXPERIMENT, text(experiment.to_string()));
    filter.into_iter().fold(item, |item, filter| item.with(FILTER, text(filter)))
}
