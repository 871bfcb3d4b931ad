//! Compares the archive with the references to it.

use std::collections::{BTreeMap, BTreeSet};

use artifact_store::ArchiveError;
use entities::archived_objects::all_objects;
use entities::read_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::RunsByTime;
use key_schema::{Key, KeyRange, rows};
use mlflow_api::{ArchiveObject, ExperimentId, Result, Workspace};
use table::{Item, Query};
use trace_blocks::TracePartition;

use super::references::referenced_objects;
use crate::store::Retention;

/// Number of runs whose archived histories are read concurrently.
const CONCURRENCY: usize = 16;

/// Differences between the archive and the references to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveDifferences {
    /// Objects to which no item refers, and which no row schedules for deletion.
    pub orphaned: BTreeSet<ArchiveObject>,
    /// Objects that do not exist, each with the key of an item that refers to it.
    pub missing: BTreeMap<ArchiveObject, Key>,
}

/// Candidate differences, narrowed down as references are read.
struct OpenDifferences {
    /// All objects of the archive.
    listed: BTreeSet<ArchiveObject>,
    /// Objects to which no item refers so far.
    unreferenced: BTreeSet<ArchiveObject>,
    /// Objects that were not listed, each with an item that refers to it.
    missing: BTreeMap<ArchiveObject, Key>,
}

impl OpenDifferences {
    fn note(&mut self, references: Vec<(ArchiveObject, Key)>) {
        for (object, key) in references {
            self.unreferenced.remove(&object);
            if !self.listed.contains(&object) {
                self.missing.insert(object, key);
            }
        }
    }
}

impl Retention {
    /// Compares the objects of the archive with the references of all items in these workspaces. Works
    /// while other processes archive. Lists the archive, reads all blocks of traces, and sends one
    /// request for each run and one for each difference.
    ///
    /// # Errors
    /// Returns failures of the table and of the archive, and an internal error if an item that may
    /// refer to the archive cannot be read.
    pub async fn check_archive(&self, workspaces: &[Workspace]) -> Result<ArchiveDifferences> {
        // Objects are listed first, and references are read last: the row of a new object is deleted
        // only after the reference to it has been written.
        let listed = self.list_archive().await?;
        let announced: BTreeSet<ArchiveObject> =
            all_objects(&self.table).await?.into_iter().map(|row| row.object).collect();
        let unreferenced = listed.difference(&announced).copied().collect();
        let mut open = OpenDifferences { listed, unreferenced, missing: BTreeMap::new() };
        for workspace in workspaces {
            for experiment in self.index.experiments(workspace).await? {
                self.note_references_of_traces(experiment, &mut open).await?;
                self.note_references_of_runs(experiment, &mut open).await?;
            }
        }
        // Runs whose removal has not been completed may not be listed any more.
        let removals = self.table.query(Query::of(rows::RunRemoval::all())).await?;
        let removals = removals.iter().filter_map(|item| rows::RunRemoval::parse(&item.key()?));
        for removal in removals {
            open.note(self.references_of_lists(rows::ArchivedSegments::all(&removal.run).range()).await?);
        }
        // If a reference was dropped before this check read it, a row schedules the deletion of its object.
        for row in all_objects(&self.table).await? {
            open.unreferenced.remove(&row.object);
        }
        let mut found = ArchiveDifferences::default();
        for object in open.unreferenced {
            // The object may have been deleted since it was listed.
            if self.has_object(object).await? {
                found.orphaned.insert(object);
            }
        }
        for (object, key) in open.missing {
            // The object may have been written since the archive was listed, or replaced since the
            // reference was read.
            if !self.has_object(object).await? && self.refers(&key, object).await? {
                found.missing.insert(object, key);
            }
        }
        Ok(found)
    }

    async fn list_archive(&self) -> Result<BTreeSet<ArchiveObject>> {
        let (mut objects, mut from) = (BTreeSet::new(), None);
        loop {
            let page = self.archive.list(from).await?;
            objects.extend(page.objects.into_iter().map(|file| file.object));
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(objects),
            }
        }
    }

    /// Reads the references of the blocks of an experiment.
    async fn note_references_of_traces(&self, experiment: ExperimentId, open: &mut OpenDifferences) -> Result<()> {
        for (day, shards) in self.trace_days(experiment).await? {
            for shard in 0..shards {
                let mut next = Some(Query::of(TracePartition { experiment, day, shard }.blocks()));
                while let Some(query) = next {
                    let page = self.table.query_page(&query).await?;
                    open.note(references_of(&page.items)?);
                    next = page.next.map(|next| query.starting_at(next));
                }
            }
        }
        Ok(())
    }

    /// Reads the references of the archived histories of an experiment's runs, including deleted runs.
    async fn note_references_of_runs(&self, experiment: ExperimentId, open: &mut OpenDifferences) -> Result<()> {
        let mut next = Some(Query::of(RunsByTime::all(&experiment)));
        while let Some(query) = next {
            let page = self.table.query_page(&query).await?;
            let runs = read_all(&page.items, "a place in the list of runs", Item::entry::<RunsByTime>)?;
            let lists =
                runs.iter().map(|listed| self.references_of_lists(rows::ArchivedSegments::all(&listed.run).range()));
            let mut lists = stream::iter(lists.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
            while let Some(references) = lists.try_next().await? {
                open.note(references);
            }
            next = page.next.map(|next| query.starting_at(next));
        }
        Ok(())
    }

    /// Returns the references of the lists of archived segments in a range.
    async fn references_of_lists(&self, lists: KeyRange) -> Result<Vec<(ArchiveObject, Key)>> {
        references_of(&self.table.query(Query::of(lists)).await?)
    }

    async fn has_object(&self, object: ArchiveObject) -> Result<bool> {
        match self.archive.read(object, 0, 1).await {
            Ok(_) | Err(ArchiveError::Incomplete(_)) => Ok(true),
            Err(ArchiveError::Missing(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn refers(&self, key: &Key, object: ArchiveObject) -> Result<bool> {
        let item = self.table.get(key).await?;
        item.map_or(Ok(false), |item| referenced_objects(&item).map(|objects| objects.contains(&object)))
    }
}

/// Returns the objects that items refer to, with the keys of the items.
fn references_of(items: &[Item]) -> Result<Vec<(ArchiveObject, Key)>> {
    let mut references = Vec::new();
    for item in items {
        let Some(key) = item.key() else { continue };
        references.extend(referenced_objects(item)?.into_iter().map(|object| (object, key.clone())));
    }
    Ok(references)
}
