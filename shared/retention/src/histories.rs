//! Removing histories of metrics that are kept no longer: those of runs that ended long ago.
//!
//! Nothing remembers how far this has come. Runs are looked at from those that ended last, so what
//! is left to do comes first. A metrics document says whether there is a history
//! ([`Indexer::has_history`]). So a look at a run that has none costs a read unit or two. Of a run
//! without a metrics document only a request of its own can tell. A process that takes turns sends
//! that once for a run that ended some days ago, and else once a month.

use entities::{RUN, RunLocation};
use fts_indexer::Indexer;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::RunsByEnd;
use key_schema::{Ascending, OwnStage, Segment};
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Item, Query};

use crate::failures::Failures;
use crate::policy::Policy;
use crate::report::Report;
use crate::store::Retention;

/// Runs that are looked at in one request.
const PORTION: usize = 100;
/// Runs whose histories are removed at a time.
const AT_ONCE: usize = 8;
/// Hours in which each experiment has a turn, where they take turns.
const HOURS: u64 = 24;
/// Days in which each experiment is looked at closely once, where they take turns.
const DAYS: u64 = 30;
/// For how long after its time a run is looked at closely in any case, in ms: three days.
const RECENT: i64 = 259_200_000;

impl Retention {
    /// Removes the histories of runs that ended before the time for which the policy keeps them.
    /// Deleted runs keep theirs: they are removed whole. It may be stopped anywhere, and be
    /// repeated.
    ///
    /// One request where there is no policy. Else one more, and for each experiment two per hundred
    /// runs that ended before that time. These cost a read unit or two each. A run without a
    /// metrics document that is looked at closely takes two more.
    ///
    /// # Errors
    /// Those of the table, after all other experiments were tried.
    pub async fn remove_old_histories(&self, workspace: &Workspace, report: &dyn Report) -> Result<()> {
        let Some(age) = Policy::Histories.read(&self.table).await? else { return Ok(()) };
        let mut failures = Failures::default();
        for experiment in self.indexer.experiments(workspace).await? {
            let (turn, before) = (experiment.number(), age.before());
            let closely_since = match self.histories_in {
                Some(hour) if turn % HOURS != hour % HOURS => continue,
                Some(hour) if turn / HOURS % DAYS != hour / HOURS % DAYS => before.saturating_sub(RECENT),
                _ => i64::MIN,
            };
            let outcome = self.remove_histories_in(experiment, before, closely_since, report).await;
            failures.note(format_args!("histories of experiment {experiment}"), outcome)?;
        }
        failures.finish()
    }

    async fn remove_histories_in(
        &self,
        experiment: ExperimentId,
        before: i64,
        closely_since: i64,
        report: &dyn Report,
    ) -> Result<()> {
        let mut page = Some(ended(experiment, before));
        while let Some(query) = page {
            let (runs, next) = self.histories(experiment, query, closely_since).await?;
            let forgotten: Vec<_> = runs.iter().map(|at| self.indexer.forget_history(at, before)).collect();
            let forgotten: Vec<bool> = stream::iter(forgotten).buffer_unordered(AT_ONCE).try_collect().await?;
            let count = forgotten.into_iter().map(u64::from).sum();
            if count > 0 {
                report.removed_histories(experiment, count);
            }
            page = next;
        }
        Ok(())
    }

    /// The experiments of a workspace with runs whose histories are kept no longer, and how many
    /// these are at most. It takes the requests of a removal that finds nothing.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn old_histories(&self, workspace: &Workspace) -> Result<Vec<(ExperimentId, usize)>> {
        let Some(age) = Policy::Histories.read(&self.table).await? else { return Ok(Vec::new()) };
        let mut old = Vec::new();
        for experiment in self.indexer.experiments(workspace).await? {
            let (mut count, mut page) = (0, Some(ended(experiment, age.before())));
            while let Some(query) = page {
                let (runs, next) = self.histories(experiment, query, i64::MIN).await?;
                count += runs.len();
                page = next;
            }
            if count > 0 {
                old.push((experiment, count));
            }
        }
        Ok(old)
    }

    /// Those runs of a page that may have a history, and the query for the next page. Runs without
    /// a metrics document are among them if they ended since this time, in ms. Two requests.
    async fn histories(
        &self,
        experiment: ExperimentId,
        query: Query,
        closely_since: i64,
    ) -> Result<(Vec<RunLocation>, Option<Query>)> {
        let page = self.table.query_page(&query).await?;
        let ended = page.items.iter().filter_map(Item::entry::<RunsByEnd>);
        let mut runs: Vec<_> = ended.map(|entry| (RunLocation { experiment, run: entry.run }, entry.ended.0)).collect();
        let documents = self.table.get_many(&runs.iter().map(|(at, _)| at.metrics_key()).collect::<Vec<_>>()).await?;
        runs.retain(|(at, ended)| match documents.get(&at.metrics_key()) {
            Some(document) => Indexer::has_history(document),
            None => *ended >= closely_since,
        });
        Ok((runs.into_iter().map(|(at, _)| at).collect(), page.next.map(|next| query.starting_at(next))))
    }
}

/// The runs of an experiment that ended before this time, in ms: those that ended last come first.
fn ended(experiment: ExperimentId, before: i64) -> Query {
    let ended = RunsByEnd::all(&experiment, &OwnStage::Active, &RUN.into()).range();
    Query::of(ended.until(&Ascending(before).text())).backwards().limit(PORTION)
}
