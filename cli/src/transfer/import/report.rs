//! The report of an import: how many entities of each kind were imported, and which were not.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use super::artifact_report::{ArtifactCounts, ArtifactFinding};
use super::examples::Examples;
use crate::Failure;

/// Counts of an import, by kind of entity, and its progress bar. Kinds are plural nouns, such as
/// `runs`.
#[derive(Debug)]
pub(crate) struct ImportReport {
    kinds: Mutex<BTreeMap<&'static str, KindCounts>>,
    /// Numbers of entities that this server does not support, by kind.
    unsupported: Mutex<BTreeMap<String, u64>>,
    /// Entities that the retention policies of the table would remove, by kind and by the clause
    /// that [`ImportReport::expiring`] gets.
    expiring: Mutex<BTreeMap<(&'static str, &'static str), Examples>>,
    /// What was found about artifacts, by kind of entity.
    artifacts: Mutex<BTreeMap<&'static str, ArtifactCounts>>,
    bar: ProgressBar,
}

#[derive(Debug, Default)]
struct KindCounts {
    imported: u64,
    unchanged: u64,
    updated: u64,
    /// Entities that exist in the table, but were not imported.
    existing: Examples,
    /// Entities that were changed in the table after they were imported.
    changed_here: Examples,
    /// Entities whose content in the table differs from the source.
    different: Examples,
    /// Entities that were not imported, by reason.
    omitted: BTreeMap<String, Examples>,
}

impl ImportReport {
    /// Creates a report that shows its progress towards this number of entities.
    pub(super) fn new(total: u64) -> Result<Self, Failure> {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} imported, {eta} left")?;
        Ok(Self {
            kinds: Mutex::default(),
            unsupported: Mutex::default(),
            expiring: Mutex::default(),
            artifacts: Mutex::default(),
            bar: ProgressBar::new(total).with_style(style),
        })
    }

    fn update(&self, kind: &'static str, count: u64, change: impl FnOnce(&mut KindCounts)) {
        change(self.kinds.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default());
        self.bar.inc(count);
    }

    /// Removes the progress bar from the terminal.
    pub(super) fn end_progress(&self) {
        self.bar.finish_and_clear();
    }

    /// Counts entities that were imported.
    pub(crate) fn imported(&self, kind: &'static str, count: u64) {
        self.update(kind, count, |counts| counts.imported += count);
    }

    /// Counts entities that had been imported before and are unchanged.
    pub(crate) fn unchanged(&self, kind: &'static str, count: u64) {
        self.update(kind, count, |counts| counts.unchanged += count);
    }

    /// Counts entities that had been imported before and were updated from the source.
    pub(crate) fn updated(&self, kind: &'static str, count: u64) {
        self.update(kind, count, |counts| counts.updated += count);
    }

    /// Records an entity that was left alone, because it was changed in the table after it was
    /// imported.
    pub(crate) fn changed_here(&self, kind: &'static str, id: &str) {
        self.update(kind, 1, |counts| counts.changed_here.add(id));
    }

    /// Records an entity that was left alone, because the table already has it.
    pub(crate) fn existing(&self, kind: &'static str, id: &str) {
        self.update(kind, 0, |counts| counts.existing.add(id));
    }

    /// Records a number of entities that this server does not support yet.
    pub(crate) fn unsupported(&self, kind: &str, count: u64) {
        let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        *unsupported.entry(kind.to_owned()).or_default() += count;
    }

    /// Records an entity that was not imported, and why: a clause that completes "not imported, ".
    pub(crate) fn omitted(&self, kind: &'static str, id: &str, reason: impl Into<String>) {
        self.update(kind, 1, |counts| counts.omitted.entry(reason.into()).or_default().add(id));
    }

    /// Records a difference between the table and the source. `what` is an entity's id, or
    /// describes what is missing.
    pub(crate) fn different(&self, kind: &'static str, what: &str) {
        self.update(kind, 0, |counts| counts.different.add(what));
    }

    /// Records entities that the retention policies of the table would remove. `what` is a clause
    /// that follows the number of entities in the report, such as "3 were deleted …".
    pub(super) fn expiring(&self, kind: &'static str, what: &'static str, examples: &Examples) {
        let mut expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
        expiring.entry((kind, what)).or_default().merge(examples);
    }

    /// Records what was found at the artifact location of an entity.
    pub(crate) fn artifacts(&self, kind: &'static str, id: &str, finding: ArtifactFinding) {
        let mut artifacts = self.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
        artifacts.entry(kind).or_default().add(id, finding);
    }

    /// Returns the report as lines of text, in the form for a dry run if nothing was written.
    pub(crate) fn lines(&self, is_dry_run: bool) -> Vec<String> {
        let (import, update) = if is_dry_run { ("to import", "to update") } else { ("imported", "updated") };
        let mut lines = Vec::new();
        for (kind, counts) in &*self.kinds.lock().unwrap_or_else(PoisonError::into_inner) {
            let KindCounts { imported, unchanged, updated, .. } = counts;
            lines.push(format!("{kind}: {imported} {import}, {updated} {update}, {unchanged} unchanged"));
            if counts.existing.count() > 0 {
                let count = counts.existing.count();
                lines.push(format!("{kind}: {count} left alone, exist here already: {}", counts.existing.list()));
            }
            if counts.changed_here.count() > 0 {
                let count = counts.changed_here.count();
                lines.push(format!(
                    "{kind}: {count} left alone, changed here since they were imported: {}",
                    counts.changed_here.list()
                ));
            }
            if counts.different.count() > 0 {
                lines.push(format!(
                    "{kind}: {} differ from the source: {}",
                    counts.different.count(),
                    counts.different.list()
                ));
            }
            for (reason, examples) in &counts.omitted {
                lines.push(format!("{kind}: {} not imported, {reason}: {}", examples.count(), examples.list()));
            }
        }
        for (kind, count) in &*self.unsupported.lock().unwrap_or_else(PoisonError::into_inner) {
            lines.push(format!("{kind}: {count} not imported, because this server does not support them yet"));
        }
        for ((kind, what), examples) in &*self.expiring.lock().unwrap_or_else(PoisonError::into_inner) {
            lines.push(format!("{kind}: {} {what}: {}", examples.count(), examples.list()));
        }
        for (kind, counts) in &*self.artifacts.lock().unwrap_or_else(PoisonError::into_inner) {
            lines.extend(counts.lines(kind));
        }
        lines
    }

    /// Fails if something was not imported, differs from the source, or lacks its artifacts.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let omitted: u64 = kinds.values().flat_map(|counts| counts.omitted.values()).map(Examples::count).sum();
        let unsupported: u64 = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
        let omitted = omitted + unsupported;
        let different: u64 = kinds.values().map(|counts| counts.different.count()).sum();
        let artifacts = self.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: u64 = artifacts.values().map(ArtifactCounts::failures).sum();
        if (omitted, different, missing) == (0, 0, 0) {
            return Ok(());
        }
        let files = if missing == 0 { String::new() } else { format!("; the artifacts of {missing} are missing") };
        Err(format!("{omitted} entities were not imported, and {different} differ from the source{files}").into())
    }
}
