//! The needs of actions on artifact paths.

use access::{Action, Needs, Resource, Target};
use artifact_store::ArtifactPath;
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, SkillName};

use crate::version_directory::{VERSIONS_DIRECTORY as VERSIONS, VersionDirectory};

/// Directory that contains the uploaded content of all skills of a workspace.
const SKILLS_DIRECTORY: &str = "skills";
/// Directory that contains the directories of workspaces.
const WORKSPACES_DIRECTORY: &str = "workspaces";

/// Returns the needs of an action on a path below `mlflow-artifacts:/`. The first part of the path
/// names the experiment. The remaining parts show whether the artifacts belong to runs, logged
/// models or traces. A path outside of all experiments' directories requires a right to all
/// experiments (`docs/adr/0021-artifacts.md`), unless the path is in the directory of a model
/// version or below `skills/`.
#[must_use]
pub fn needs(action: Action, path: &ArtifactPath) -> Needs {
    if let Some((directory, _)) = VersionDirectory::split(path) {
        return Needs::of_in(action, Resource::ModelVersion, Target::RegisteredModel(directory.name));
    }
    if is_of_skills(path) {
        return needs_of_skill(action, path);
    }
    let Some(experiment) = experiment_of(path) else {
        return Needs::of(action, [Target::Any(Resource::Experiment)]);
    };
    let kinds = kinds(in_workspace(path).get(1..).unwrap_or_default(), action == Action::Delete);
    let in_experiment = |needs: Needs, kind: &Resource| needs.and_in(action, *kind, [Target::Experiment(experiment)]);
    kinds.iter().fold(Needs::nothing(), in_experiment)
}

/// Checks whether a path is the directory `skills`, or below it, in any workspace. The case of the
/// directory's name is ignored, because some file systems ignore it, too.
fn is_of_skills(path: &ArtifactPath) -> bool {
    match path.parts() {
        [first, _, rest @ ..] if is_named(first, WORKSPACES_DIRECTORY) => {
            rest.first().is_some_and(|first| is_named(first, SKILLS_DIRECTORY))
        }
        [first, ..] => is_named(first, SKILLS_DIRECTORY),
        [] => false,
    }
}

/// Checks whether some file system may take a name for that of this directory, which is in lower case.
/// Without the step to upper case, `\u{17f}kills` would differ from `skills`.
fn is_named(name: &str, directory: &str) -> bool {
    name.to_uppercase().to_lowercase() == directory
}

/// Rejects a path whose deletion would delete the uploaded content of skills: the artifact root, and the
/// directories of workspaces.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` for the root, and `PERMISSION_DENIED` for the directories of workspaces.
pub fn check_deletable(path: &ArtifactPath) -> Result<()> {
    check_writable(path)?;
    match path.parts() {
        // In a workspace, this is the directory of the workspace.
        [] => Err(Error::invalid("Invalid path")),
        [first] | [first, _] if is_named(first, WORKSPACES_DIRECTORY) => Err(immutable_content()),
        _ => Ok(()),
    }
}

fn immutable_content() -> Error {
    Error::new(ErrorCode::PermissionDenied, "Skill upload content is immutable; register a new version instead")
}

/// Returns the skill in whose directory a path is. Returns `None` for paths that are in no skill's
/// directory, such as that of an organization.
#[must_use]
pub fn skill_of(path: &ArtifactPath) -> Option<SkillName> {
    match in_workspace(path) {
        [root, organization, name, ..] if root == SKILLS_DIRECTORY && organization.starts_with('@') => {
            SkillName::parse(&format!("{organization}/{name}")).ok()
        }
        [root, name, ..] if root == SKILLS_DIRECTORY => SkillName::parse(name).ok(),
        _ => None,
    }
}

/// Returns the needs of an action on uploaded content. The directories above those of single skills
/// show the names of skills, so only administrators may list them.
fn needs_of_skill(action: Action, path: &ArtifactPath) -> Needs {
    let target = skill_of(path).map_or(Target::Nothing(Resource::Skill), Target::Skill);
    Needs::of_in(action, Resource::SkillVersion, target)
}

/// Returns the needs of a caller who creates an experiment whose artifact location is `path`, below
/// `mlflow-artifacts:/`. If `path` is in the directory of another experiment, the caller needs the
/// right to change everything in that experiment: clients choose the ids of traces, so files of the
/// new experiment may end up among any files of the other one.
#[must_use]
pub fn needs_to_share(path: &ArtifactPath) -> Needs {
    let Some(experiment) = experiment_of(path) else { return needs(Action::Update, path) };
    let kinds = [Resource::Experiment, Resource::Run, Resource::LoggedModel, Resource::Trace];
    let in_experiment = |needs: Needs, kind| needs.and_in(Action::Update, kind, [Target::Experiment(experiment)]);
    kinds.into_iter().fold(Needs::nothing(), in_experiment)
}

/// Rejects a path below `model-versions/` or `skills/`, in any workspace. Used by requests that write.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` for a path below `model-versions/`, and `PERMISSION_DENIED` for a path
/// below `skills/`.
pub fn check_writable(path: &ArtifactPath) -> Result<()> {
    if is_of_skills(path) {
        return Err(immutable_content());
    }
    if in_workspace(path).first().is_some_and(|first| first == VERSIONS) {
        return Err(Error::invalid(format!(
            "Invalid path: '{path}'. The artifacts of model versions below '{VERSIONS}' cannot be changed."
        )));
    }
    Ok(())
}

