//! A scorer's row, and the names that identify a scorer.

use access::Granted;
use entities::attributes::{CONTENT_SIZE, CREATED, IMPORTED, NAME, SCORER, VERSION};
use entities::unreadable;
use key_schema::{Key, KeyRange, Name, Ordinal, WideDigest, rows};
use mlflow_api::{Error, ExperimentId, Result, ScorerId};
use table::{Condition, Item, text};

/// The scorer that a request refers to.
#[derive(Clone, Debug)]
pub struct ScorerName {
    /// The experiment.
    pub experiment: Granted<ExperimentId>,
    /// The experiment's id as the client sent it.
    pub text: String,
    /// Name of the scorer.
    pub name: String,
}

impl ScorerName {
    /// Returns MLflow's error about a scorer or version that does not exist.
    pub(super) fn not_found(&self, version: Option<i64>) -> Error {
        let version = version.map(|version| format!(" and version {version}")).unwrap_or_default();
        Error::not_found(format!("Scorer with name '{}'{version} not found for experiment {}.", self.name, self.text))
    }
}

/// A scorer as stored in its row.
pub(super) struct StoredScorer {
    pub(super) experiment: ExperimentId,
    pub(super) id: ScorerId,
    pub(super) item: Item,
}

impl StoredScorer {
    /// Reads a scorer from its row.
    ///
    /// # Errors
    /// Returns an internal error if the row is invalid.
    pub(super) fn of(experiment: ExperimentId, item: Item) -> Result<Self> {
        let id = item.get(SCORER);
        // A row with a version number must have all fields of a version. Otherwise, a version
        // without content would be mistaken for a scorer without versions.
        let is_whole = !item.has(VERSION) || (item.has(CREATED) && item.has(CONTENT_SIZE));
        let id = id.filter(|_| is_whole).ok_or_else(|| unreadable(&item, "a scorer"))?;
        Ok(Self { experiment, id, item })
    }

    /// Reads a scorer from the row under the key of this name. Returns `None` if there is no row,
    /// or if the row contains another name. The latter is possible because the key of a long name
    /// contains a hash, which may collide.
    ///
    /// # Errors
    /// Returns an internal error if the row is invalid.
    pub(super) fn named(scorer: &ScorerName, item: Option<Item>) -> Result<Option<Self>> {
        let item = item.filter(|item| item.get(NAME) == Some(&scorer.name));
        item.map(|item| Self::of(*scorer.experiment, item)).transpose()
    }

    /// Returns the key range of the scorer's versions.
    pub(super) fn versions(&self) -> KeyRange {
        rows::ScorerVersion::all(&self.experiment).scorer(&self.id).range()
    }

    /// Returns the number of the latest version, or `None` if all versions were deleted
    /// individually.
    pub(super) fn latest(&self) -> Option<u32> {
        self.item.get(VERSION)
    }

    /// Copies the hash that an import has stored in the scorer's row to the row that replaces it.
    pub(super) fn keep_import(&self, row: Item) -> Item {
        self.item.get(IMPORTED).into_iter().fold(row, |row, hash| row.with(IMPORTED, text(hash)))
    }

    /// Returns the condition that the latest version has not changed since it was read.
    pub(super) fn unchanged(&self) -> Condition {
        Condition::Equals(SCORER.into(), text(self.id.as_str())).and(same_version(&self.item))
    }
}

/// Returns the condition that a row still contains the version that was read. The creation time is
/// compared in addition to the number, because version numbers are reused.
pub(super) fn same_version(row: &Item) -> Condition {
    Condition::unchanged(row, VERSION).and(Condition::unchanged(row, CREATED))
}

/// Returns a function that computes the keys of the parts of a large version.
pub fn part_key(experiment: ExperimentId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    move |content, part| rows::ScorerPart::key(&experiment, content, part)
}

/// Returns the key of the scorer's row.
#[must_use]
pub fn header_key(experiment: ExperimentId, name: &str) -> Key {
    rows::Scorer::key(&experiment, &Name::from(name))
}

/// Creates a scorer's row, without the fields of a version.
pub(super) fn header(experiment: ExperimentId, name: &str, id: &ScorerId) -> Item {
    Item::new(header_key(experiment, name)).with(NAME, text(name)).with(SCORER, text(id.as_str()))
}

/// Copies the fields of a version from another item to this row.
pub(super) fn with_version(item: Item, version: &Item) -> Item {
    let copied = version
        .0
        .iter()
        .filter(|(name, _)| name.starts_with("content") || [VERSION.name(), CREATED.name()].contains(&name.as_str()));
    copied.fold(item, |item, (name, value)| item.with(name.clone(), value.clone()))
}
