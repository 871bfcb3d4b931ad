//! Lists that are read whole: for what is rare, and for orders in which no list is.

use std::collections::{HashMap, HashSet, VecDeque};

use entities::RunLocation;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::place;
use mlflow_api::{Error, Result};
use search::{RunList, RunOrder, SortKey};

use super::finder::Finder;
use super::list::{Cursor, Entry, HEAD};
use super::scope::{ListsOf, Scope};
use super::source::{Candidate, Source};
use super::{AT_ONCE, from_page};

impl Finder<'_> {
    /// Reads lists whole, and then the runs that stand in all of them: in the default order only until the page is full.
    pub(super) async fn gather(&mut self, scopes: &[&Scope], lists: &[RunList]) -> Result<()> {
        let gathered = self.entries_in_all(scopes, lists, usize::MAX).await?.unwrap_or_default();
        let is_exact = self.plan.order == RunOrder::default();
        let after = self.after.filter(|_| is_exact).and_then(SortKey::latest_first);
        let after = after.map(|(started, run)| place::newest_first(started, run));
        let candidates = gathered.into_iter().map(|entry| Candidate::gathered(entry, is_exact));
        let is_on_page = |candidate: &Candidate| after.as_deref().is_none_or(|after| candidate.place() > after);
        let mut candidates: Vec<_> = candidates.filter(is_on_page).collect();
        candidates.sort_unstable_by(|a, b| a.order(b, false));
        self.take_from(vec![Source::Gathered(VecDeque::from(candidates))]).await
    }

    /// The runs of all indexed experiments that stand in all of these lists; `None` if these have more entries than the limit.
    pub(super) async fn runs_in_all(&self, lists: &[RunList], limit: usize) -> Result<Option<HashSet<RunLocation>>> {
        let scopes = self.scopes.values().copied().filter(|scope| self.unlisted.contains_key(&scope.id));
        let entries = self.entries_in_all(&scopes.collect::<Vec<_>>(), lists, limit).await?;
        Ok(entries.map(|entries| entries.into_iter().map(|entry| entry.at).collect()))
    }

    async fn entries_in_all(&self, scopes: &[&Scope], lists: &[RunList], limit: usize) -> Result<Option<Vec<Entry>>> {
        let limit = limit / scopes.len().max(1);
        let gathered = scopes.iter().map(|scope| self.gather_scope(scope, lists, limit));
        let gathered: Vec<Option<Vec<Entry>>> =
            stream::iter(gathered.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        Ok(gathered.into_iter().collect::<Option<Vec<_>>>().map(|entries| entries.into_iter().flatten().collect()))
    }

    async fn gather_scope(&self, scope: &Scope, lists: &[RunList], limit: usize) -> Result<Option<Vec<Entry>>> {
        let mut in_all: Option<HashMap<String, Entry>> = None;
        let mut left = limit;
        for list in lists {
            let keys = ListsOf::new(scope, self.plan).keys(list);
            let keys = if list.is_newest_first() { from_page(keys, self.after) } else { keys };
            let mut cursor = Cursor::new(keys, HEAD);
            cursor.read_more(&self.store.table).await?;
            while !cursor.is_done() {
                if cursor.buffer().len() >= left {
                    return Ok(None);
                }
                cursor.limit_page(left - cursor.buffer().len());
                cursor.read_more(&self.store.table).await?;
            }
            left = left.saturating_sub(cursor.buffer().len());
            let mut here = HashMap::with_capacity(cursor.buffer().len());
            for entry in cursor.into_entries() {
                let run = entry.at.run.to_string();
                let may_pass = self.plan.started.contains(entry.started);
                if may_pass && in_all.as_ref().is_none_or(|all| all.contains_key(&run)) {
                    here.insert(run, entry);
                }
            }
            in_all = Some(here);
        }
        Ok::<_, Error>(Some(in_all.unwrap_or_default().into_values().collect()))
    }
}
