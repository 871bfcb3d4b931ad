//! Reads a batch of runs.

use std::collections::HashSet;
use std::sync::Arc;

use entities::{RunCopy, RunLocation, read_runs};
use futures::stream::TryStreamExt;
use key_schema::Key;
use mlflow_api::Result;
use table::Table;

use super::run_collector::{PassStats, RunCollector};
use super::run_source::{RunSource, RunToRead};

/// A reader that reads a batch of runs and passes each run to the collector.
pub(super) struct BatchReader<'a, 'b> {
    table: &'b Table,
    collector: &'b mut RunCollector<'a>,
    /// Runs that were listed at the end of the order because, according to the index, they have no
    /// value for the column that the search is ordered by. If such a run turns out to have a value,
    /// it is skipped, because the lists contain it at its proper position.
    without_value: HashSet<RunLocation>,
    passed: PassStats,
}

impl<'a, 'b> BatchReader<'a, 'b> {
    /// Creates a reader for one batch.
    pub(super) fn new(
        table: &'b Table,
        collector: &'b mut RunCollector<'a>,
        without_value: HashSet<RunLocation>,
    ) -> Self {
        Self { table, collector, without_value, passed: PassStats::default() }
    }

    /// Reads a batch of runs. A copy costs one read unit, and one request reads 100 copies. A run
    /// that is read from its documents costs twice as much.
    pub(super) async fn read(mut self, runs: Vec<RunToRead>) -> Result<PassStats> {
        let (mut by_key, mut documents) = (Vec::new(), Vec::new());
        for RunToRead { at, source } in runs {
            match source {
                RunSource::LoadedCopy(copy) => {
                    let copy = RunCopy(Arc::unwrap_or_clone(copy));
                    documents.extend(self.examine_copy(at, Some(copy)).await?);
                }
                RunSource::Copy(key) => by_key.push((at, key)),
                RunSource::Documents => documents.push(at),
            }
        }
        documents.extend(self.read_copies(by_key).await?);
        self.read_documents(&documents).await?;
        Ok(self.passed)
    }

    /// Reads copies of runs by their keys. Returns the runs whose copies are missing or unusable,
    /// which have to be read from their documents.
    async fn read_copies(&mut self, runs: Vec<(RunLocation, Key)>) -> Result<Vec<RunLocation>> {
        let keys: Vec<_> = runs.iter().map(|(_, key)| key.clone()).collect();
        let mut copies = self.table.get_many(&keys).await?;
        let mut documents = Vec::new();
        for (at, key) in runs {
            let copy = copies.remove(&key).map(RunCopy);
            documents.extend(self.examine_copy(at, copy).await?);
        }
        Ok(documents)
    }

    /// Reads the documents of runs. Each run is examined as soon as it has been read, because a run
    /// with many metrics takes up much memory.
    async fn read_documents(&mut self, runs: &[RunLocation]) -> Result<()> {
        let mut read = std::pin::pin!(read_runs(self.table, runs));
        while let Some((at, items)) = read.try_next().await? {
            let must_lack_value = self.without_value.contains(&at);
            self.collector.examine(&at, &items, must_lack_value, &mut self.passed).await?;
        }
        Ok(())
    }

    /// Examines a run's copy. Returns the run if it has no copy, or if its copy contains no values.
    async fn examine_copy(&mut self, at: RunLocation, copy: Option<RunCopy>) -> Result<Option<RunLocation>> {
        let Some(items) = copy.and_then(RunCopy::into_values) else { return Ok(Some(at)) };
        let must_lack_value = self.without_value.contains(&at);
        self.collector.examine(&at, &items, must_lack_value, &mut self.passed).await?;
        Ok(None)
    }
}
