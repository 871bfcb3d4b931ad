//! Step 5: reads the first entries of promising lists, so that the plan can be chosen from them.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{Error, ExperimentId, Result};
use run_index::{HEAD_ENTRIES, ListCursor, RunLists};
use search::{ListHead, ListHeads, RunList, RunOptions};

use super::list_cursors::page_cursor;
use super::request::RunSearch;
use super::searched_experiment::{CONCURRENCY, SearchedExperiment};
use crate::store::Store;

/// Cursors of lists whose first entries were read for planning.
#[derive(Default)]
pub(super) struct ProbedLists(HashMap<ExperimentId, Vec<(RunList, ListCursor)>>);

impl Store {
    /// Reads the first entries of the lists that the options name. In lists that are ordered newest
    /// first, reading starts at the requested page. Takes one request per list and experiment.
    pub(super) async fn probed_lists(
        &self,
        experiments: &[SearchedExperiment],
        options: &RunOptions,
        search: &RunSearch,
    ) -> Result<ProbedLists> {
        let lists = &options.probes();
        let cursors = experiments.iter().flat_map(|experiment| lists.iter().map(move |list| (experiment, list)));
        let cursors = cursors.map(|(experiment, list)| async move {
            let lists = RunLists::of_active(experiment.id, options.started);
            let mut cursor = page_cursor(&lists, list, search, HEAD_ENTRIES);
            cursor.read_more(&self.table).await?;
            Ok::<_, Error>((experiment.id, (list.clone(), cursor)))
        });
        let cursors: Vec<_> = stream::iter(cursors.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        let mut probed = ProbedLists::default();
        for (experiment, cursor) in cursors {
            probed.0.entry(experiment).or_default().push(cursor);
        }
        Ok(probed)
    }
}

impl ProbedLists {
    /// Summarizes the first entries of the lists over all experiments.
    pub(super) fn heads(&self, options: &RunOptions) -> ListHeads {
        let heads = options.probes().into_iter().map(|list| {
            let head = self.head(&list);
            (list, head)
        });
        heads.collect()
    }

    fn head(&self, list: &RunList) -> ListHead {
        let mut head = ListHead { entries: 0, complete: true, first: None, last: None };
        for (_, cursor) in self.0.values().flatten().filter(|(probed, _)| probed == list) {
            let entries = cursor.buffer();
            head.entries += entries.len();
            head.complete &= cursor.is_done();
            head.first = head.first.max(entries.front().map(|entry| entry.started));
            head.last = head.last.max(entries.back().map(|entry| entry.started));
        }
        head
    }

    /// Removes and returns the cursor of a list that was read for planning.
    pub(super) fn take(&mut self, experiment: ExperimentId, list: &RunList) -> Option<ListCursor> {
        let cursors = self.0.get_mut(&experiment)?;
        let position = cursors.iter().position(|(probed, _)| probed == list)?;
        Some(cursors.swap_remove(position).1)
    }
}
