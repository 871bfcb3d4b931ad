//! Searches of evaluation datasets.

use entities::documents::content;
use std::collections::{BTreeMap, BTreeSet};

use entities::attributes::{CREATED_BY, NAME, UPDATED, UPDATED_BY};
use entities::listing::{Candidates, CooperativeYield, ReadBudget, fill};
use entities::read_all;
use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{key_parts, rows};
use mlflow_api::evaluation_datasets::{EvaluationDataset, SearchDatasetsResponse};
use mlflow_api::{Error, EvaluationDatasetId, Result, Workspace, limits};
use search::{
    DatasetFields, DatasetFilter, DatasetNumber, DatasetOrder, DatasetPredicate, DatasetSortBy, DatasetText,
    Fingerprint, SortKey, decode_page_token, parse_dataset_search,
};
use table::{Item, Query};

use super::dataset_item::{created, is_in, is_of_any};
use crate::store::Store;

/// Number of lists, and of datasets, that are read concurrently.
const CONCURRENCY: usize = 8;

/// The parameters of a search of evaluation datasets, as the client sent them.
#[derive(Clone, Debug, Default)]
pub struct DatasetSearch {
    /// Experiments whose datasets are searched. If empty, all datasets are searched.
    pub experiment_ids: Vec<String>,
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Page size.
    pub max_results: i64,
    /// Token that the previous page returned.
    pub page_token: String,
}

/// A dataset's entry in the lists. It contains the dataset's id, and its name and creator unless
/// these are long. The id starts with the creation time, unless the dataset was imported.
struct DatasetEntry {
    id: EvaluationDatasetId,
    row: Item,
}

impl DatasetEntry {
    fn of(row: &Item) -> Option<Self> {
        let id = key_parts::listed_evaluation_dataset(&row.key()?.sk)?;
        Some(Self { id, row: row.clone() })
    }

    /// Checks whether the entry contains the name and the creator.
    fn has_texts(&self) -> bool {
        self.row.has(NAME)
    }

    /// Checks whether the dataset may match a filter, judging only by the fields in its list entry.
    fn may_pass(&self, filter: &DatasetFilter) -> bool {
        let says = |predicate: &DatasetPredicate| match predicate {
            DatasetPredicate::Number { .. } => is_listed(predicate),
            _ => is_listed(predicate) && self.has_texts(),
        };
        filter.predicates.iter().all(|predicate| !says(predicate) || predicate.matches(self))
    }
}

/// Checks whether list entries contain the field that a condition refers to.
fn is_listed(predicate: &DatasetPredicate) -> bool {
    match predicate {
        DatasetPredicate::Text { attribute, .. } | DatasetPredicate::TextOrder { attribute, .. } => {
            *attribute != DatasetText::LastUpdatedBy
        }
        DatasetPredicate::Number { attribute, .. } => *attribute == DatasetNumber::CreatedTime,
        DatasetPredicate::Tag { .. } => false,
    }
}

/// Checks whether list entries contain every field that filter and order use.
fn is_known_from_lists(filter: &DatasetFilter, order: &DatasetOrder) -> bool {
    let by_change = DatasetSortBy::Number(DatasetNumber::LastUpdateTime);
    filter.predicates.iter().all(is_listed) && order.terms.iter().all(|term| term.by != by_change)
}

impl Store {
    /// Searches evaluation datasets.
    ///
    /// First reads the list entries: one read unit per 30 datasets of the given experiments, or of
    /// the workspace if none are given. Then reads the datasets that may match according to their
    /// entries, 100 per request. Usually these are only the datasets of the page. All of them are
    /// read if the filter uses tags or the time of the last change, if the order uses that time, or
    /// if a text was too long for an entry. Each dataset with a schema, or with tags that are too
    /// large for its document, takes one more request.
    pub async fn dataset_search(
        &self,
        workspace: &Workspace,
        search: &DatasetSearch,
    ) -> Result<SearchDatasetsResponse> {
        limits::max_results(search.max_results)?;
        let fingerprint = Fingerprint::of_dataset_search(&search.experiment_ids, &search.filter, &search.order_by);
        let after = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_dataset_search(&search.filter, &search.order_by)?;
        let page_size = usize::try_from(search.max_results).unwrap_or(usize::MAX);

        let mut listed = self.list_datasets(workspace, &search.experiment_ids).await?;
        listed.retain(|listed| listed.may_pass(&filter));
        let in_order = is_known_from_lists(&filter, &order) && listed.iter().all(DatasetEntry::has_texts);
        if in_order {
            listed.sort_by_cached_key(|listed| order.key(listed));
            listed.retain(|listed| after.as_ref().is_none_or(|after| order.key(listed) > *after));
        }
        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let experiments = search.experiment_ids.clone();
        let wanted = DatasetCriteria { store, workspace: workspace.clone(), experiments, filter, order, after };
        let page = fill(&wanted, &listed, in_order, page_size, reading).await?;
        let (datasets, next_page_token) = page.finish(fingerprint)?;
        Ok(SearchDatasetsResponse { datasets, next_page_token })
    }

