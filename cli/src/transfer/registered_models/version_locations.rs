//! Artifact locations of model versions.

use super::{RegisteredModelRecord, database_reader};
use crate::Failure;
use crate::transfer::import::ImportContext;

/// Tag of registered models that are prompts, which have no files.
const PROMPT_TAG: &str = "mlflow.prompt.is_prompt";
/// Schemes of locations that refer to the files of another entity.
const REFERENCES: [&str; 2] = ["models:", "runs:"];

/// Where the files of a model version are.
pub(crate) struct VersionLocation {
    /// Name of the model and number of the version.
    pub(crate) id: String,
    /// The location in the source.
    pub(crate) location: String,
}

/// The versions of all registered models of an import that have files of their own.
pub(crate) struct VersionLocations {
    models: Vec<RegisteredModelRecord>,
    /// Number of the last version that was read of the last model in `models`.
    after: u32,
}

impl VersionLocations {
    /// Reads the models. Takes four queries.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn open(context: &ImportContext) -> Result<Self, Failure> {
        let mut models = database_reader::models(context, false).await?;
        models.retain(|model| !model.tags.iter().any(|(key, value)| key == PROMPT_TAG && value == "true"));
        Ok(Self { models, after: 0 })
    }

    /// Reads the next versions, which all belong to one model. Returns `None` at the end. Takes two
    /// queries.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn next(&mut self, context: &ImportContext) -> Result<Option<Vec<VersionLocation>>, Failure> {
        while let Some(model) = self.models.last() {
            let versions = database_reader::next_versions(&context.source, model, self.after).await?;
            let Some(last) = versions.last() else {
                self.models.pop();
                self.after = 0;
                continue;
            };
            self.after = last.number;
            let own =
                versions.into_iter().filter(|version| !REFERENCES.iter().any(|it| version.storage.starts_with(it)));
            let name = &model.name;
            let located = own.map(|version| VersionLocation {
                id: format!("{name} version {}", version.number),
                location: version.storage,
            });
            return Ok(Some(located.collect()));
        }
        Ok(None)
    }
}
