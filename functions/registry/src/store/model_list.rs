//! The lists of a workspace's models: one is ordered by name, and one by last change. Searches in
//! these orders read a list from either end, and only as far as the page needs it, regardless of
//! the number of models.

use std::collections::{HashMap, HashSet};

use entities::listing::{ReadBudget, ResponsePage, add_listed, within_time};
use entities::{read_all, unreadable};
use futures::future::ready;
use futures::stream::TryStreamExt;
use key_schema::index::ModelsByChange;
use key_schema::{Descending, Key, KeyRange, ModelKind, Name, Segment, rows};
use mlflow_api::{Error, Result, Workspace};
use search::{FirstValue, OrderTerm, RegisteredModelSortBy, SortDirection, SortKey, TimeRange};
use table::{Item, Query};

use super::Store;
use super::attributes::NAME;
use super::model_criteria::ModelCriteria;
use super::model_entry::{ModelEntry, group_of};
use super::model_item::list_key;

/// Minimum number of entries to read if the filter may reject some.
const MIN_BATCH_SIZE: usize = 100;
/// Maximum number of models with a common prefix for which all of these models are read, regardless
/// of the order.
const MAX_NAMES_READ: usize = 100;

/// A list of models whose order is the order of a search.
pub(super) struct ModelList {
    kind: ModelKind,
    by: RegisteredModelSortBy,
    direction: SortDirection,
}

impl ModelList {
    /// Returns the list of models of one kind whose order is the order of the search, if there is
    /// one.
    pub(super) fn of(kind: ModelKind, wanted: &ModelCriteria<'_>) -> Option<Self> {
        let OrderTerm { by, direction } = wanted.order.terms.first().cloned()?;
        Some(Self { kind, by, direction })
    }

    /// Checks whether the filter requires a prefix of the name, and so few names have this prefix
    /// that reading their models is cheaper than reading this list.
    pub(super) async fn prefers_names(&self, wanted: &ModelCriteria<'_>) -> Result<bool> {
        let Some(beginning) = wanted.filter.name_beginning() else { return Ok(false) };
        if self.by == RegisteredModelSortBy::Name {
            return Ok(false);
        }
        let names = Query::of(names_of(wanted.workspace, self.kind, Some(beginning))).limit(MAX_NAMES_READ);
        Ok(wanted.store.table.query_page(&names).await?.next.is_none())
    }

    /// Returns the range of the list that may contain entries after the previous page.
    fn range(&self, wanted: &ModelCriteria<'_>) -> KeyRange {
        let after = wanted.after.as_ref().and_then(SortKey::first_value);
        match self.by {
            RegisteredModelSortBy::Name => {
                let range = names_of(wanted.workspace, self.kind, wanted.filter.name_beginning());
                let Some(FirstValue::Text(after)) = after else { return range };
                let (text, group) = (Name::from(after).text(), group_of(after));
                let key = list_key(wanted.workspace, after, self.kind).sk;
                let key = key.strip_suffix(&text).map(|before| format!("{before}{group}")).unwrap_or_default();
                let Some(place) = range.place(&key).map(str::to_owned) else { return range };
                match self.direction {
                    SortDirection::Ascending => range.starting(&place),
                    SortDirection::Descending if group != text => range.until_beginning(&place),
                    SortDirection::Descending => range.until(&place),
                }
            }
            RegisteredModelSortBy::LastUpdated => {
                let range = ModelsByChange::all(&wanted.workspace.as_str().into()).kind(&self.kind).range();
                let Some(FirstValue::Integer(time)) = after else { return range };
                within_time(
                    range,
                    match self.direction {
                        SortDirection::Ascending => TimeRange { from: Some(time), until: None },
                        SortDirection::Descending => TimeRange { from: None, until: Some(time) },
                    },
                )
            }
        }
    }

