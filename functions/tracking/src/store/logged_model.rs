//! Logged models.

use entities::ModelLocation;
use key_schema::{index, rows};
use mlflow_api::{ModelId, Result};
use table::{Item, Query};

use super::Store;

impl Store {
    /// Where a logged model is, if the id is one that a model can have. No request for an id made here, one for any other.
    pub(super) async fn logged_model_locate(&self, text: &str) -> Result<Option<ModelLocation>> {
        let Some(model) = ModelId::parse(text) else { return Ok(None) };
        if let Some(experiment) = model.experiment() {
            return Ok(Some(ModelLocation { experiment, model }));
        }
        let partition = index::logged_model_location(&model);
        let page = self.table.query_page(&Query::global("GSI1", "gsi1pk", partition).limit(1)).await?;
        let row = page.items.first().and_then(Item::key).and_then(|key| rows::LoggedModel::parse(&key));
        Ok(row.map(|row| ModelLocation { experiment: row.experiment, model }))
    }
}
