//! The virtual directory of a model version.

use artifact_store::ArtifactPath;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mlflow_api::RegisteredModelName;

/// Parent of the directories of all versions.
pub(crate) const VERSIONS_DIRECTORY: &str = "model-versions";

/// The directory of a model version below `mlflow-artifacts:/`: `model-versions/<name>/<version>`.
///
/// The name is encoded in base64url without padding, so that any model name survives the layers of
/// URL encoding that clients add and servers remove. Nothing is stored in this directory, and its
/// paths are read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionDirectory {
    /// The name of the registered model.
    pub name: RegisteredModelName,
    /// The number of the version.
    pub version: u32,
}

impl VersionDirectory {
    /// Returns the URI of the directory, which MLflow's client accepts as the location of a model.
    #[must_use]
    pub fn uri(&self) -> String {
        format!(
            "mlflow-artifacts:/{VERSIONS_DIRECTORY}/{}/{}",
            URL_SAFE_NO_PAD.encode(self.name.as_str()),
            self.version
        )
    }

    /// Splits a path into the version directory that contains it and the path below. Returns `None`
    /// for all other paths, including those that name no version.
    #[must_use]
    pub fn split(path: &ArtifactPath) -> Option<(Self, ArtifactPath)> {
        let [root, name, version, ..] = path.parts() else { return None };
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
        let number = version.parse().ok().filter(|number: &u32| number.to_string() == *version)?;
        let directory = Self { name: RegisteredModelName::named(&name), version: number };
        (root == VERSIONS_DIRECTORY).then(|| (directory, path.without_first(3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_come_back_from_the_uri() {
        for name in ["m", "a model", "100%25", "%2e%2e", "..", "ü ö", "a#b?c", "\\", "-_~"] {
            let directory = VersionDirectory { name: RegisteredModelName::named(name), version: 12 };
            let uri = directory.uri();
            let path = uri.strip_prefix("mlflow-artifacts:/").unwrap();
            let path = ArtifactPath::parse(&format!("{path}/data/model.pkl")).unwrap();
            let (found, below) = VersionDirectory::split(&path).unwrap();
            assert_eq!((found, below.to_string().as_str()), (directory, "data/model.pkl"), "{name}");
        }
    }

    #[test]
    fn other_paths_are_in_no_directory_of_a_version() {
        for path in [
            "",
            "model-versions",
            "model-versions/bQ",
            "model-versions/b!/1",
            "model-versions/bQ/01",
            "model-versions/bQ/x",
            "1/model-versions/bQ/1",
            "x/bQ/1",
        ] {
            assert_eq!(VersionDirectory::split(&ArtifactPath::parse(path).unwrap()), None, "{path}");
        }
    }
}
