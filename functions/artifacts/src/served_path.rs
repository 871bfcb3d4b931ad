//! Paths of the proxy, and the needs of a caller who acts on them.

use access::{Action, Needs, Resource, Scope, Target};
use artifact_store::ArtifactPath;
use mlflow_api::{Error, ExperimentId, Result, Workspace};

use crate::store::Store;

/// The directory of those of workspaces.
const WORKSPACES: &str = "workspaces";

/// The needs of an action on a path below `mlflow-artifacts:/`. Its first part names the
/// experiment. The rest shows whether the artifacts are those of runs, of logged models or of
/// traces. A path in no experiment's directory needs the right to all experiments
/// (`docs/adr/0021-artifacts.md`).
pub(crate) fn needs(action: Action, path: &ArtifactPath) -> Needs {
    let Some(experiment) = experiment_of(path) else {
        return Needs::of(action, [Target::Any(Resource::Experiment)]);
    };
    let kinds = kinds(in_workspace(path).get(1..).unwrap_or_default(), action == Action::Delete);
    let in_experiment = |needs: Needs, kind: &Resource| needs.and_in(action, *kind, [Target::Experiment(experiment)]);
    kinds.iter().fold(Needs::nothing(), in_experiment)
}

/// The kinds of entities whose artifacts are at a path in an experiment's directory. Deleting the
/// path deletes everything below it.
fn kinds(path: &[String], is_deleted: bool) -> &'static [Resource] {
    let is_of_run = |path: &[String]| path.get(1).is_some_and(|second| second == "artifacts");
    match path {
        [] if is_deleted => &[Resource::Run, Resource::Trace, Resource::LoggedModel],
        [first, ..] if first == "models" => &[Resource::LoggedModel],
        [first, ..] if first == "traces" => &[Resource::Trace],
        [first, ..] if is_deleted || is_of_run(path) || is_run(first) => &[Resource::Run],
        _ => &[Resource::Experiment],
    }
}

/// Whether the name of a directory is the id of a run, as MLflow makes them.
fn is_run(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
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

/// The experiment whose directory a path is in. Directories are named as the server writes its ids: `007` is not that of experiment 7.
fn experiment_of(path: &ArtifactPath) -> Option<ExperimentId> {
    let first = in_workspace(path).first()?;
    ExperimentId::parse(first).ok().filter(|experiment| experiment.to_string() == *first)
}

/// The parts of a path in the directory of its workspace.
fn in_workspace(path: &ArtifactPath) -> &[String] {
    match path.parts() {
        [first, _, rest @ ..] if first == WORKSPACES => rest,
        all => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_experiments_or_everybodys() {
        let whole = Needs::of(Action::Read, [Target::Any(Resource::Experiment)]);
        let of = |path: &str| needs(Action::Read, &ArtifactPath::parse(path).unwrap());
        let seven = |kind| Needs::of_in(Action::Read, kind, Target::Experiment(ExperimentId::parse("7").unwrap()));
        for path in ["7", "7/x", "./7//x", "%37/x", "7/x/y/artifacts"] {
            assert_eq!(of(path), seven(Resource::Experiment), "{path}");
        }
        let run = format!("7/{}", "0123456789abcdef".repeat(2));
        for (path, kind) in [
            ("7/run/artifacts", Resource::Run),
            ("workspaces/team-a/7/run/artifacts", Resource::Run),
            ("workspaces/team-a/7", Resource::Experiment),
            ("7/run/artifacts/x", Resource::Run),
            (&run, Resource::Run),
            ("7/models", Resource::LoggedModel),
            ("7/models/m-1/artifacts/x", Resource::LoggedModel),
            ("7/traces/tr-1/artifacts/x", Resource::Trace),
        ] {
            assert_eq!(of(path), seven(kind), "{path}");
        }
        for path in ["", "007/x", "+7/x", " 7/x", "models/x", "workspaces/a", "7 /x", "-7/x"] {
            assert_eq!(of(path), whole, "{path}");
        }
    }

    #[test]
    fn who_deletes_a_directory_deletes_what_is_below_it() {
        let of = |path| {
            let needs = needs(Action::Delete, &ArtifactPath::parse(path).unwrap());
            needs.iter().map(|need| need.kind).collect::<Vec<_>>()
        };
        assert_eq!(of("7"), [Resource::Run, Resource::Trace, Resource::LoggedModel]);
        assert_eq!((of("7/x"), of("7/traces")), (vec![Resource::Run], vec![Resource::Trace]));
    }
}
