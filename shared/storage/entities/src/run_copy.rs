//! The indexer's copy of a run: a single item with everything that a search returns.
//!
//! A run is spread over a document, rows and metrics documents, because it is written in parts. The
//! indexer combines them into a copy, so that a search reads a page of a hundred runs as a hundred
//! items. A copy is up to date as long as its run carries no mark.

use std::collections::BTreeSet;

use key_schema::attributes::{Attribute, List};
use key_schema::{Descending, Key, Name, OwnStage, definition, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Result, RunId};
use table::{Item, Map, Value, map, text};

use crate::attributes::{
    DELETED_TIME, ENTRIES, FIELDS, INDEXED, LINK_ROWS, LINKS, NONCE, PARAM_ROWS, PARAMS, ROOM, STAGE, STALE,
    START_TIME, TAG_ROWS, TAGS, metric_attribute, metric_of,
};
use crate::indexing_state;
use crate::metrics::pack_set;
use crate::param_and_tag_maps::{entries, entry_name};
use crate::run_items::RunItems;
use crate::run_links;
use crate::run_location::RunLocation;
use crate::unreadable_item::unreadable;

/// Entity type of runs in the index.
pub const RUN_ENTITY_TYPE: &str = "run";

/// Maximum size of copies that include values. For larger runs, storing the values costs more than
/// reading the run itself.
const MAX_BYTES: usize = 24 << 10;

/// Attributes of a run's document that its copy stores in another form or omits.
const NOT_COPIED: [&str; 8] = [
    PARAMS.name(),
    TAGS.name(),
    PARAM_ROWS.name(),
    TAG_ROWS.name(),
    LINKS.name(),
    NONCE.name(),
    DELETED_TIME.name(),
    ROOM.name(),
];

/// A copy, as an item.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCopy(pub Item);

/// Returns the stage of the run itself, regardless of the stage of its experiment.
#[must_use]
pub fn own_stage(run: &Item) -> OwnStage {
    match run.get(STAGE).unwrap_or_default() {
        LifecycleStage::Active => OwnStage::Active,
        LifecycleStage::Deleted => OwnStage::Deleted,
    }
}

impl RunCopy {
    /// Returns the key of a run's copy. `started` is the run's start time in ms, by which copies
    /// are sorted within their stage.
    #[must_use]
    pub fn key(at: &RunLocation, started: i64, stage: OwnStage) -> Key {
        let (kind, entity) = (RUN_ENTITY_TYPE.into(), Name::from(at.run.as_str()));
        rows::IndexedCopy::key(&at.experiment, &stage, &kind, &Descending(started), &entity)
    }

    /// Returns the keys that the copy of a run may have, given the run's document. A run has at
    /// most one copy, which gets another key when the run is deleted or restored. If the run was
    /// never deleted, its copy has only one possible key.
    #[must_use]
    pub fn keys(at: &RunLocation, run: &Item) -> Vec<Key> {
        let started = run.get(START_TIME).unwrap_or_default();
        let stages: &[OwnStage] = if run.has(STAGE) { &OwnStage::ALL } else { &[OwnStage::Active] };
        stages.iter().map(|stage| Self::key(at, started, *stage)).collect()
    }

    /// Returns the copy's run, the run's start time in ms, and its stage. Returns `None` if the key
    /// does not belong to the copy of a run.
    #[must_use]
    pub fn place(&self) -> Option<(RunLocation, i64, OwnStage)> {
        let row = rows::IndexedCopy::parse(&self.0.key()?).filter(|row| row.entity_type.0 == RUN_ENTITY_TYPE)?;
        let at = RunLocation { experiment: row.experiment, run: RunId::parse(&row.entity.0)? };
        Some((at, row.started.0, row.stage))
    }

    /// Checks whether an item that was read from a list is a copy rather than an entry.
    #[must_use]
    pub fn is_one(item: &Item) -> bool {
        item.has(INDEXED)
    }

    /// Creates the copy of a run. If the values make it too large, the copy lists the run's index
    /// entries instead.
    ///
    /// # Errors
    /// Returns an internal error if a part of the run cannot be read.
    pub fn new(at: &RunLocation, items: &RunItems, entries_of_index: &BTreeSet<Key>) -> Result<Self> {
        let with_values = Self::with_values(at, items)?;
        if with_values.0.size() <= MAX_BYTES {
            return Ok(with_values);
        }
        let listed = entries_of_index.iter().map(|entry| text(entry.text())).collect();
        let left_out = |name: &str| {
            name == PARAMS.name() || name == TAGS.name() || name == LINK_ROWS.name() || metric_of(name).is_some()
        };
        let item = with_values.0.0.into_iter().filter(|(name, _)| !left_out(name)).collect();
        Ok(Self(Item(item).with(ENTRIES, Value::L(listed))))
    }

