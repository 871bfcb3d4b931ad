//! The directory of an experiment's lists, through which all of its index entries are found.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use entities::attributes::NAME;
use entities::{RUN_ENTITY_TYPE, failed, read_all};
use key_schema::{Field, KeyRange, ranges, rows};
use mlflow_api::ExperimentId;
use table::{Item, Query, Result, Table, text};

use crate::entries::ListIdentity;

/// Maximum number of lists in the cache, which takes a few MB. The cache is cleared when it would
/// be exceeded.
const MAX_CACHED_LISTS: usize = 50_000;

/// A per-process cache of the lists that are in the directory. It needs no invalidation, because
/// rows of the directory are only deleted together with their experiment, and an experiment's ID is
/// never reused.
#[derive(Clone, Debug, Default)]
pub struct ListDirectory {
    known: Arc<Mutex<HashMap<ExperimentId, HashSet<ListIdentity>>>>,
}

impl ListDirectory {
    /// Adds lists of an experiment to the directory. Must be called before the first entries of the
    /// lists are written.
    ///
    /// Sends no request if all lists are in the cache. Otherwise sends one request for the
    /// experiment's directory, once per process, and one per 25 lists that are not in the
    /// directory. If the directory is longer than 1 MB, only its beginning is read, because writing
    /// a row again does no harm.
    pub async fn enter(&self, table: &Table, experiment: ExperimentId, lists: HashSet<ListIdentity>) -> Result<()> {
        if lists.is_empty() || self.unknown(experiment, &lists).is_some_and(|unknown| unknown.is_empty()) {
            return Ok(());
        }
        if self.unknown(experiment, &lists).is_none() {
            let page = table.query_page(&directory(experiment)).await?;
            self.remember(experiment, read(&page.items)?.into_iter().collect());
        }
        let new = self.unknown(experiment, &lists).unwrap_or(lists);
        let rows = new.iter().map(|(kind, of)| {
            let key = rows::IndexList::key(&experiment, &RUN_ENTITY_TYPE.into(), kind, &Field::from(of.as_str()));
            Item::new(key).with(NAME, text(of))
        });
        table.write_many(rows.collect(), &[]).await?;
        self.remember(experiment, new);
        Ok(())
    }

    /// Returns the lists that are not in the cache, or `None` if nothing of the experiment is
    /// cached.
    fn unknown(&self, experiment: ExperimentId, lists: &HashSet<ListIdentity>) -> Option<HashSet<ListIdentity>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&experiment).map(|known| lists.difference(known).cloned().collect())
    }

    fn remember(&self, experiment: ExperimentId, lists: HashSet<ListIdentity>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered: usize = known.values().map(HashSet::len).sum();
        if remembered + lists.len() > MAX_CACHED_LISTS {
            known.clear();
        }
        known.entry(experiment).or_default().extend(lists);
    }
}

/// Reads one page of an experiment's directory. Returns the key ranges of the lists on the page,
/// and the query for the next page. Sends one request.
pub(crate) async fn lists_of(
    table: &Table,
    experiment: ExperimentId,
    page: Option<Query>,
) -> Result<(Vec<KeyRange>, Option<Query>)> {
    let query = page.unwrap_or_else(|| directory(experiment));
    let page = table.query_page(&query).await?;
    let ranges = |(kind, of): ListIdentity| {
        ranges::entries_of_list(&experiment, &RUN_ENTITY_TYPE.into(), kind, &Field::from(of.as_str()))
    };
    let lists = read(&page.items)?.into_iter().flat_map(ranges).collect();
    Ok((lists, page.next.map(|next| query.starting_at(next))))
}

fn directory(experiment: ExperimentId) -> Query {
    Query::of(rows::IndexList::all(&experiment).entity_type(&RUN_ENTITY_TYPE.into()))
}

fn read(rows: &[Item]) -> Result<Vec<ListIdentity>> {
    let list = |row: &Item| Some((key_schema::key_parts::kind_of_list(&row.key()?.sk)?, row.get(NAME)?.to_owned()));
    read_all(rows, "a row of the directory of lists", list).map_err(failed)
}