    /// Returns the entries of a page of the list. Names that are truncated in the keys are read
    /// from the models. Models that were deleted in the meantime have no entry.
    async fn entries(&self, wanted: &ModelCriteria<'_>, rows: &[Item]) -> Result<Vec<ModelEntry>> {
        let mut whole = HashMap::new();
        if self.by == RegisteredModelSortBy::LastUpdated {
            let is_cut = |key: &Key| rows::ModelName::parse(key).is_none();
            let keys: Vec<_> = rows.iter().filter_map(Item::key).filter(is_cut).collect();
            if !keys.is_empty() {
                whole = wanted.store.table.get_many(&keys).await?;
            }
        }
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let unreadable = || unreadable(row, "a place in a list of models");
            let entry = match self.by {
                RegisteredModelSortBy::Name => ModelEntry::named(row.get(NAME).ok_or_else(unreadable)?.to_owned()),
                RegisteredModelSortBy::LastUpdated => {
                    let Descending(changed) = row.entry::<ModelsByChange>().ok_or_else(unreadable)?.changed;
                    let key = row.key().ok_or_else(unreadable)?;
                    let of_row = || Some(whole.get(&key)?.get(NAME)?.to_owned());
                    let name = rows::ModelName::parse(&key).map(|row| row.name.0).or_else(of_row);
                    let Some(name) = name else { continue };
                    ModelEntry { name, changed: Some(changed), group: changed.to_string() }
                }
            };
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Returns a page of a search. Takes one request for the list, one per 100 models, and one per
    /// 100 of their latest versions, or more if the filter rejects models. A model that is changed
    /// while the list by last change is read may be missing from the results, because it moves to
    /// the start of the list, which has already been read.
    pub(super) async fn page(
        &self,
        wanted: &ModelCriteria<'_>,
        page_size: usize,
        mut reading: ReadBudget,
    ) -> Result<ResponsePage<SortKey>> {
        let mut page = ResponsePage::new(page_size);
        let mut query = Query::of(self.range(wanted));
        if self.direction == self.end_of_list() {
            query = query.backwards();
        }
        // The set removes duplicates, because a model that is changed while the list is read may
        // appear on two pages of the list.
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        let (mut entries_read, mut models_read) = (0, 0);
        loop {
            // Two more entries are read than the page still lacks. The second one shows that the
            // group of the first one is complete, and thus whether there is another page. If this
            // is not the first page, one more is read, because the first entry may be the last one
            // of the previous page. If the filter may reject entries, the number read doubles each
            // time, so that few sequential requests are needed even if few entries pass.
            let few = page.missing() + 2 + usize::from(wanted.after.is_some());
            query = query.limit(if wanted.passes_all() { few } else { few.max(MIN_BATCH_SIZE + 1).max(entries_read) });
            let rows = wanted.store.table.query_page(&query).await?;
            entries_read += rows.items.len();
            entries.extend(self.entries(wanted, &rows.items).await?);
            // Entries of a group can be sorted only after all of them have been read, so those of
            // the last group wait for the next request.
            let last = entries.last().map(|entry: &ModelEntry| entry.group.clone()).filter(|_| rows.next.is_some());
            let whole = entries.iter().take_while(|entry| Some(&entry.group) != last.as_ref()).count();
            let of_page = entries.drain(..whole).filter(|entry| wanted.may_be_on_page(entry));
            let mut portion: Vec<_> = of_page.filter(|entry| seen.insert(entry.name.clone())).collect();
            portion.sort_by_cached_key(|entry| wanted.order.key(entry));
            add_listed(wanted, &portion, wanted.may_reject_models(), &mut page, &mut reading, &mut models_read).await?;
            match rows.next {
                Some(next) if !page.has_ended() => {
                    query = query.starting_at(next);
                    if reading.is_used_up() && !page.is_empty() {
                        page.ends_here();
                        return Ok(page);
                    }
                }
                _ => return Ok(page),
            }
        }
    }

    /// Returns the direction of a search that reads the list from its end. Names are ascending in
    /// the list, and times are descending.
    fn end_of_list(&self) -> SortDirection {
        match self.by {
            RegisteredModelSortBy::Name => SortDirection::Descending,
            RegisteredModelSortBy::LastUpdated => SortDirection::Ascending,
        }
    }
}

/// Returns the range of the list by name that contains the models of a kind. If a prefix is given,
/// returns only the part with names that have the prefix. The range may include a few other names.
pub(super) fn names_of(workspace: &Workspace, kind: ModelKind, beginning: Option<&str>) -> KeyRange {
    let names = rows::ModelName::all(&workspace.as_str().into()).kind(&kind);
    match beginning {
        Some(beginning) => names.beginning(&Name::from(beginning)),
        None => names.range(),
    }
}

impl Store {
    /// Returns the names of models of a kind. If a prefix is given, returns the names that have the
    /// prefix, and perhaps a few others. Takes one request per MB of names.
    pub(super) async fn model_names(
        &self,
        workspace: &Workspace,
        kind: ModelKind,
        beginning: Option<&str>,
    ) -> Result<Vec<String>> {
        let pages =
            entities::listing::pages(&self.table, Query::of(names_of(workspace, kind, beginning))).map_err(Error::from);
        let name_of = |row: &Item| row.get(NAME).map(str::to_owned);
        pages.and_then(|rows| ready(read_all(&rows, "the name of a model", name_of))).try_concat().await
    }
}