    fn with_values(at: &RunLocation, items: &RunItems) -> Result<Self> {
        let of_the_document = |name: &str| {
            let of_an_index = definition::DATA.key_attributes().any(|attribute| attribute == name);
            of_an_index || NOT_COPIED.contains(&name) || indexing_state::ATTRIBUTES.contains(&name)
        };
        let attributes = items.run.0.iter().filter(|(name, _)| !of_the_document(name));
        let mut item = Item(attributes.map(|(name, value)| (name.clone(), value.clone())).collect());
        let started = items.run.get(START_TIME).unwrap_or_default();
        item.0.extend(Item::new(Self::key(at, started, own_stage(&items.run))).0);
        for (attribute, rows) in [(PARAMS, &items.params), (TAGS, &items.tags)] {
            let values = entries(&items.run, attribute, rows)?.into_iter();
            let values: Map = values.map(|(key, value)| (entry_name(&key).into_owned(), text(value))).collect();
            item = item.with(attribute, map(values));
        }
        for (metric, point) in items.latest_metrics()? {
            item = item.with(metric_attribute(metric), pack_set(&[point]));
        }
        if !items.links.is_empty() {
            item = item.with(LINK_ROWS, run_links::kept(&items.links));
        }
        Ok(Self(item))
    }

    /// Returns the run's values in the form in which they are read from its items. Returns `None`
    /// if the copy holds no values or they are unreadable; the run itself has to be read in this
    /// case. Consumes the copy to avoid cloning its values, because a page has a hundred copies.
    #[must_use]
    pub fn into_values(self) -> Option<RunItems> {
        let mut run = self.0;
        if run.has(ENTRIES) || !run.has(PARAMS) || !run.has(TAGS) {
            return None;
        }
        let links = match run.take(LINK_ROWS) {
            None => Vec::new(),
            Some(rows) => {
                let rows = rows.as_l().ok()?.iter();
                rows.map(|row| Some(Item(row.as_m().ok()?.clone()))).collect::<Option<_>>()?
            }
        };
        Some(RunItems { run, links, ..RunItems::default() })
    }

    /// Returns the index entries that the copy lists in place of values.
    ///
    /// # Errors
    /// Returns an internal error if they cannot be read.
    pub fn listed_entries(&self) -> Result<Option<Vec<Key>>> {
        self.list(ENTRIES)
    }

    /// Returns the stale index entries: those that still had to be deleted when the copy was
    /// created.
    ///
    /// # Errors
    /// Returns an internal error if they cannot be read.
    pub fn stale_entries(&self) -> Result<Vec<Key>> {
        Ok(self.list(STALE)?.unwrap_or_default())
    }

    /// Returns the setting of indexed fields that the copy was created with, as JSON. `None` for
    /// the default.
    #[must_use]
    pub fn fields(&self) -> Option<&str> {
        self.0.get(FIELDS)
    }

    /// Returns the name of the indexing that created the copy.
    #[must_use]
    pub fn indexing(&self) -> Option<&str> {
        self.0.get(INDEXED)
    }

    /// Adds the data that the next indexing of the run needs: the name of this indexing, the stale
    /// entries, and the setting of indexed fields.
    #[must_use]
    pub fn of_indexing(self, indexing: &str, stale: &[Key], fields: Option<&str>) -> Self {
        let mut item = self.0.with(INDEXED, text(indexing));
        if !stale.is_empty() {
            item = item.with(STALE, Value::L(stale.iter().map(|entry| text(entry.text())).collect()));
        }
        if let Some(fields) = fields {
            item = item.with(FIELDS, text(fields));
        }
        Self(item)
    }

    fn list(&self, attribute: Attribute<List>) -> Result<Option<Vec<Key>>> {
        let Some(list) = self.0.value(attribute) else { return Ok(None) };
        let read = |list: &Value| {
            let entries = list.as_l().ok()?.iter();
            entries.map(|entry| Key::from_text(entry.as_s().ok()?)).collect::<Option<Vec<_>>>()
        };
        read(list).map(Some).ok_or_else(|| unreadable(&self.0, attribute.name()))
    }
}
