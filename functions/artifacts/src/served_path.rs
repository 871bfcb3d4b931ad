//! Paths of the proxy, and what a caller needs to act on them.

use access::{Action, Needs, Resource, Scope, Target};
use artifact_store::ArtifactPath;
use mlflow_api::{ExperimentId, Result};

/// What is needed to act on a path below `mlflow-artifacts:/`. Its first part names the experiment whose artifacts are there; what is in
/// no experiment's directory needs the right to all experiments (`docs/adr/0021-artifacts.md`).
pub(crate) fn needs(action: Action, path: &ArtifactPath) -> Needs {
    let target = experiment_of(path).map_or(Target::Any(Resource::Experiment), Target::Experiment);
    Needs::of(action, [target])
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
        let of = |path| needs(Action::Read, &ArtifactPath::parse(path).unwrap());
        let seven = Needs::of(Action::Read, [Target::Experiment(ExperimentId::parse("7").unwrap())]);
        for path in ["7", "7/run/artifacts/x", "./7//x", "%37/x"] {
            assert_eq!(of(path), seven, "{path}");
        }
        for path in ["", "007/x", "+7/x", " 7/x", "models/x", "workspaces/a/7/x", "7 /x", "-7/x"] {
            assert_eq!(of(path), whole, "{path}");
        }
    }
}
