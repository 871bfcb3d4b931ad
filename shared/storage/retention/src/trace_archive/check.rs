//! Compares the archive with the references to it.

use std::collections::{BTreeMap, BTreeSet};

use artifact_store::ArchiveError;
use entities::archived_objects::all_objects;
use key_schema::Key;
use mlflow_api::{ArchiveObject, Result, Workspace};
use table::Query;
use trace_blocks::TracePartition;

use super::references::referenced_objects;
use crate::store::Retention;

/// Differences between the archive and the references to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveDifferences {
    /// Objects to which no item refers, and which no row schedules for deletion.
    pub orphaned: BTreeSet<ArchiveObject>,
    /// Objects that do not exist, each with the key of an item that refers to it.
    pub missing: BTreeMap<ArchiveObject, Key>,
}

impl Retention {
    /// Compares the objects of the archive with the references of all items in these workspaces. Works
    /// while other processes archive. Lists the archive, reads all blocks of traces, and sends one
    /// request for each difference.
    ///
    /// # Errors
    /// Returns failures of the table and of the archive, and an internal error if an item that may
    /// refer to the archive cannot be read.
    pub async fn check_archive(&self, workspaces: &[Workspace]) -> Result<ArchiveDifferences> {
        // Objects are listed first, and references are read last: the row of a new object is deleted
        // only after the reference to it has been written.
        let mut orphaned = self.list_archive().await?;
        let announced: BTreeSet<ArchiveObject> =
            all_objects(&self.table).await?.into_iter().map(|row| row.object).collect();
        let listed = orphaned.clone();
        let mut missing = BTreeMap::new();
        for workspace in workspaces {
            for experiment in self.index.experiments(workspace).await? {
                for (day, shards) in self.trace_days(experiment).await? {
                    for shard in 0..shards {
                        let partition = TracePartition { experiment, day, shard };
                        for (object, key) in self.references_of(partition).await? {
                            orphaned.remove(&object);
                            if !listed.contains(&object) {
                                missing.insert(object, key);
                            }
                        }
                    }
                }
            }
        }
        orphaned.retain(|object| !announced.contains(object));
        let (mut found, unconfirmed) = (ArchiveDifferences::default(), (orphaned, missing));
        for object in unconfirmed.0 {
            // The object may have been deleted since it was listed.
            if self.has_object(object).await? {
                found.orphaned.insert(object);
            }
        }
        for (object, key) in unconfirmed.1 {
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

    /// Returns the references of the blocks of a partition.
    async fn references_of(&self, partition: TracePartition) -> Result<Vec<(ArchiveObject, Key)>> {
        let (mut query, mut references) = (Query::of(partition.blocks()), Vec::new());
        loop {
            let page = self.table.query_page(&query).await?;
            for item in &page.items {
                let Some(key) = item.key() else { continue };
                references.extend(referenced_objects(item)?.into_iter().map(|object| (object, key.clone())));
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(references),
            }
        }
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
