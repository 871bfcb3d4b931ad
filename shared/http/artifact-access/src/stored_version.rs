//! Stored model versions, and the location of their artifacts.

use access::{Action, AuthorizerWrites, Needs, Target};
use artifact_store::{ArtifactPath, ArtifactStore, Location, not_read};
use entities::attributes::{HOME, ID, NAME, RUN, SOURCE, STORAGE};
use entities::{locate_run, run_artifact_uri};
use key_schema::{ModelKey, Ordinal, rows};
use mlflow_api::{ErrorCode, Result, RunId};
use table::{Item, Table};

use crate::path_needs::needs;

/// A model version, with its model.
#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// The item of the model.
    pub model: Item,
    /// The number of the version.
    pub number: u32,
    /// The item of the version.
    pub version: Item,
}

/// Location of a version's artifacts.
enum VersionLocation {
    /// A location that this server stores artifacts in.
    Stored(Location),
    /// A path in the artifacts of a run. The source names the run by its id.
    OfRun(RunId, ArtifactPath),
}

/// Reads a version of the model that has this name in the request's workspace. Returns `None` if
/// the version does not exist, or if the name has passed to another model since the request was
/// authorized. Takes one request, and one more if the model was renamed.
///
/// # Errors
/// Returns an error if the table cannot be read.
pub async fn read_version(
    table: &Table,
    along: &AuthorizerWrites,
    name: &str,
    number: u32,
) -> Result<Option<StoredVersion>> {
    let key = ModelKey::of(&along.workspace(), name);
    let (model_key, version_key) = (rows::RegisteredModel::key(&key), rows::ModelVersion::key(&key, &Ordinal(number)));
    let mut items = table.get_many(&[model_key.clone(), version_key.clone()]).await?;
    let is_asked_about = |model: &Item| along.is_authorized_model(name, model.get(ID).unwrap_or_default());
    // Keys contain a hash instead of a long name.
    let model = items.remove(&model_key).filter(|model| model.get(NAME) == Some(name));
    let Some(model) = model.filter(is_asked_about) else { return Ok(None) };
    let version = match model.get(HOME) {
        None => items.remove(&version_key),
        Some(home) => table.get(&rows::ModelVersion::key(&ModelKey::from(home), &Ordinal(number))).await?,
    };
    Ok(version.map(|version| StoredVersion { model, number, version }))
}

impl StoredVersion {
    /// Returns the URI of the version's artifacts.
    #[must_use]
    pub fn storage(&self) -> &str {
        self.version.get(STORAGE).or_else(|| self.version.get(SOURCE)).unwrap_or_default()
    }

    /// Returns the needs of a caller who reads the artifacts at [`storage`](Self::storage) without
    /// a right to the version itself. Returns `None` if this server does not store the artifacts.
    #[must_use]
    pub fn needs_of_storage(&self, artifacts: &ArtifactStore) -> Option<Needs> {
        Some(match self.location(artifacts).ok()? {
            VersionLocation::Stored(location) => needs(Action::Read, location.path()),
            VersionLocation::OfRun(run, _) => Needs::read(Target::Run(run)),
        })
    }

