//! The lists of a workspace's models, which are in the orders of their searches: by name, and by the last change. A list is read as far
//! as the page needs it, from either end, however many models there are.

use std::collections::{HashMap, HashSet};

use entities::{read_all, unreadable};
use futures::future::ready;
use futures::stream::TryStreamExt;
use key_schema::index::ModelsByChange;
use key_schema::{Descending, Key, KeyRange, ModelKind, Name, Segment, rows};
use listing::{Page, Reading, add_listed, within_time};
use mlflow_api::{Error, Result, Workspace};
use search::{Direction, FirstValue, RegisteredModelSortBy, SortKey, Term, TimeRange};
use table::{Item, Query};

use super::Store;
use super::attributes::NAME;
use super::model_item::list_key;
use super::model_listed::{Listed, group_of};
use super::model_wanted::Wanted;

/// Entries that are read at least where the filter may refuse some.
const PORTION: usize = 100;
/// Models of one beginning that are few: they are read, in whatever order.
const FEW: usize = 100;

/// A list in the order of a search.
pub(super) struct ModelList {
    kind: ModelKind,
    by: RegisteredModelSortBy,
    direction: Direction,
}

impl ModelList {
    /// The list of models of a kind whose order is that of a search.
    pub(super) fn of(kind: ModelKind, wanted: &Wanted<'_>) -> Option<Self> {
        let Term { by, direction } = wanted.order.terms.first().cloned()?;
        Some(Self { kind, by, direction })
    }

    /// Whether a filter that says how names begin is better answered by these names.
    pub(super) async fn is_longer_than_names(&self, wanted: &Wanted<'_>) -> Result<bool> {
        let Some(beginning) = wanted.filter.name_beginning() else { return Ok(false) };
        if self.by == RegisteredModelSortBy::Name {
            return Ok(false);
        }
        let names = Query::of(names_of(wanted.workspace, self.kind, Some(beginning))).limit(FEW);
        Ok(wanted.store.table.query_page(&names).await?.next.is_none())
    }

    /// The part of the list that may come after a page.
    fn range(&self, wanted: &Wanted<'_>) -> KeyRange {
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
                    Direction::Ascending => range.starting(&place),
                    Direction::Descending if group != text => range.until_beginning(&place),
                    Direction::Descending => range.until(&place),
                }
            }
            RegisteredModelSortBy::LastUpdated => {
                let range = ModelsByChange::all(&wanted.workspace.as_str().into()).kind(&self.kind).range();
                let Some(FirstValue::Integer(time)) = after else { return range };
                within_time(
                    range,
                    match self.direction {
                        Direction::Ascending => TimeRange { from: Some(time), until: None },
                        Direction::Descending => TimeRange { from: None, until: Some(time) },
                    },
                )
            }
        }
    }

    /// The entries of a page of the list, as far as they say all; those whose names are cut in their keys are looked up. None for a model
    /// that is gone by then.
    async fn entries(&self, wanted: &Wanted<'_>, rows: &[Item]) -> Result<Vec<Listed>> {
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
                RegisteredModelSortBy::Name => Listed::named(row.get(NAME).ok_or_else(unreadable)?.to_owned()),
                RegisteredModelSortBy::LastUpdated => {
                    let Descending(changed) = row.entry::<ModelsByChange>().ok_or_else(unreadable)?.changed;
                    let key = row.key().ok_or_else(unreadable)?;
                    let of_row = || Some(whole.get(&key)?.get(NAME)?.to_owned());
                    let name = rows::ModelName::parse(&key).map(|row| row.name.0).or_else(of_row);
                    let Some(name) = name else { continue };
                    Listed { name, changed: Some(changed), group: changed.to_string() }
                }
            };
            entries.push(entry);
        }
        Ok(entries)
    }

    /// A page of a search. One request for the list, one per 100 models and one per 100 of their latest versions; more where the filter
    /// refuses models. One that is changed while the list by the last change is read may be missed: it is at the top then.
    pub(super) async fn page(
        &self,
        wanted: &Wanted<'_>,
        page_size: usize,
        mut reading: Reading,
    ) -> Result<Page<SortKey>> {
        let mut page = Page::new(page_size);
        let mut query = Query::of(self.range(wanted));
        if self.direction == self.end_of_list() {
            query = query.backwards();
        }
        // A model that changes between two pages of the list may be on both.
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        let (mut entries_read, mut models_read) = (0, 0);
        loop {
            // Two more show whether there is another page: the second shows that the group of the
            // first is complete. The first may also be the last of the page before. Where some are
            // refused, as many again as were read, so that few requests follow each other, however
            // few pass.
            let few = page.missing() + 2 + usize::from(wanted.after.is_some());
            query = query.limit(if wanted.refuses_none() { few } else { few.max(PORTION + 1).max(entries_read) });
            let rows = wanted.store.table.query_page(&query).await?;
            entries_read += rows.items.len();
            entries.extend(self.entries(wanted, &rows.items).await?);
            // Those of one group are in the search's order when all of them are there.
            let last = entries.last().map(|entry: &Listed| entry.group.clone()).filter(|_| rows.next.is_some());
            let whole = entries.iter().take_while(|entry| Some(&entry.group) != last.as_ref()).count();
            let of_page = entries.drain(..whole).filter(|entry| wanted.may_come(entry));
            let mut portion: Vec<_> = of_page.filter(|entry| seen.insert(entry.name.clone())).collect();
            portion.sort_by_cached_key(|entry| wanted.order.key(entry));
            add_listed(wanted, &portion, wanted.refuses_models(), &mut page, &mut reading, &mut models_read).await?;
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

    /// The direction in which the list is read from its end: names ascend in it, and times descend.
    fn end_of_list(&self) -> Direction {
        match self.by {
            RegisteredModelSortBy::Name => Direction::Descending,
            RegisteredModelSortBy::LastUpdated => Direction::Ascending,
        }
    }
}

/// The list of the models of a kind by name, or that part of it whose names begin so and perhaps more.
pub(super) fn names_of(workspace: &Workspace, kind: ModelKind, beginning: Option<&str>) -> KeyRange {
    let names = rows::ModelName::all(&workspace.as_str().into()).kind(&kind);
    match beginning {
        Some(beginning) => names.beginning(&Name::from(beginning)),
        None => names.range(),
    }
}

impl Store {
    /// The names of the models of a kind, those that begin so and perhaps more. One request per MB of them.
    pub(super) async fn model_names(
        &self,
        workspace: &Workspace,
        kind: ModelKind,
        beginning: Option<&str>,
    ) -> Result<Vec<String>> {
        let pages = listing::pages(&self.table, Query::of(names_of(workspace, kind, beginning))).map_err(Error::from);
        let name_of = |row: &Item| row.get(NAME).map(str::to_owned);
        pages.and_then(|rows| ready(read_all(&rows, "the name of a model", name_of))).try_concat().await
    }
}
