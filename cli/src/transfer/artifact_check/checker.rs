//! Checks whether the files of entities exist.

use std::collections::HashSet;

use artifact_store::{ArtifactPath, ArtifactStore, Location};
use futures::stream::{self, StreamExt};
use mlflow_api::{ErrorCode, location};

use super::candidates::{self, Candidate};
use super::requirement::Requirement;
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{ArtifactFinding, ImportContext};
use crate::transfer::registered_models::VersionLocations;
use crate::transfer::skills;

/// Names of the kinds of entities in the report.
const RUNS: &str = "runs";
const LOGGED_MODELS: &str = "logged models";
const VERSIONS: &str = "model versions";
const TRACES: &str = "traces with attachments";
const SKILLS: &str = "skill versions";
/// Number of locations that are looked up concurrently.
const CONCURRENCY: usize = 16;

/// Checks whether this server serves the artifacts of the runs and logged models of the imported
/// experiments, the attachments of their traces, the artifacts of the versions of registered models,
/// and the content of the versions of skills. If `looks_up` is set, also looks for the files there, and reports those that are missing.
/// This takes one listing per location. If the tags of a run name files, it takes one per directory
/// of these files instead.
///
/// # Errors
/// The source cannot be read, or this server does not store artifacts at the destination.
pub(crate) async fn check(
    context: &ImportContext,
    experiments: &[ImportedExperiment],
    looks_up: bool,
) -> Result<(), Failure> {
    let directory = std::env::current_dir()?;
    let destination = location::absolute(&context.artifacts_destination, directory.to_str());
    let destination = destination.map_err(|error| error.message)?;
    let store = ArtifactStore::below(&destination);
    if !store.are_kept() {
        return Err(format!("{destination} is neither a local directory nor a bucket (s3://bucket/path)").into());
    }
    let check = ArtifactCheck { context, store, looks_up };
    for experiment in experiments {
        let mut after = String::new();
        loop {
            let runs = candidates::next_runs(context, experiment.source_id, &after).await?;
            let Some(last) = runs.last() else { break };
            after.clone_from(&last.id);
            check.all(RUNS, runs).await;
        }
        after.clear();
        loop {
            let models = candidates::next_logged_models(context, experiment.source_id, &after).await?;
            let Some(last) = models.last() else { break };
            after.clone_from(&last.id);
            check.all(LOGGED_MODELS, models).await;
        }
        after.clear();
        let location = &experiment.record.artifact_location;
        loop {
            let traces = candidates::next_traces(context, experiment.source_id, location, &after).await?;
            let Some(last) = traces.last() else { break };
            after.clone_from(&last.id);
            check.all(TRACES, traces).await;
        }
    }
    let mut versions = VersionLocations::open(context).await?;
    while let Some(found) = versions.next(context).await? {
        let found = found.into_iter().map(|version| Candidate {
            id: version.id,
            location: context.artifact_location(&version.location),
            requirement: Requirement::AnyFile,
        });
        check.all(VERSIONS, found.collect()).await;
    }
    let contents = skills::content_locations(context).await?.into_iter();
    let contents = contents.map(|(id, location)| Candidate { id, location, requirement: Requirement::AnyFile });
    check.all(SKILLS, contents.collect()).await;
    Ok(())
}

/// A check in progress.
struct ArtifactCheck<'a> {
    context: &'a ImportContext,
    store: ArtifactStore,
    looks_up: bool,
}

impl ArtifactCheck<'_> {
    /// Checks entities of one kind, and reports the findings.
    async fn all(&self, kind: &'static str, candidates: Vec<Candidate>) {
        let mut findings = stream::iter(candidates)
            .map(|candidate| async move {
                let requirement = self.looks_up.then_some(&candidate.requirement);
                let finding = find(&self.store, &candidate.location, requirement).await;
                (candidate.id, finding)
            })
            .buffered(CONCURRENCY);
        while let Some((id, finding)) = findings.next().await {
            self.context.report.artifacts(kind, &id, finding);
        }
    }
}

