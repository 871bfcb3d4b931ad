//! The conditions of a search of registered models, and the fields of a model that a search can
//! use.

use std::collections::HashMap;

use access::{Guard, Resource, Visibility};
use entities::entries;
use entities::listing::{Candidates, CooperativeYield};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::ModelKind;
use mlflow_api::registry::RegisteredModel;
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, RegisteredModelName, Result, Workspace};
use search::{RegisteredModelFields, RegisteredModelFilter, RegisteredModelOrder, SortKey};
use table::Item;

use super::Store;
use super::attributes::TAGS;
use super::model_entry::ModelEntry;
use super::model_item::{Model, tag};

/// Number of models whose tags are read concurrently.
const CONCURRENCY: usize = 16;

/// The fields of a model that a search can use.
pub(super) struct SearchableModel {
    pub(super) model: Model,
    pub(super) tag_rows: Vec<Item>,
    pub(super) tags: Vec<KeyValue>,
}

impl SearchableModel {
    /// Returns the approximate size of the model, in bytes.
    fn size(&self) -> usize {
        self.model.item.size() + self.tag_rows.iter().map(Item::size).sum::<usize>()
    }
}

impl RegisteredModelFields for SearchableModel {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn last_updated(&self) -> i64 {
        self.model.changed()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        tag(&self.tags, key)
    }
}

/// Checks whether a list may show a model or a prompt with this name. Whether the name belongs to a
/// model or a prompt is not known at this point, because it can only be read from the item.
pub(super) fn may_be_visible(visible: &Visibility, name: &str) -> bool {
    let guarded = Guard::RegisteredModel(RegisteredModelName::named(name));
    [Resource::RegisteredModel, Resource::Prompt].into_iter().any(|kind| visible.shows_as(kind, &guarded))
}

/// Checks whether a list may show this model or, if `versions` is set, its versions.
pub(super) fn is_visible(visible: &Visibility, model: &Model, versions: bool) -> bool {
    let kind = match (model.kind(), versions) {
        (ModelKind::Model, false) => Resource::RegisteredModel,
        (ModelKind::Model, true) => Resource::ModelVersion,
        (ModelKind::Prompt, false) => Resource::Prompt,
        (ModelKind::Prompt, true) => Resource::PromptVersion,
    };
    visible.shows_as(kind, &Guard::RegisteredModel(RegisteredModelName::named(&model.name)))
}

/// The conditions that a model has to meet to be on a page.
pub(super) struct ModelCriteria<'a> {
    pub(super) store: Store,
    pub(super) workspace: &'a Workspace,
    pub(super) visible: &'a Visibility,
    pub(super) filter: RegisteredModelFilter,
    pub(super) order: RegisteredModelOrder,
    pub(super) after: Option<SortKey>,
    /// Whether the response omits the runs of versions.
    pub(super) hides_runs: bool,
}

impl ModelCriteria<'_> {
    /// Checks whether a model with this name may match the search and may be visible.
    pub(super) fn name_passes(&self, name: &str) -> bool {
        self.filter.name_passes(name) && may_be_visible(self.visible, name)
    }

    /// Checks whether a model may be on the page, judging only by its list entry.
    pub(super) fn may_be_on_page(&self, listed: &ModelEntry) -> bool {
        self.name_passes(&listed.name) && self.after.as_ref().is_none_or(|after| self.order.key(listed) > *after)
    }

    /// Checks whether all models of a list match the search.
    pub(super) fn passes_all(&self) -> bool {
        self.filter.names.is_empty() && !self.may_reject_models() && matches!(self.visible, Visibility::Everything)
    }

    /// Checks whether models may be rejected because of fields that their list entries do not
    /// contain.
    pub(super) fn may_reject_models(&self) -> bool {
        !self.filter.tags.tests.is_empty() || !matches!(self.visible, Visibility::Everything)
    }
}

impl Candidates for ModelCriteria<'_> {
    type Listed = ModelEntry;
    type Found = SearchableModel;
    type Entity = RegisteredModel;

    async fn read(&self, listed: &[ModelEntry]) -> Result<Vec<(SortKey, SearchableModel, usize)>> {
        let names: Vec<_> = listed.iter().map(|listed| listed.name.clone()).collect();
        // The position of a model is taken from its list entry, so that a model that has been
        // changed since the list was read keeps its position.
        let in_list = listed.iter().filter(|listed| listed.changed.is_some());
        let in_list: HashMap<_, _> = in_list.map(|listed| (listed.name.as_str(), listed)).collect();
        let models = self.store.models_named(&names).await?;
        let candidates = models.into_iter().map(|model| async move {
            let tag_rows = self.store.model_tag_rows(&model).await?;
            let tags = entries(&model.item, TAGS, &tag_rows)?.into_iter();
            let tags = tags.map(|(key, value)| KeyValue { key, value }).collect();
            Ok::<_, Error>(SearchableModel { model, tag_rows, tags })
        });
        let mut candidates = stream::iter(candidates.collect::<Vec<_>>()).buffered(CONCURRENCY);
        let (mut found, mut pace) = (Vec::new(), CooperativeYield::default());
        while let Some(candidate) = candidates.try_next().await? {
            pace.keep().await;
            let listed = in_list.get(candidate.model.name.as_str());
            let key = listed.map_or_else(|| self.order.key(&candidate), |listed| self.order.key(*listed));
            let is_wanted = self.filter.matches(&candidate) && is_visible(self.visible, &candidate.model, false);
            if is_wanted && self.after.as_ref().is_none_or(|after| key > *after) {
                let bytes = candidate.size();
                found.push((key, candidate, bytes));
            }
        }
        Ok(found)
    }

    async fn complete(&self, found: Vec<SearchableModel>) -> Result<Vec<RegisteredModel>> {
        let mut models = self.store.models_from_items(&found, self.visible).await?;
        if self.hides_runs {
            models.iter_mut().for_each(RegisteredModel::hide_runs);
        }
        Ok(models)
    }
}