/// Returns the kinds of entities whose artifacts are at a path in an experiment's directory. If the
/// path is deleted, entities with artifacts below it are included.
fn kinds(path: &[String], is_deleted: bool) -> &'static [Resource] {
    let is_of_run = |path: &[String]| path.get(1).is_some_and(|second| second == "artifacts");
    match path {
        [] if is_deleted => &[Resource::Run, Resource::Trace, Resource::LoggedModel],
        [first, ..] if first == "models" => &[Resource::LoggedModel],
        [first, ..] if first == "traces" => &[Resource::Trace],
        // A run's directory may be deeper in the tree, because the artifact location of an
        // experiment may be in the directory of another one.
        _ if is_deleted || is_of_run(path) || path.iter().any(|part| is_run(part)) => &[Resource::Run],
        _ => &[Resource::Experiment],
    }
}

/// Checks whether the name of a directory has the form of a run id that MLflow creates.
#[must_use]
pub fn is_run(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the experiment whose directory contains a path. Directory names have the canonical form
/// of the id: `007` does not belong to experiment 7.
#[must_use]
pub fn experiment_of(path: &ArtifactPath) -> Option<ExperimentId> {
    let first = in_workspace(path).first()?;
    ExperimentId::parse(first).ok().filter(|experiment| experiment.to_string() == *first)
}

/// Returns the parts of a path relative to the directory of its workspace.
#[must_use]
pub fn in_workspace(path: &ArtifactPath) -> &[String] {
    match path.parts() {
        [first, _, rest @ ..] if first == WORKSPACES_DIRECTORY => rest,
        all => all,
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::RegisteredModelName;

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
        let nested = format!("7/of-another/{}/artifacts/x", "0123456789abcdef".repeat(2));
        for (path, kind) in [
            ("7/run/artifacts", Resource::Run),
            ("workspaces/team-a/7/run/artifacts", Resource::Run),
            ("workspaces/team-a/7", Resource::Experiment),
            ("7/run/artifacts/x", Resource::Run),
            (&run, Resource::Run),
            (&nested, Resource::Run),
            ("7/models", Resource::LoggedModel),
            ("7/models/m-1/artifacts/x", Resource::LoggedModel),
            ("7/traces/tr-1/artifacts/x", Resource::Trace),
        ] {
            assert_eq!(of(path), seven(kind), "{path}");
        }
        for path in ["", "007/x", "+7/x", " 7/x", "models/x", "workspaces/a", "7 /x", "-7/x", "model-versions"] {
            assert_eq!(of(path), whole, "{path}");
        }
    }

    #[test]
    fn a_directory_of_a_version_needs_the_version() {
        let of = |path: &str| needs(Action::Read, &ArtifactPath::parse(path).unwrap());
        let model = Target::RegisteredModel(RegisteredModelName::named("m"));
        let version = Needs::of_in(Action::Read, Resource::ModelVersion, model);
        for path in ["model-versions/bQ/1", "model-versions/bQ/1/x", "model%2dversions/bQ//1/./x"] {
            assert_eq!(of(path), version, "{path}");
        }
    }

    #[test]
    fn the_artifacts_of_versions_are_not_writable() {
        for (path, writable) in [
            ("model-versions/x", false),
            ("workspaces/a/model-versions", false),
            ("1/x", true),
            ("skills", false),
            ("skills/a/x", false),
            ("./skills//a", false),
            ("%73kills/a", false),
            ("SKILLS/a", false),
            ("\u{17f}kills/a", false),
            ("Workspaces/a/skills/a", false),
            ("workspaces/a/skills/a", false),
            ("1/skills", true),
        ] {
            assert_eq!(check_writable(&ArtifactPath::parse(path).unwrap()).is_ok(), writable, "{path}");
        }
    }

    #[test]
    fn no_directory_above_uploaded_content_is_deletable() {
        for (path, deletable) in [
            (".", false),
            ("workspaces", false),
            ("Workspaces/team", false),
            ("workspaces/team/.", false),
            ("skills/a", false),
            ("workspaces/team/1", true),
            ("1", true),
        ] {
            assert_eq!(check_deletable(&ArtifactPath::parse(path).unwrap()).is_ok(), deletable, "{path}");
        }
    }

    #[test]
    fn uploaded_content_needs_its_skill() {
        let of = |path: &str| needs(Action::Read, &ArtifactPath::parse(path).unwrap());
        let skill = |name: &str| {
            let target = Target::Skill(SkillName::parse(name).unwrap());
            Needs::of_in(Action::Read, Resource::SkillVersion, target)
        };
        for path in ["skills/a", "skills/a/x/y", "./skills//%61", "workspaces/team/skills/a/x"] {
            assert_eq!(of(path), skill("a"), "{path}");
        }
        assert_eq!(of("skills/@acme/a/x"), skill("@acme/a"));
        let nobody = Needs::of_in(Action::Read, Resource::SkillVersion, Target::Nothing(Resource::Skill));
        for path in ["skills", "skills/@acme", "skills/A/x", "Skills/a/x", "skills/@/a", "workspaces/team/skills"] {
            assert_eq!(of(path), nobody, "{path}");
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
