//! Tags of experiments.

use access::Granted;
use entities::attributes::STAGE;
use entities::experiment_state;
use entities::trace_archival::ArchiveRequest;
use entities::trace_retention::TraceRetentionSetting;
use key_schema::{Key, Name, rows};
use mlflow_api::tracking::CUSTOM_VIEW_TAG_PREFIX;
use mlflow_api::{ARCHIVE_NOW_TAG, Error, ExperimentId, Result, TRACE_RETENTION_TAG, Workspace, limits};
use table::{Condition, Item, text};

use crate::store::Store;
use entities::documents::{Document, DocumentChange};

/// An experiment's document.
struct ExperimentDocument(ExperimentId);

impl Document for ExperimentDocument {
    fn key(&self) -> Key {
        rows::Experiment::key(&self.0)
    }

    fn tag_row(&self, tag: &Name) -> Key {
        rows::ExperimentTag::key(&self.0, tag)
    }

    fn writable(&self) -> Condition {
        Condition::Equals(STAGE.into(), text("active"))
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        let item = item.ok_or_else(|| self.0.not_found())?;
        entities::experiments::check_is_active(self.0, experiment_state(item).stage)
    }
}

impl Store {
    /// Sets a tag of an experiment. Takes one request, two for a tag that defines a custom view,
    /// up to four for the tag that sets how long traces are kept, and three for the tag that requests
    /// the archival of traces. A value of more than 1 KB
    /// takes three more requests.
    pub async fn experiment_set_tag(
        &self,
        workspace: &Workspace,
        id: &Granted<ExperimentId>,
        key: &str,
        value: &str,
    ) -> Result<()> {
        if key.starts_with(CUSTOM_VIEW_TAG_PREFIX) {
            self.experiment_check_custom_views(workspace, id, key).await?;
        }
        limits::experiment_tag(key, value)?;
        if key == TRACE_RETENTION_TAG {
            let document = ExperimentDocument(**id);
            document.check(self.table.get(&document.key()).await?.as_ref())?;
            // The experiment is added to the retention setting before the tag is written, because
            // the tag has no effect until the setting names the experiment. It is added only after
            // the experiment has been checked, so that nonexistent experiments take up no space in
            // the setting.
            TraceRetentionSetting::announce(&self.table, **id).await?;
        }
        if key == ARCHIVE_NOW_TAG {
            let document = ExperimentDocument(**id);
            document.check(self.table.get(&document.key()).await?.as_ref())?;
            // The tag is only found if a row lists the experiment.
            ArchiveRequest::announce(&self.table, **id).await?;
        }
        let change = DocumentChange { tags: vec![(key.to_owned(), value.to_owned())], ..DocumentChange::default() };
        entities::documents::change(&self.table, &ExperimentDocument(**id), change).await?;
        Ok(())
    }

    /// Checks the limit on the number of custom views, each of which is stored in a tag. Only a new
    /// tag counts towards the limit.
    async fn experiment_check_custom_views(
        &self,
        workspace: &Workspace,
        id: &Granted<ExperimentId>,
        key: &str,
    ) -> Result<()> {
        let tags = self.experiment_get(workspace, id).await?.tags;
        let views = tags.iter().filter(|tag| tag.key.starts_with(CUSTOM_VIEW_TAG_PREFIX)).count();
        if views < limits::MAX_CUSTOM_VIEWS || tags.iter().any(|tag| tag.key == key) {
            return Ok(());
        }
        Err(too_many_custom_views(&format!(" for experiment {}", **id)))
    }

    /// Deletes a tag of an experiment. `text` is the id as the client sent it.
    pub async fn experiment_delete_tag(&self, id: &Granted<ExperimentId>, text: &str, key: &str) -> Result<()> {
        if entities::documents::remove_tag(&self.table, &ExperimentDocument(**id), key).await? {
            return Ok(());
        }
        Err(Error::not_found(format!("No tag with name: {key} in experiment with id {text}")))
    }
}

/// Returns the error about too many custom views.
pub(crate) fn too_many_custom_views(experiment: &str) -> Error {
    Error::invalid(format!(
        "Unable to create another custom view{experiment}; the maximum number of custom views per experiment is {}. \
         Delete an existing custom view before creating a new one.",
        limits::MAX_CUSTOM_VIEWS
    ))
}
