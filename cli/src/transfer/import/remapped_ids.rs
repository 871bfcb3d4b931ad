//! Ids and names that entities get because theirs are taken (`--remap`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::fingerprint::hex_digits;

/// Tag that records the id or the name that an entity had in the source.
pub(crate) const ORIGINAL_ID_TAG: &str = "mlflow-serverless.import.originalId";

/// A kind of entity whose ids are referred to by other entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IdKind {
    /// Experiments, by id.
    Experiment,
    /// Runs, by id.
    Run,
    /// Logged models, by id.
    LoggedModel,
    /// Traces, by id.
    Trace,
    /// Registered models and prompts, by workspace and name, separated by a slash.
    RegisteredModel,
    /// Evaluation datasets, by id.
    EvaluationDataset,
    /// Issues, by id.
    Issue,
    /// MCP servers, by workspace and name, separated by a slash.
    McpServer,
    /// Skills, by workspace and name, separated by a slash.
    Skill,
}

/// Ids and names that differ from those in the source.
#[derive(Debug, Default)]
pub(crate) struct RemappedIds(Mutex<HashMap<(IdKind, String), String>>);

impl RemappedIds {
    /// Records that an entity has a different id in the table.
    pub(crate) fn insert(&self, kind: IdKind, source_id: &str, id: &str) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert((kind, source_id.to_owned()), id.to_owned());
    }

    /// Returns the id that an entity of the source has in the table.
    pub(crate) fn resolve(&self, kind: IdKind, source_id: &str) -> String {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(&(kind, source_id.to_owned())).cloned().unwrap_or_else(|| source_id.to_owned())
    }
}

/// Returns 32 hexadecimal digits for the new id of an entity whose own id is taken. They depend
/// only on the old id, so that a repeated import finds the entity again.
pub(crate) fn replacement_digits(kind: IdKind, source_id: &str) -> String {
    replacement_digits_of(&[&format!("{kind:?}"), source_id])
}

/// Returns 32 hexadecimal digits that depend only on these texts.
pub(crate) fn replacement_digits_of(texts: &[&str]) -> String {
    hex_digits(&Sha256::digest(texts.join("/")))
}
