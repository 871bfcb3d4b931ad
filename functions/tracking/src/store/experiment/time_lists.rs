//! Searches of active experiments in the order of a list, which is sorted by creation or by last
//! change. The list is read only as far as the page needs it, regardless of the number of
//! experiments.

use std::collections::HashSet;

use access::{Guard, Visibility};
use entities::listing::{ReadBudget, ResponsePage, add_listed, within_time};
use entities::read_all;
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{KeyRange, Name, Stage};
use mlflow_api::tracking::ViewType;
use mlflow_api::{Result, Workspace};
use search::{
    ExperimentFilter, ExperimentNumber, ExperimentOrder, ExperimentSortBy, FirstValue, OrderTerm, SortDirection,
    SortKey, TimeRange,
};
use table::{Item, Query};

use super::list_entry::ExperimentEntry;
use super::search_criteria::ExperimentCriteria;

/// Minimum number of entries to read if the filter may reject some.
const MIN_BATCH_SIZE: usize = 100;

/// A list of experiments whose order is the order of a search.
pub(super) struct TimeList {
    attribute: ExperimentNumber,
    direction: SortDirection,
}

impl TimeList {
    /// Returns the list whose order is the order of a search, if there is one. Returns `None` if
    /// the filter requires a prefix of the name, because it is cheaper to read only the names with
    /// the prefix.
    pub(super) fn of(view: ViewType, filter: &ExperimentFilter, order: &ExperimentOrder) -> Option<Self> {
        let [
            OrderTerm { by: ExperimentSortBy::Number(attribute), direction },
            OrderTerm { by: ExperimentSortBy::Id, .. },
        ] = order.terms[..]
        else {
            return None;
        };
        let is_listed = view == ViewType::ActiveOnly && filter.name_beginning().is_none();
        is_listed.then_some(Self { attribute, direction })
    }

    /// Returns the part of the list that may contain experiments after the previous page.
    fn range(&self, workspace: &Workspace, after: Option<&SortKey>) -> KeyRange {
        let workspace = Name::from(workspace.as_str());
        let range = match self.attribute {
            ExperimentNumber::CreationTime => ExperimentsByStage::all(&workspace).stage(&Stage::Active).range(),
            ExperimentNumber::LastUpdateTime => ExperimentsByChange::all(&workspace).stage(&Stage::Active).range(),
        };
        let Some(FirstValue::Integer(time)) = after.and_then(SortKey::first_value) else { return range };
        within_time(
            range,
            match self.direction {
                SortDirection::Ascending => TimeRange { from: Some(time), until: None },
                SortDirection::Descending => TimeRange { from: None, until: Some(time) },
            },
        )
    }

    fn query(&self, workspace: &Workspace, after: Option<&SortKey>) -> Query {
        let query = Query::of(self.range(workspace, after));
        match self.direction {
            SortDirection::Ascending => query.backwards(),
            SortDirection::Descending => query,
        }
    }

    fn entry(&self, row: &Item) -> Option<ExperimentEntry> {
        match self.attribute {
            ExperimentNumber::CreationTime => ExperimentEntry::by_creation(row),
            ExperimentNumber::LastUpdateTime => ExperimentEntry::by_change(row),
        }
    }

    /// Returns a page of a search. Takes two requests, and one read unit per experiment on the
    /// page, or more if the filter rejects experiments. An experiment that is changed while the
    /// list by change is read may be missing from the results, because it moves to the start of the
    /// list, which has already been read.
    pub(super) async fn page(
        &self,
        wanted: &ExperimentCriteria<'_>,
        visible: &Visibility,
        page_size: usize,
        mut reading: ReadBudget,
    ) -> Result<ResponsePage<SortKey>> {
        let mut page = ResponsePage::new(page_size);
        let mut query = self.query(wanted.workspace, wanted.after.as_ref());
        let may_refuse = !wanted.filter.predicates.is_empty();
        let refuses_none = !may_refuse && matches!(visible, Visibility::Everything);
        // The set removes duplicates, because an experiment that is changed while the list is read
        // may appear on two pages of the list.
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        let (mut entries_read, mut experiments_read) = (0, 0);
        loop {
            // Two entries are read in addition to the missing ones: one shows whether there is
            // another page, and the first one may be the last entry of the previous page. If the
            // filter may reject entries, the number read doubles each time, so that few sequential
            // requests are needed even if few entries pass.
            let few = page.missing() + 2;
            query = query.limit(if refuses_none { few } else { few.max(MIN_BATCH_SIZE).max(entries_read) });
            let rows = wanted.store.table.query_page(&query).await?;
            entries_read += rows.items.len();
            entries.extend(read_all(&rows.items, "a place in the list of experiments", |row| self.entry(row))?);
            // Entries with equal times can be sorted only after all of them have been read, so
            // those with the last time wait for the next request.
            let last = entries.last().map(|entry| entry.time).filter(|_| rows.next.is_some());
            let whole = entries.iter().take_while(|entry| Some(entry.time) != last).count();
            let of_page = entries.drain(..whole).filter(|entry| may_be_on_page(wanted, visible, entry));
            let mut portion: Vec<_> = of_page.filter(|entry| seen.insert(entry.id)).collect();
            portion.sort_by_cached_key(|entry| wanted.order.key(entry));
            add_listed(wanted, &portion, may_refuse, &mut page, &mut reading, &mut experiments_read).await?;
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
}

/// Checks whether an experiment may be on the page, judging only by its list entry.
fn may_be_on_page(wanted: &ExperimentCriteria<'_>, visible: &Visibility, entry: &ExperimentEntry) -> bool {
    let is_behind = || wanted.after.as_ref().is_none_or(|after| wanted.order.key(entry) > *after);
    entry.may_pass(&wanted.filter) && visible.shows(&Guard::Experiment(entry.id)) && is_behind()
}
