//! Resolves the paths of requests to the proxy.

use access::{Needs, Resource, Scope, Target};
use artifact_access::{VersionDirectory, experiment_of, in_workspace, is_run, read_version, skill_of};
use artifact_store::{ArtifactPath, Location};
use mlflow_api::registry::VersionNumber;
use mlflow_api::{Error, Result, Workspace};
use service::DomainStore as _;

use crate::store::Store;

/// Name of the directory that contains the directories of workspaces.
const WORKSPACES_DIRECTORY: &str = "workspaces";

/// Resolves the path of a read request. The path of a model version is resolved to a path below the
/// version's artifacts, and any other path to itself. For a version, takes one request, and up to
/// three more ([`read_version`]).
///
/// # Errors
/// Returns the errors of [`path_in_workspace`], and `RESOURCE_DOES_NOT_EXIST` if the version does
/// not exist.
pub(crate) async fn resolve_read(scope: &Scope, store: &Store, path: &ArtifactPath) -> Result<Location> {
    let Some((directory, below)) = VersionDirectory::split(path) else {
        return Ok(store.artifacts().root()?.below(&path_in_workspace(scope, store, path).await?));
    };
    let name = scope.registered_model(&directory.name)?;
    let found = read_version(store.table(), scope.authorizer_writes(), name.as_str(), directory.version).await?;
    let found = found.ok_or_else(|| VersionNumber::from(directory.version).not_found(name.as_str()))?;
    Ok(found.artifacts(store.table(), store.artifacts()).await?.below(&below))
}

/// Adds the permission to see runs to a request's required permissions if the path is the directory
/// of an experiment. The listing of such a directory shows the directories of the experiment's
/// runs.
pub(crate) fn with_runs(needs: Needs, path: &ArtifactPath) -> Needs {
    needs.showing_in(Resource::Run, directory_of_runs(path))
}

/// Checks whether a listing of a directory may show an entry to the caller.
pub(crate) fn may_list(scope: &Scope, path: &ArtifactPath, name: &str) -> bool {
    !is_run(name) || directory_of_runs(path).is_none_or(|runs| scope.shows_in(Resource::Run, &runs))
}

/// Returns the experiment whose artifact directory this path is, or `None` if it is another path.
fn directory_of_runs(path: &ArtifactPath) -> Option<Target> {
    experiment_of(path).filter(|_| in_workspace(path).len() == 1).map(Target::Experiment)
}

/// Returns the path within the artifact root. It is below the directory of the request's workspace,
/// which clients may include in the path or omit (`_get_workspace_scoped_repo_path_if_enabled`). In
/// the default workspace, the path is the same as without workspaces. Takes one request if the path
/// is in another workspace's directory, or if it does not contain both the workspace's directory
/// and an experiment. If it is the path of a skill in another workspace's directory, takes those of
/// `keeps_skill_content` instead.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the path is in the directory of another workspace, unless
/// the experiment or the skill was moved from there when that workspace was deleted. Returns
/// `RESOURCE_DOES_NOT_EXIST` if the path belongs to an experiment of another workspace.
pub(crate) async fn path_in_workspace(scope: &Scope, store: &Store, path: &ArtifactPath) -> Result<ArtifactPath> {
    let path = located_path(scope, store, path).await?;
    // A version of the skill has to refer to the content. Content of a deleted skill may remain, and
    // another skill may have its name.
    if let Some(name) = skill_of(&path) {
        let skill = scope.known_skill(&name)?;
        let is_kept = match &skill {
            Some(skill) => store.keeps_skill_content(scope.workspace(), skill, &path).await?,
            None => false,
        };
        if !is_kept {
            return Err(Error::not_found(format!("Skill '{name}' has no uploaded content in this directory.")));
        }
    }
    Ok(path)
}

/// Returns the path below the artifact root of a path in a request.
async fn located_path(scope: &Scope, store: &Store, path: &ArtifactPath) -> Result<ArtifactPath> {
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
        [first] if first == WORKSPACES_DIRECTORY => {
            experiment.transpose()?;
            Err(Error::invalid("Artifact paths prefixed with 'workspaces/' must include a workspace name."))
        }
        // The directory is accepted without a request, because the path names an experiment of this
        // workspace, and the experiment's directory is in no other workspace's directory.
        [first, named, ..]
            if first == WORKSPACES_DIRECTORY && is_directory_of(workspace, named) && experiment.is_some() =>
        {
            experiment.transpose().map(|_| path.clone())
        }
        [first, named, rest @ ..] if first == WORKSPACES_DIRECTORY && is_directory_of(workspace, named) => {
            let directory = store.directory(scope).await?;
            if named != workspace.as_str() && *named != directory {
                return refused(named);
            }
            let parts: Vec<_> =
                [WORKSPACES_DIRECTORY, &directory].into_iter().chain(rest.iter().map(String::as_str)).collect();
            Ok(ArtifactPath::default().below(&parts))
        }
        [first, named, ..] if first == WORKSPACES_DIRECTORY => {
            if let Some(Ok(experiment)) = &experiment
                && store.keeps_artifacts_below(experiment, &format!("{WORKSPACES_DIRECTORY}/{named}")).await?
            {
                return Ok(path.clone());
            }
            // Like artifacts of experiments, the uploaded content of a skill stays in the directory
            // of a deleted workspace when the skill moves to this one.
            if let Some(skill) = skill_of(path)
                && let Some(skill) = scope.known_skill(&skill)?
                && store.keeps_skill_content(workspace, &skill, path).await?
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
            Ok(path.below(&[WORKSPACES_DIRECTORY, &store.directory(scope).await?]))
        }
    }
}

/// Checks whether a directory is named after this workspace: either by its name, or by its name and
/// an id.
fn is_directory_of(workspace: &Workspace, directory: &str) -> bool {
    let rest = directory.strip_prefix(workspace.as_str());
    rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && *workspace != Workspace::default()))
}
