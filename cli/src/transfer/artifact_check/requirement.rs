//! Which files must exist at an artifact location.

use serde_json::Value;

/// Tag of a run that lists the models that the run has logged, as JSON.
pub(super) const MODELS_TAG: &str = "mlflow.log-model.history";
/// Tag of a run that lists the tables that the run has logged, as JSON.
pub(super) const FILES_TAG: &str = "mlflow.loggedArtifacts";
/// Maximum number of files that are looked up for one run.
const MAX_FILES: usize = 100;

/// What must exist at a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    /// Nothing, because the source does not record whether the entity has files.
    None,
    /// Any file.
    AnyFile,
    /// Files or directories at these relative paths.
    Paths(Vec<String>),
}

impl Requirement {
    /// Returns what must exist in the directory of a run with these two tags.
    pub(super) fn of_run(models: Option<&str>, files: Option<&str>) -> Self {
        let entries = |text: Option<&str>| match text.and_then(|text| serde_json::from_str(text).ok()) {
            Some(Value::Array(entries)) => entries,
            _ => Vec::new(),
        };
        // A model with an id is stored in a directory of its own, and not in the directory of the
        // run.
        let models = entries(models).into_iter().filter(|model| model.get("model_id").is_none_or(Value::is_null));
        let models = models.filter_map(|model| Some(model.get("artifact_path")?.as_str()?.to_owned()));
        let files = entries(files).into_iter().filter_map(|file| Some(file.get("path")?.as_str()?.to_owned()));
        let is_relative = |path: &String| !path.is_empty() && !path.starts_with('/') && !path.contains("://");
        let mut paths: Vec<_> = models.chain(files).filter(is_relative).take(MAX_FILES).collect();
        paths.sort_unstable();
        paths.dedup();
        if paths.is_empty() { Self::None } else { Self::Paths(paths) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_files_of_a_run() {
        let models = r#"[{"artifact_path": "model"}, {"artifact_path": "own", "model_id": "m-1"}, {"artifact_path": "s3://b/x"}]"#;
        let files = r#"[{"path": "t.json", "type": "table"}, {"path": "t.json", "type": "table"}]"#;
        let expected = ["model", "t.json"].map(str::to_owned).to_vec();
        assert_eq!(Requirement::of_run(Some(models), Some(files)), Requirement::Paths(expected));
        for text in ["", "{}", "[1]", "[{\"artifact_path\": 5}]"] {
            assert_eq!(Requirement::of_run(Some(text), None), Requirement::None, "{text}");
        }
    }
}
