//! Entries of experiments in the workspace's lists. A search can check the fields in an entry
//! without reading the experiment itself.

use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Stage, rows};
use mlflow_api::ExperimentId;
use search::{
    ExperimentFields, ExperimentFilter, ExperimentNumber, ExperimentOrder, ExperimentPredicate, ExperimentSortBy,
};
use table::Item;

/// An experiment's entry in a list of its workspace.
#[derive(Clone)]
pub(super) struct ExperimentEntry {
    pub(super) id: ExperimentId,
    /// The lifecycle stage, according to the list.
    pub(super) stage: Stage,
    /// The name, or `None` if it is too long for the entry's key, which truncates it.
    pub(super) name: Option<String>,
    /// The time that the list is ordered by, in ms.
    pub(super) time: i64,
    /// The attribute of the experiment that `time` is taken from.
    attribute: ExperimentNumber,
}

impl ExperimentEntry {
    /// Reads an entry of the list by creation, or the row of a name.
    pub(super) fn by_creation(row: &Item) -> Option<Self> {
        let ExperimentsByStage { stage, created: Descending(time), experiment } = row.entry()?;
        Some(Self::of(row, experiment, stage, time, ExperimentNumber::CreationTime))
    }

    /// Reads an entry of the list by last change.
    pub(super) fn by_change(row: &Item) -> Option<Self> {
        let ExperimentsByChange { stage, changed: Descending(time), experiment } = row.entry()?;
        Some(Self::of(row, experiment, stage, time, ExperimentNumber::LastUpdateTime))
    }

    fn of(row: &Item, id: ExperimentId, stage: Stage, time: i64, attribute: ExperimentNumber) -> Self {
        let name = row.key().and_then(|key| rows::ExperimentName::parse(&key)).map(|row| row.name.0);
        Self { id, stage, name, time, attribute }
    }

    /// Checks whether the experiment may pass a filter, judging only by the fields in its list
    /// entry.
    pub(super) fn may_pass(&self, filter: &ExperimentFilter) -> bool {
        filter.predicates.iter().all(|predicate| match predicate {
            ExperimentPredicate::Name(_) => self.name.is_none() || predicate.matches(self),
            ExperimentPredicate::Id { .. } => predicate.matches(self),
            ExperimentPredicate::Number { attribute, .. } => *attribute != self.attribute || predicate.matches(self),
            ExperimentPredicate::Tag { .. } => true,
        })
    }
}

/// Checks whether filter and order use only fields that the list by creation contains: names,
/// creation times and ids.
pub(super) fn is_known_from_list(filter: &ExperimentFilter, order: &ExperimentOrder) -> bool {
    let of_filter = |predicate: &ExperimentPredicate| match predicate {
        ExperimentPredicate::Number { attribute, .. } => *attribute == ExperimentNumber::CreationTime,
        ExperimentPredicate::Tag { .. } => false,
        ExperimentPredicate::Name(_) | ExperimentPredicate::Id { .. } => true,
    };
    let by_change = ExperimentSortBy::Number(ExperimentNumber::LastUpdateTime);
    filter.predicates.iter().all(of_filter) && order.terms.iter().all(|term| term.by != by_change)
}

impl ExperimentFields for ExperimentEntry {
    fn id(&self) -> ExperimentId {
        self.id
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn number(&self, attribute: ExperimentNumber) -> i64 {
        if attribute == self.attribute { self.time } else { 0 }
    }

    fn tag(&self, _: &str) -> Option<&str> {
        None
    }
}
