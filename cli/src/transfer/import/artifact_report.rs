//! The findings of `--check-artifacts`.

use std::collections::BTreeMap;

use super::examples::Examples;

/// Maximum number of servers and buckets that are listed.
const MAX_PLACES: usize = 20;

/// What was found at the artifact location of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArtifactFinding {
    /// This server serves the location. Whether it has files was not checked.
    Served,
    /// There are files, including all that the entity is known to have.
    Present,
    /// There are no files. The entity may never have had any.
    Empty,
    /// Files that the entity is known to have are missing.
    Missing,
    /// This server does not serve the location. The field is the server or bucket that it belongs
    /// to.
    Elsewhere(String),
    /// The location cannot be read, for the reason in the field.
    Unreadable(String),
}

/// Counts of findings about one kind of entity.
#[derive(Debug, Default)]
pub(super) struct ArtifactCounts {
    served: u64,
    present: u64,
    empty: u64,
    missing: Examples,
    elsewhere: BTreeMap<String, Examples>,
    unreadable: BTreeMap<String, Examples>,
}

impl ArtifactCounts {
    /// Counts a finding.
    pub(super) fn add(&mut self, id: &str, finding: ArtifactFinding) {
        let within = |places: &mut BTreeMap<String, Examples>, place: String| {
            let is_listed = places.len() < MAX_PLACES || places.contains_key(&place);
            let place = if is_listed { place } else { "other places".to_owned() };
            places.entry(place).or_default().add(id);
        };
        match finding {
            ArtifactFinding::Served => self.served += 1,
            ArtifactFinding::Present => self.present += 1,
            ArtifactFinding::Empty => self.empty += 1,
            ArtifactFinding::Missing => self.missing.add(id),
            ArtifactFinding::Elsewhere(place) => within(&mut self.elsewhere, place),
            ArtifactFinding::Unreadable(reason) => within(&mut self.unreadable, reason),
        }
    }

    /// Returns the number of entities whose files are missing, or could not be looked up.
    pub(super) fn failures(&self) -> u64 {
        self.missing.count() + self.unreadable.values().map(Examples::count).sum::<u64>()
    }

    /// Returns the counts as lines of text.
    pub(super) fn lines(&self, kind: &str) -> Vec<String> {
        let Self { served, present, empty, .. } = self;
        let mut lines = Vec::new();
        if *served > 0 {
            lines.push(format!("artifacts of {kind}: {served} served by this server"));
        }
        if present + empty > 0 {
            lines.push(format!("artifacts of {kind}: {present} have files, {empty} have none"));
        }
        if self.missing.count() > 0 {
            lines.push(format!("artifacts of {kind}: {} missing: {}", self.missing.count(), self.missing.list()));
        }
        for (reason, examples) in &self.unreadable {
            lines.push(format!(
                "artifacts of {kind}: {} could not be read ({reason}): {}",
                examples.count(),
                examples.list()
            ));
        }
        for (place, examples) in &self.elsewhere {
            lines.push(format!(
                "artifacts of {kind}: {} not served by this server, in {place}: {}",
                examples.count(),
                examples.list()
            ));
        }
        lines
    }
}
