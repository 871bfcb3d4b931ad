//! A per-process cache of the settings for the archival of traces.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use key_schema::{Name, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ARCHIVAL_RETENTION_TAG, ErrorCode, ExperimentId, Result, Workspace};
use table::{Item, Table};

use crate::attributes::{ROW_VALUE, TAGS, WORKSPACE};
use crate::trace_archival::{TraceArchival, TraceArchivalPolicy, TraceArchivalSetting, WorkspaceArchival};
use crate::workspaces::Workspaces;
use crate::{Moment, entry_name, experiment_state, workspace_named};

/// How long a process relies on the settings of the server and the workspaces that it has read.
const CACHE_DURATION: Duration = Duration::from_mins(1);
/// Maximum number of cached workspaces. When it is exceeded, the cache is cleared.
const MAX_CACHED_WORKSPACES: usize = 10_000;

/// A per-process cache of the settings for the archival of traces. Cheap to clone; clones share the
/// cache.
#[derive(Clone, Debug)]
pub struct TraceArchivalCache {
    table: Table,
    // A std mutex is sufficient: nothing is awaited while it is held.
    cached: Arc<Mutex<CachedSettings>>,
}

#[derive(Debug, Default)]
struct CachedSettings {
    server: Option<(Moment, Arc<TraceArchivalSetting>)>,
    workspaces: HashMap<Workspace, (Moment, Arc<WorkspaceArchival>)>,
}

impl TraceArchivalCache {
    /// Creates an empty cache for a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, cached: Arc::default() }
    }

    /// Returns the server's setting. Takes at most one request per minute.
    ///
    /// # Errors
    /// Returns an error if the table or the setting cannot be read.
    pub async fn server(&self) -> Result<Arc<TraceArchivalSetting>> {
        let cached = self.memory().server.clone();
        if let Some((_, setting)) = cached.filter(|(read, _)| read.age() < CACHE_DURATION) {
            return Ok(setting);
        }
        let read = Moment::now();
        let setting = Arc::new(TraceArchivalSetting::read(&self.table).await?);
        self.memory().server = Some((read, Arc::clone(&setting)));
        Ok(setting)
    }

    /// Returns the settings of a workspace. Takes at most one request per minute. A workspace that
    /// does not exist has no settings.
    ///
    /// # Errors
    /// Returns an error if the table or the workspace cannot be read.
    pub async fn workspace(&self, name: &Workspace) -> Result<Arc<WorkspaceArchival>> {
        let cached = self.memory().workspaces.get(name).cloned();
        if let Some((_, settings)) = cached.filter(|(read, _)| read.age() < CACHE_DURATION) {
            return Ok(settings);
        }
        let read = Moment::now();
        let settings = match Workspaces::new(self.table.clone()).get(name).await {
            Ok(document) => WorkspaceArchival::of(&document),
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => WorkspaceArchival::default(),
            Err(error) => return Err(error),
        };
        let settings = Arc::new(settings);
        let mut memory = self.memory();
        if memory.workspaces.len() >= MAX_CACHED_WORKSPACES {
            memory.workspaces.clear();
        }
        memory.workspaces.insert(name.clone(), (read, Arc::clone(&settings)));
        Ok(settings)
    }

    /// Returns how the traces of these experiments are archived. Experiments that do not exist or
    /// are deleted are left out, because their traces are not archived. Takes one request per fifty
    /// experiments, and at most one per minute for the server's setting and for each workspace.
    ///
    /// # Errors
    /// Returns an error if the table or one of the settings cannot be read.
    pub async fn experiments(&self, experiments: &[ExperimentId]) -> Result<HashMap<ExperimentId, TraceArchival>> {
        let tag = Name::from(ARCHIVAL_RETENTION_TAG);
        let keys =
            |experiment: &ExperimentId| (rows::Experiment::key(experiment), rows::ExperimentTag::key(experiment, &tag));
        let all: Vec<_> = experiments.iter().flat_map(|experiment| <[_; 2]>::from(keys(experiment))).collect();
        let items = self.table.get_many(&all).await?;
        let server = self.server().await?;
        let mut found = HashMap::new();
        for experiment in experiments {
            let (document, row) = keys(experiment);
            let Some(document) = items.get(&document) else { continue };
            if experiment_state(document).stage == LifecycleStage::Deleted {
                continue;
            }
            let name = workspace_named(document.get(WORKSPACE))?;
            let workspace = self.workspace(&name).await?;
            let policy = TraceArchivalPolicy { server: &server, workspace: &workspace };
            let tag = experiment_tag(document, items.get(&row), ARCHIVAL_RETENTION_TAG);
            found.insert(*experiment, policy.of(*experiment, tag));
        }
        Ok(found)
    }

    fn memory(&self) -> MutexGuard<'_, CachedSettings> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value of a tag of an experiment, given the experiment's document and the tag's row. It
/// is in the row if the document was full.
#[must_use]
pub fn experiment_tag<'a>(document: &'a Item, row: Option<&'a Item>, tag: &str) -> Option<&'a str> {
    let held = document.map(TAGS).and_then(|tags| tags.get(entry_name(tag).as_ref())?.as_s().ok());
    held.map(String::as_str).or_else(|| row?.get(ROW_VALUE))
}
