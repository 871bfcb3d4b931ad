//! The directory of an experiment's lists: all of its entries in the index are found by it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use entities::attributes::NAME;
use entities::{RUN, failed, read_all};
use key_schema::{Field, KeyRange, ranges, rows};
use mlflow_api::ExperimentId;
use table::{Item, Query, Result, Table, text};

use crate::entries::ListOf;

/// Lists that a process remembers at most, before it forgets them all: a few MB.
const MOST_REMEMBERED: usize = 50_000;

/// The lists that this process knows to be in the directory. Rows of the directory are only deleted
/// with their experiment. Its id is never used again.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    known: Arc<Mutex<HashMap<ExperimentId, HashSet<ListOf>>>>,
}

impl Directory {
    /// Has lists of an experiment in the directory: to be called before their first entries are put. No request for lists that are known
    /// here; else one for the experiment's directory, once in a process, and one per 25 lists that it does not tell of. Of a directory
    /// longer than 1 MB only the beginning is read: a row may be put again.
    pub async fn enter(&self, table: &Table, experiment: ExperimentId, lists: HashSet<ListOf>) -> Result<()> {
        if lists.is_empty() || self.unknown(experiment, &lists).is_some_and(|unknown| unknown.is_empty()) {
            return Ok(());
        }
        if self.unknown(experiment, &lists).is_none() {
            let page = table.query_page(&directory(experiment)).await?;
            self.remember(experiment, read(&page.items)?.into_iter().collect());
        }
        let new = self.unknown(experiment, &lists).unwrap_or(lists);
        let rows = new.iter().map(|(kind, of)| {
            let key = rows::IndexList::key(&experiment, &RUN.into(), kind, &Field::from(of.as_str()));
            Item::new(key).with(NAME, text(of))
        });
        table.write_many(rows.collect(), &[]).await?;
        self.remember(experiment, new);
        Ok(())
    }

    /// Those of the lists that are not known to be in the directory; `None` if nothing is known of the experiment.
    fn unknown(&self, experiment: ExperimentId, lists: &HashSet<ListOf>) -> Option<HashSet<ListOf>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&experiment).map(|known| lists.difference(known).cloned().collect())
    }

    fn remember(&self, experiment: ExperimentId, lists: HashSet<ListOf>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered: usize = known.values().map(HashSet::len).sum();
        if remembered + lists.len() > MOST_REMEMBERED {
            known.clear();
        }
        known.entry(experiment).or_default().extend(lists);
    }
}

/// The entries of an experiment's lists, list by list, from one page of its directory, and the
/// query for the next page. One request.
pub(crate) async fn lists_of(
    table: &Table,
    experiment: ExperimentId,
    page: Option<Query>,
) -> Result<(Vec<KeyRange>, Option<Query>)> {
    let query = page.unwrap_or_else(|| directory(experiment));
    let page = table.query_page(&query).await?;
    let ranges =
        |(kind, of): ListOf| ranges::entries_of_list(&experiment, &RUN.into(), kind, &Field::from(of.as_str()));
    let lists = read(&page.items)?.into_iter().flat_map(ranges).collect();
    Ok((lists, page.next.map(|next| query.starting_at(next))))
}

fn directory(experiment: ExperimentId) -> Query {
    Query::of(rows::IndexList::all(&experiment).entity_type(&RUN.into()))
}

fn read(rows: &[Item]) -> Result<Vec<ListOf>> {
    let list = |row: &Item| Some((key_schema::part::kind_of_list(&row.key()?.sk)?, row.get(NAME)?.to_owned()));
    read_all(rows, "a row of the directory of lists", list).map_err(failed)
}