/// Returns the finding for a location. Looks for files only if a requirement is given.
async fn find(store: &ArtifactStore, location: &str, requirement: Option<&Requirement>) -> ArtifactFinding {
    let Ok(at) = store.at(location) else { return ArtifactFinding::Elsewhere(place(location)) };
    let Some(requirement) = requirement else { return ArtifactFinding::Served };
    let looked_up = match requirement {
        Requirement::None | Requirement::AnyFile => has_files(&at, &ArtifactPath::default()).await,
        Requirement::Paths(paths) => has_paths(&at, paths).await,
    };
    match (looked_up, requirement) {
        (Ok(true), _) => ArtifactFinding::Present,
        (Ok(false), Requirement::None) => ArtifactFinding::Empty,
        (Ok(false), _) => ArtifactFinding::Missing,
        (Err(error), _) => ArtifactFinding::Unreadable(error.message),
    }
}

/// Returns whether a directory has files.
async fn has_files(at: &Location, path: &ArtifactPath) -> mlflow_api::Result<bool> {
    match at.list(path).await {
        Ok(files) => Ok(!files.is_empty()),
        // The listing fails, because the directory has more files than a list may contain.
        Err(error) if error.code == ErrorCode::InvalidParameterValue => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns whether all of these files or directories exist. Lists each directory that contains any
/// of them once. If a directory has more files than a list shows, all paths that have not been
/// checked yet count as existing.
async fn has_paths(at: &Location, paths: &[String]) -> mlflow_api::Result<bool> {
    let mut listed: HashSet<String> = HashSet::new();
    let mut directories: HashSet<&str> = HashSet::new();
    for path in paths {
        let directory = path.trim_end_matches('/').rsplit_once('/').map_or("", |(directory, _)| directory);
        if directories.insert(directory) {
            match at.list(&ArtifactPath::parse(directory)?).await {
                Ok(files) => listed.extend(files.into_iter().map(|file| file.path)),
                Err(error) if error.code == ErrorCode::InvalidParameterValue => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        if !listed.contains(path.trim_end_matches('/')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the server or bucket that a location belongs to, in the form that is shown in the
/// report.
fn place(location: &str) -> String {
    match location.split_once("://") {
        Some(("file", _)) => "other directories".to_owned(),
        Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()),
        None => match location.split_once(':') {
            Some((scheme, _)) if scheme != "file" => format!("{scheme}:"),
            _ => "other directories".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_server_or_a_bucket() {
        for (location, expected) in [
            ("s3://bucket/a/b", "s3://bucket"),
            ("mlflow-artifacts://host:5000/1", "mlflow-artifacts://host:5000"),
            ("dbfs:/x", "dbfs:"),
            ("file:///srv/mlruns", "other directories"),
            ("./mlruns/0", "other directories"),
        ] {
            assert_eq!(place(location), expected);
        }
    }

    #[tokio::test]
    async fn files_are_found_where_the_server_serves_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap();
        std::fs::create_dir_all(directory.path().join("1/run/artifacts/model")).unwrap();
        std::fs::write(directory.path().join("1/run/artifacts/model/MLmodel"), "x").unwrap();
        std::fs::write(directory.path().join("1/run/artifacts/t.json"), "x").unwrap();
        let store = ArtifactStore::below(root);
        let paths = |paths: &[&str]| Requirement::Paths(paths.iter().map(|path| (*path).to_owned()).collect());
        let run = format!("{root}/1/run/artifacts");
        for (location, requirement, expected) in [
            (run.as_str(), Requirement::None, ArtifactFinding::Present),
            ("mlflow-artifacts:/1/run/artifacts", Requirement::AnyFile, ArtifactFinding::Present),
            (&run, paths(&["model", "model/MLmodel", "t.json"]), ArtifactFinding::Present),
            (&run, paths(&["model", "other/t.json"]), ArtifactFinding::Missing),
            ("mlflow-artifacts:/1/gone", Requirement::None, ArtifactFinding::Empty),
            ("mlflow-artifacts:/1/gone", Requirement::AnyFile, ArtifactFinding::Missing),
            ("/etc", Requirement::AnyFile, ArtifactFinding::Elsewhere("other directories".to_owned())),
            ("gs://b/x", Requirement::None, ArtifactFinding::Elsewhere("gs://b".to_owned())),
        ] {
            assert_eq!(find(&store, location, Some(&requirement)).await, expected, "{location} {requirement:?}");
        }
    }
}
