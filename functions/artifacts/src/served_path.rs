//! Paths of requests to the proxy.

use access::{Needs, Resource, Scope, Target};
use artifact_access::{VersionDirectory, experiment_of, in_workspace, is_run, read_version};
use artifact_store::{ArtifactPath, Location};
use mlflow_api::registry::VersionNumber;
use mlflow_api::{Error, Result, Workspace};
use service::Store as _;

use crate::store::Store;

/// The directory of those of workspaces.
const WORKSPACES: &str = "workspaces";

/// The place that a request reads: the path itself, or the same path in the artifacts of a model
/// version. One request for a version, and up to three more ([`read_version`]).
///
/// # Errors
/// Those of [`within`]; `RESOURCE_DOES_NOT_EXIST` for a version that is not there.
pub(crate) async fn read_from(scope: &Scope, store: &Store, path: &ArtifactPath) -> Result<Location> {
    let Some((directory, below)) = VersionDirectory::split(path) else {
        return Ok(store.artifacts().root()?.below(&within(scope, store, path).await?));
    };
    let name = scope.registered_model(&directory.name)?;
    let found = read_version(store.table(), scope.along(), name.as_str(), directory.version).await?;
    let found = found.ok_or_else(|| VersionNumber::from(directory.version).not_found(name.as_str()))?;
    Ok(found.artifacts(store.table(), store.artifacts()).await?.below(&below))
}

/// These needs, and the right to show the files of a directory: that of an experiment has those of
/// its runs.
pub(crate) fn with_runs(needs: Needs, path: &ArtifactPath) -> Needs {
    needs.showing_in(Resource::Run, directory_of_runs(path))
}

/// Whether the list of a directory may show a name.
pub(crate) fn shows(scope: &Scope, path: &ArtifactPath, name: &str) -> bool {
    !is_run(name) || directory_of_runs(path).is_none_or(|runs| scope.shows_in(Resource::Run, &runs))
}

/// The experiment whose directory this is, if it is one's.
fn directory_of_runs(path: &ArtifactPath) -> Option<Target> {
    experiment_of(path).filter(|_| in_workspace(path).len() == 1).map(Target::Experiment)
}

/// The path of a request, below the directory of its workspace, whether the client names that
/// directory or not (`_get_workspace_scoped_repo_path_if_enabled`). Paths of the default workspace
/// are the same as without workspaces. One request for a path in another workspace's directory, and
/// for one that does not name both the directory and an experiment.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` for a path in the directory of another workspace, unless the
/// experiment came from there when that was deleted;
/// `RESOURCE_DOES_NOT_EXIST` for one in that of an experiment of another workspace.
pub(crate) async fn within(scope: &Scope, store: &Store, path: &ArtifactPath) -> Result<ArtifactPath> {
    let experiment = experiment_of(path).map(|experiment| scope.experiment(experiment));
    let workspace = scope.workspace();
    if !scope.identity().has_workspaces {
        return experiment.transpose().map(|_| path.clone());
    }
    let refused = |named: &str| {
        Err(Error::invalid(format!(
            "Artifact path targets workspace '{named}' but the workspace specified in the request is '{workspace}'."
        )))
    };
    match path.parts() {
        [first] if first == WORKSPACES => {
            experiment.transpose()?;
            Err(Error::invalid("Artifact paths prefixed with 'workspaces/' must include a workspace name."))
        }
        // The experiment shows whose directory it is. No other one is in it.
        [first, named, ..] if first == WORKSPACES && is_named(workspace, named) && experiment.is_some() => {
            experiment.transpose().map(|_| path.clone())
        }
        [first, named, rest @ ..] if first == WORKSPACES && is_named(workspace, named) => {
            let directory = store.directory(scope).await?;
            if named != workspace.as_str() && *named != directory {
                return refused(named);
            }
            let parts: Vec<_> = [WORKSPACES, &directory].into_iter().chain(rest.iter().map(String::as_str)).collect();
            Ok(ArtifactPath::default().below(&parts))
        }
        [first, named, ..] if first == WORKSPACES => {
            if let Some(Ok(experiment)) = &experiment
                && store.keeps_artifacts_below(experiment, &format!("{WORKSPACES}/{named}")).await?
            {
                return Ok(path.clone());
            }
            refused(named)
        }
        _ => {
            experiment.transpose()?;
            if *workspace == Workspace::default() {
                return Ok(path.clone());
            }
            Ok(path.below(&[WORKSPACES, &store.directory(scope).await?]))
        }
    }
}

/// Whether a directory is named as one of this workspace: by its name, or by its name and an id.
fn is_named(workspace: &Workspace, directory: &str) -> bool {
    let rest = directory.strip_prefix(workspace.as_str());
    rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && *workspace != Workspace::default()))
}