    /// Returns the location of the artifacts, for a caller with the right to read the version.
    /// Takes no request, or two to three if the source names its run in a `runs:` URI.
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` if the server does not store the artifacts, or stores them for another
    /// entity. An object in the server's bucket must belong to the run or the logged model that the
    /// version names, because the right to read the version covers no other object.
    pub async fn artifacts(&self, table: &Table, artifacts: &ArtifactStore) -> Result<Location> {
        match self.location(artifacts)? {
            VersionLocation::Stored(location) => Ok(location),
            VersionLocation::OfRun(run, path) => {
                let gone = || not_read(self.storage());
                let at = match locate_run(table, run.as_str()).await {
                    Err(error) if error.code == ErrorCode::ResourceDoesNotExist => return Err(gone()),
                    other => other?,
                };
                let uri = run_artifact_uri(table, &at).await?.ok_or_else(gone)?;
                Ok(artifacts.at(&uri)?.below(&path))
            }
        }
    }

    fn location(&self, artifacts: &ArtifactStore) -> Result<VersionLocation> {
        let storage = self.storage();
        let run = self.version.get(RUN).filter(|run| !run.is_empty());
        if let Some((of, path)) = path_in_run(storage) {
            // The run of the version was verified when the version was created. A source that names
            // any other run proves no right to that run's artifacts.
            let run = run.filter(|run| *run == of).and_then(RunId::parse).ok_or_else(|| not_read(storage))?;
            // If the server stores no artifacts at all, the location of the run need not be read.
            if !artifacts.are_kept() {
                return Err(not_read(storage));
            }
            return Ok(VersionLocation::OfRun(run, ArtifactPath::parse(path)?));
        }
        if run.is_none() && !self.is_logged_model() && artifacts.keeps_object(storage) {
            return Err(not_read(storage));
        }
        artifacts.at(storage).map(VersionLocation::Stored)
    }

    /// Checks whether the source is a logged model. Every other `models:` source that is resolved
    /// when a version is created names a model version, such as `models:/<name>/<number>`.
    fn is_logged_model(&self) -> bool {
        let source = self.version.get(SOURCE).unwrap_or_default();
        let path = scheme_removed("models", source).map(|path| path.split('?').next().unwrap_or_default());
        path.is_some_and(|path| !path.trim_start_matches('/').contains(['/', '@']))
    }
}

/// Returns the run that a `runs:` URI names, and the path in its artifacts.
fn path_in_run(uri: &str) -> Option<(&str, &str)> {
    let path = scheme_removed("runs", uri)?.split(['?', '#']).next()?;
    let path = path.strip_prefix('/').filter(|path| !path.starts_with('/'))?;
    Some(path.split_once('/').unwrap_or((path, "")))
}

fn scheme_removed<'a>(scheme: &str, uri: &'a str) -> Option<&'a str> {
    uri.split_once(':').filter(|(own, _)| own.eq_ignore_ascii_case(scheme)).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use key_schema::Key;
    use table::text;

    use super::*;

    fn version(source: &str, storage: Option<&str>, run: Option<&str>) -> StoredVersion {
        let key = || Key { pk: "p".to_owned(), sk: "s".to_owned() };
        let item = Item::new(key()).with(SOURCE, text(source));
        let item = storage.into_iter().fold(item, |item, storage| item.with(STORAGE, text(storage)));
        let item = run.into_iter().fold(item, |item, run| item.with(RUN, text(run)));
        StoredVersion { model: Item::new(key()), number: 1, version: item }
    }

    #[test]
    fn an_object_that_belongs_to_nothing_is_not_served() {
        let artifacts = ArtifactStore::below("s3://bucket/root");
        let (own, logged, copied) = ("s3://bucket/root/1/x", "models:/m-1", "models:/name/1");
        for (source, storage, run, is_served) in [
            (own, None, None, false),
            (own, None, Some(""), false),
            (own, None, Some("r"), true),
            (logged, Some(own), None, true),
            ("models:///m-1?x=/a", Some(own), None, true),
            (copied, Some(own), None, false),
            (copied, Some(own), Some("r"), true),
            ("s3://other/root/1", None, Some("r"), false),
            ("mlflow-artifacts:/1/x", None, None, true),
            ("runs:/r/x", None, Some("r"), true),
            ("runs:/r/x", None, Some("other"), false),
            ("runs:/r/x", None, None, false),
            ("runs://r/x", None, Some("r"), false),
        ] {
            let found = version(source, storage, run).needs_of_storage(&artifacts);
            assert_eq!(found.is_some(), is_served, "{source} {storage:?} {run:?}");
        }
        assert!(
            version("mlflow-artifacts:/1/x", None, Some("r")).needs_of_storage(&ArtifactStore::default()).is_none()
        );
    }

    #[test]
    fn a_source_in_a_run_is_its_id_and_a_path() {
        for (uri, expected) in [
            ("runs:/r/model", Some(("r", "model"))),
            ("RUNS:/r/a/b?x=y", Some(("r", "a/b"))),
            ("runs:/r", Some(("r", ""))),
            ("runs://r/model", None),
            ("models:/r/1", None),
        ] {
            assert_eq!(path_in_run(uri), expected, "{uri}");
        }
    }
}
