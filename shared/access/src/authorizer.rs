//! Who is calling, and what they may do.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use mlflow_api::{EvaluationDatasetId, ExperimentId, RegisteredModelName, Result, Workspace};

use crate::needs::{Action, Resource};

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Somebody whom the gateway or the loopback address has admitted, and of whom nothing else is known.
    Somebody,
    /// A user.
    User(String),
}

/// What permissions are kept for: what guards the entities that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guarded {
    /// The workspace, where something of a kind is created or listed.
    Workspace(Resource),
    /// An experiment: guards its runs, logged models, traces and scorers.
    Experiment(ExperimentId),
    /// A registered model or a prompt: guards its versions.
    RegisteredModel(RegisteredModelName),
    /// An evaluation dataset.
    EvaluationDataset(EvaluationDatasetId),
}

/// What a list may show.
#[derive(Clone, Debug, Default)]
pub enum Visible {
    /// Everything in the workspace.
    #[default]
    Everything,
    /// What these guard, and nothing else.
    Only(Arc<HashSet<Guarded>>),
}

impl Visible {
    /// Whether a list may show what this guards. A search asks before it counts an item for its page, so that pages are full and a token
    /// tells nothing.
    #[must_use]
    pub fn shows(&self, guarded: &Guarded) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(some) => some.contains(guarded),
        }
    }
}

/// Decides who is calling and what they may do. One a process.
pub trait Authorizer: Send + Sync {
    /// Who sent these headers.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, where nobody known did.
    fn authenticate<'a>(&'a self, headers: &'a http::HeaderMap) -> BoxFuture<'a, Result<Caller>>;

    /// For each of these, whether the caller may do it.
    fn authorize<'a>(
        &'a self,
        caller: &'a Caller,
        workspace: &'a Workspace,
        wanted: &'a [(Action, Guarded)],
    ) -> BoxFuture<'a, Result<Vec<bool>>>;

    /// What lists may show to the caller.
    fn visible<'a>(&'a self, caller: &'a Caller, workspace: &'a Workspace) -> BoxFuture<'a, Result<Visible>>;
}

/// Lets everybody do everything: whoever got here was admitted by the gateway, or is on the same machine.
#[derive(Clone, Copy, Debug)]
pub struct AdmitEverybody;

impl Authorizer for AdmitEverybody {
    fn authenticate<'a>(&'a self, _: &'a http::HeaderMap) -> BoxFuture<'a, Result<Caller>> {
        Box::pin(async { Ok(Caller::Somebody) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Caller,
        _: &'a Workspace,
        wanted: &'a [(Action, Guarded)],
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async { Ok(vec![true; wanted.len()]) })
    }

    fn visible<'a>(&'a self, _: &'a Caller, _: &'a Workspace) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async { Ok(Visible::Everything) })
    }
}
