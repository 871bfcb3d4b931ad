//! A scorer's row, and the names that identify a scorer.

use access::Granted;
use entities::attributes::{CONTENT_SIZE, CREATED, NAME, SCORER, VERSION};
use entities::unreadable;
use key_schema::{Key, KeyRange, Name, Ordinal, WideDigest, rows};
use mlflow_api::{Error, ExperimentId, Result, ScorerId};
use table::{Condition, Item, text};

/// A scorer, as a request names it.
#[derive(Clone, Debug)]
pub struct ScorerName {
    /// The experiment, as the client wrote it.
    pub experiment: Granted<ExperimentId>,
    /// The experiment as the client says.
    pub text: String,
    /// The name.
    pub name: String,
}

impl ScorerName {
    /// MLflow's error for a scorer, or a version, that is not there.
    pub(super) fn not_found(&self, version: Option<i64>) -> Error {
        let version = version.map(|version| format!(" and version {version}")).unwrap_or_default();
        Error::not_found(format!("Scorer with name '{}'{version} not found for experiment {}.", self.name, self.text))
    }
}

/// A scorer as its row has it.
pub(super) struct Found {
    pub(super) experiment: ExperimentId,
    pub(super) id: ScorerId,
    pub(super) item: Item,
}

impl Found {
    /// From its row.
    ///
    /// # Errors
    /// An internal one if it cannot be read.
    pub(super) fn of(experiment: ExperimentId, item: Item) -> Result<Self> {
        let id = item.get(SCORER);
        // A version without a content would look like none.
        let is_whole = !item.has(VERSION) || (item.has(CREATED) && item.has(CONTENT_SIZE));
        let id = id.filter(|_| is_whole).ok_or_else(|| unreadable(&item, "a scorer"))?;
        Ok(Self { experiment, id, item })
    }

    /// From the row under the key of this name, if there is one and it is the scorer's: of a long name, the key has a hash.
    ///
    /// # Errors
    /// As [`Found::of`].
    pub(super) fn named(scorer: &ScorerName, item: Option<Item>) -> Result<Option<Self>> {
        let item = item.filter(|item| item.get(NAME) == Some(&scorer.name));
        item.map(|item| Self::of(*scorer.experiment, item)).transpose()
    }

    /// The range of its versions.
    pub(super) fn versions(&self) -> KeyRange {
        rows::ScorerVersion::all(&self.experiment).scorer(&self.id).range()
    }

    /// The latest version; none, where all were deleted one by one.
    pub(super) fn latest(&self) -> Option<u32> {
        self.item.get(VERSION)
    }

    /// The condition that its latest version is as it was read.
    pub(super) fn unchanged(&self) -> Condition {
        Condition::Equals(SCORER.into(), text(self.id.as_str())).and(same_version(&self.item))
    }
}

/// The condition that a row is of the version it was of when it was read. A number may be given again; the time tells which it is.
pub(super) fn same_version(row: &Item) -> Condition {
    Condition::unchanged(row, VERSION).and(Condition::unchanged(row, CREATED))
}

pub(super) fn part_key(experiment: ExperimentId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    move |content, part| rows::ScorerPart::key(&experiment, content, part)
}

pub(super) fn header_key(experiment: ExperimentId, name: &str) -> Key {
    rows::Scorer::key(&experiment, &Name::from(name))
}

/// A scorer's row without a version.
pub(super) fn header(experiment: ExperimentId, name: &str, id: &ScorerId) -> Item {
    Item::new(header_key(experiment, name)).with(NAME, text(name)).with(SCORER, text(id.as_str()))
}

/// The row with a copy of a version's fields from another item.
pub(super) fn with_version(item: Item, version: &Item) -> Item {
    let copied = version
        .0
        .iter()
        .filter(|(name, _)| name.starts_with("content") || [VERSION.name(), CREATED.name()].contains(&name.as_str()));
    copied.fold(item, |item, (name, value)| item.with(name.clone(), value.clone()))
}
