//! The indexer's copy of a run: one item with everything that a search answers.
//!
//! A run is spread over a document, its rows and its metrics, because it is written in parts. Once
//! the indexer has read it, a copy holds all its values, and a page of a hundred runs is a hundred
//! items. A copy is right as long as its run carries no mark.

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
use crate::links;
use crate::maps::{entries, entry_name};
use crate::metrics::pack_set;
use crate::run_items::RunItems;
use crate::run_location::RunLocation;
use crate::unreadable::unreadable;

/// The entity type of runs in the index.
pub const RUN: &str = "run";

/// A copy of more bytes than this leaves the values out: it would be dearer to keep than to do without.
const MOST_BYTES: usize = 24 << 10;

/// Attributes of a run's document that its copy has otherwise, or not at all.
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

/// Whether a run's document says that it was deleted on its own.
#[must_use]
pub fn own_stage(run: &Item) -> OwnStage {
    match run.get(STAGE).unwrap_or_default() {
        LifecycleStage::Active => OwnStage::Active,
        LifecycleStage::Deleted => OwnStage::Deleted,
    }
}

impl RunCopy {
    /// The key of the copy of a run that began then, in ms, among those of its own stage.
    #[must_use]
    pub fn key(at: &RunLocation, started: i64, stage: OwnStage) -> Key {
        let (kind, entity) = (RUN.into(), Name::from(at.run.as_str()));
        rows::IndexedCopy::key(&at.experiment, &stage, &kind, &Descending(started), &entity)
    }

    /// Where the copy of a run may be, by its document: a run has one copy at most, and moves it when it is deleted or restored. One that
    /// was never deleted has not moved it.
    #[must_use]
    pub fn keys(at: &RunLocation, run: &Item) -> Vec<Key> {
        let started = run.get(START_TIME).unwrap_or_default();
        let stages: &[OwnStage] = if run.has(STAGE) { &OwnStage::ALL } else { &[OwnStage::Active] };
        stages.iter().map(|stage| Self::key(at, started, *stage)).collect()
    }

    /// Whose copy it is, when that run began, in ms, and its own stage; `None` if its key is not that of a copy of a run.
    #[must_use]
    pub fn place(&self) -> Option<(RunLocation, i64, OwnStage)> {
        let row = rows::IndexedCopy::parse(&self.0.key()?).filter(|row| row.entity_type.0 == RUN)?;
        let at = RunLocation { experiment: row.experiment, run: RunId::parse(&row.entity.0)? };
        Some((at, row.started.0, row.stage))
    }

    /// Whether an item that was read from a list is a copy, and no entry.
    #[must_use]
    pub fn is_one(item: &Item) -> bool {
        item.has(INDEXED)
    }

    /// A copy of a run with its values; without them, and with its entries in the index instead, if that is too much.
    ///
    /// # Errors
    /// An internal one if something of the run cannot be read.
    pub fn new(at: &RunLocation, items: &RunItems, entries_of_index: &BTreeSet<Key>) -> Result<Self> {
        let with_values = Self::with_values(at, items)?;
        if with_values.0.size() <= MOST_BYTES {
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
            item = item.with(LINK_ROWS, links::kept(&items.links));
        }
        Ok(Self(item))
    }

    /// The run's values as if read from its items; `None` if the copy holds none, or they cannot be read: then the run has to be
    /// read itself. Takes the copy: a page is a hundred of them.
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

    /// The entries it lists, in place of values.
    ///
    /// # Errors
    /// An internal one if they cannot be read.
    pub fn listed_entries(&self) -> Result<Option<Vec<Key>>> {
        self.list(ENTRIES)
    }

    /// Entries that were to be deleted when the copy was made.
    ///
    /// # Errors
    /// An internal one if they cannot be read.
    pub fn stale_entries(&self) -> Result<Vec<Key>> {
        Ok(self.list(STALE)?.unwrap_or_default())
    }

    /// The setting of indexed fields at that time, as JSON, if it was not the default.
    #[must_use]
    pub fn fields(&self) -> Option<&str> {
        self.0.get(FIELDS)
    }

    /// Which indexing made it.
    #[must_use]
    pub fn indexing(&self) -> Option<&str> {
        self.0.get(INDEXED)
    }

    /// The copy with the facts that its next indexing needs.
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
