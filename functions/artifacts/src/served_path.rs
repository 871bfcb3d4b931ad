//! Paths of the proxy, and what a caller needs to act on them.

use access::{Action, Needs, Resource, Scope, Target};
use artifact_store::ArtifactPath;
use mlflow_api::{ExperimentId, Result};

/// What is needed to act on a path below `mlflow-artifacts:/`. Its first part names the experiment whose artifacts are there, what follows whether
/// they are those of runs, of logged models or of traces; what is in no experiment's directory needs the right to all experiments
/// (`docs/adr/0021-artifacts.md`).
pub(crate) fn needs(action: Action, path: &ArtifactPath) -> Needs {
    let Some(experiment) = experiment_of(path) else {
        return Needs::of(action, [Target::Any(Resource::Experiment)]);
    };
    let kinds = kinds(path.parts().get(1..).unwrap_or_default(), action == Action::Delete);
    let in_experiment = |needs: Needs, kind: &Resource| needs.and_in(action, *kind, [Target::Experiment(experiment)]);
    kinds.iter().fold(Needs::nothing(), in_experiment)
}

/// Of what a path in an experiment's directory has artifacts. Whoever deletes it deletes all that is below it.
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

/// These needs, and to show what is in a directory: that of an experiment has those of its runs.
pub(crate) fn with_runs(needs: Needs, path: &ArtifactPath) -> Needs {
    needs.showing_in(Resource::Run, directory_of_runs(path))
}

/// Whether the list of a directory may show a name.
pub(crate) fn shows(scope: &Scope, path: &ArtifactPath, name: &str) -> bool {
    !is_run(name) || directory_of_runs(path).is_none_or(|runs| scope.shows_in(Resource::Run, &runs))
}

/// The experiment whose directory this is, if it is one's.
fn directory_of_runs(path: &ArtifactPath) -> Option<Target> {
    experiment_of(path).filter(|_| path.parts().len() == 1).map(Target::Experiment)
}

/// Refuses a path that is in the directory of an experiment of another workspace.
pub(crate) fn check(scope: &Scope, path: &ArtifactPath) -> Result<()> {
    experiment_of(path).map_or(Ok(()), |experiment| scope.experiment(experiment).map(drop))
}

/// The experiment whose directory a path is in. Directories are named as the server writes its ids: `007` is not that of experiment 7.
fn experiment_of(path: &ArtifactPath) -> Option<ExperimentId> {
    let first = path.first()?;
    ExperimentId::parse(first).ok().filter(|experiment| experiment.to_string() == first)
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
            ("7/run/artifacts/x", Resource::Run),
            (&run, Resource::Run),
            ("7/models", Resource::LoggedModel),
            ("7/models/m-1/artifacts/x", Resource::LoggedModel),
            ("7/traces/tr-1/artifacts/x", Resource::Trace),
        ] {
            assert_eq!(of(path), seven(kind), "{path}");
        }
        for path in ["", "007/x", "+7/x", " 7/x", "models/x", "workspaces/a/7/x", "7 /x", "-7/x"] {
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