    /// Lists the datasets of these experiments, or of the whole workspace if none are given,
    /// without duplicates. Takes one request per MB of each list.
    async fn list_datasets(&self, workspace: &Workspace, experiments: &[String]) -> Result<Vec<DatasetEntry>> {
        let is_of_all = experiments.is_empty();
        let experiments: BTreeSet<_> = experiments.iter().map(String::as_str).collect();
        let of_experiment = |experiment: &str| rows::ExperimentEvaluationDataset::all(&experiment.into()).range();
        let mut lists: Vec<_> = experiments.into_iter().map(of_experiment).collect();
        if is_of_all {
            lists.push(rows::WorkspaceEvaluationDataset::all(&workspace.as_str().into()).range());
        }
        let lists = lists.into_iter().map(|list| async move {
            let pages = entities::listing::pages(&self.table, Query::of(list)).map_err(Error::from);
            let listed =
                pages.and_then(|rows| ready(read_all(&rows, "a place in the list of datasets", DatasetEntry::of)));
            listed.try_concat().await
        });
        let mut lists = stream::iter(lists.collect::<Vec<_>>()).buffered(CONCURRENCY);
        let mut all = BTreeMap::new();
        while let Some(listed) = lists.try_next().await? {
            all.extend(listed.into_iter().map(|listed| (listed.id.clone(), listed)));
        }
        Ok(all.into_values().collect())
    }
}

/// The conditions that a dataset has to meet to be on a page.
struct DatasetCriteria {
    store: Store,
    /// Workspace that the dataset has to be in. The check is needed because a text that is not an
    /// experiment ID also has a list, which contains datasets of all workspaces.
    workspace: Workspace,
    /// Experiments of the search. The dataset has to be in at least one of them, unless the list is
    /// empty.
    experiments: Vec<String>,
    filter: DatasetFilter,
    order: DatasetOrder,
    after: Option<SortKey>,
}

impl Candidates for DatasetCriteria {
    type Listed = DatasetEntry;
    type Found = SearchableDataset;
    type Entity = EvaluationDataset;

    async fn read(&self, listed: &[DatasetEntry]) -> Result<Vec<(SortKey, SearchableDataset, usize)>> {
        let keys: Vec<_> = listed.iter().map(|listed| rows::EvaluationDataset::key(&listed.id)).collect();
        let mut items = self.store.table.get_many(&keys).await?;
        let datasets = listed.iter().zip(&keys).filter_map(|(listed, key)| Some((&listed.id, items.remove(key)?)));
        let datasets = datasets.filter(|(_, item)| is_of_any(item, &self.experiments));
        let here = datasets.map(|(id, item)| Ok((is_in(&item, &self.workspace)?, id, item)));
        let here = here.collect::<Result<Vec<_>>>()?;
        let datasets = here.into_iter().filter(|(is_here, ..)| *is_here).map(|(_, id, item)| (id, item));
        let datasets = datasets.map(|(id, item)| async move {
            let tags = self.store.dataset_tags(id, &item).await?;
            Ok::<_, Error>(SearchableDataset { id: id.clone(), item, tags })
        });
        let mut datasets = stream::iter(datasets.collect::<Vec<_>>()).buffered(CONCURRENCY);
        let (mut found, mut pace) = (Vec::new(), CooperativeYield::default());
        while let Some(dataset) = datasets.try_next().await? {
            pace.keep().await;
            let key = self.order.key(&dataset);
            if self.filter.matches(&dataset) && self.after.as_ref().is_none_or(|after| key > *after) {
                let bytes = dataset.size();
                found.push((key, dataset, bytes));
            }
        }
        Ok(found)
    }

    async fn complete(&self, found: Vec<SearchableDataset>) -> Result<Vec<EvaluationDataset>> {
        let datasets = found.iter().map(|found| self.store.dataset_from_item(&found.id, &found.item, &found.tags));
        stream::iter(datasets.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
    }
}

impl DatasetFields for DatasetEntry {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn text(&self, attribute: DatasetText) -> Option<&str> {
        match attribute {
            DatasetText::Name => self.row.get(NAME),
            DatasetText::CreatedBy => self.row.get(CREATED_BY),
            DatasetText::LastUpdatedBy => None,
        }
    }

    fn number(&self, attribute: DatasetNumber) -> i64 {
        match attribute {
            DatasetNumber::CreatedTime => created(&self.id, &self.row),
            DatasetNumber::LastUpdateTime => 0,
        }
    }

    fn tag(&self, _: &str) -> Option<&str> {
        None
    }
}

/// The fields of a dataset that a search can use. Tags are in the order of their keys.
struct SearchableDataset {
    id: EvaluationDatasetId,
    item: Item,
    tags: Vec<(String, String)>,
}

impl SearchableDataset {
    /// Returns the approximate size of the dataset, in bytes.
    fn size(&self) -> usize {
        let tags: usize = self.tags.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.item.size().max(tags) + content::size(&self.item)
    }
}

impl DatasetFields for SearchableDataset {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn text(&self, attribute: DatasetText) -> Option<&str> {
        self.item.get(match attribute {
            DatasetText::Name => NAME,
            DatasetText::CreatedBy => CREATED_BY,
            DatasetText::LastUpdatedBy => UPDATED_BY,
        })
    }

    fn number(&self, attribute: DatasetNumber) -> i64 {
        match attribute {
            DatasetNumber::CreatedTime => created(&self.id, &self.item),
            DatasetNumber::LastUpdateTime => self.item.get(UPDATED).unwrap_or_default(),
        }
    }

    fn tag(&self, key: &str) -> Option<&str> {
        let place = self.tags.binary_search_by(|(tag, _)| tag.as_str().cmp(key)).ok()?;
        self.tags.get(place).map(|(_, value)| value.as_str())
    }
}
