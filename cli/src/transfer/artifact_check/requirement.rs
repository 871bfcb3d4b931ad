//! Which files must exist at an artifact location.

use std::collections::BTreeSet;

use serde_json::Value;

/// Tag of a run that lists the models that the run has logged, as JSON.
pub(super) const MODELS_TAG: &str = "mlflow.log-model.history";
/// Tag of a run that lists the tables that the run has logged, as JSON.
pub(super) const FILES_TAG: &str = "mlflow.loggedArtifacts";
/// Maximum number of files that are looked up for one run or trace.
const MAX_FILES: usize = 100;
/// Prefix of a reference from a span to an attachment: `mlflow-attachment://<id>?…`.
const ATTACHMENT_SCHEME: &str = "mlflow-attachment://";
/// Directory of a trace that contains its attachments.
const ATTACHMENTS_DIRECTORY: &str = "attachments";

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
        Self::of_paths(models.chain(files).filter(is_relative))
    }

    /// Returns what must exist in the directory of a trace whose spans have this content, as JSON.
    pub(super) fn of_trace(content: &str) -> Self {
        let is_of_id = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '-' || symbol == '_';
        let ids = content.split(ATTACHMENT_SCHEME).skip(1).filter_map(|rest| {
            let end = rest.find(|symbol| !is_of_id(symbol)).filter(|end| *end > 0)?;
            // Only a reference has parameters. Other texts may contain the scheme as well.
            rest[end..].starts_with('?').then(|| &rest[..end])
        });
        Self::of_paths(ids.map(|id| format!("{ATTACHMENTS_DIRECTORY}/{id}")))
    }

    fn of_paths(paths: impl Iterator<Item = String>) -> Self {
        let paths: BTreeSet<_> = paths.take(MAX_FILES).collect();
        if paths.is_empty() { Self::None } else { Self::Paths(paths.into_iter().collect()) }
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

    #[test]
    fn spans_name_attachments_of_a_trace() {
        let content = r#"{"in": "mlflow-attachment://0b-1?content_type=image%2Fpng&trace_id=tr-1", "text": "see mlflow-attachment:// or
            mlflow-attachment://../x?y", "out": ["\"mlflow-attachment://0a?content_type=a%2Fb\"", "mlflow-attachment://0b-1?x"]}"#;
        let expected = ["attachments/0a", "attachments/0b-1"].map(str::to_owned).to_vec();
        assert_eq!(Requirement::of_trace(content), Requirement::Paths(expected));
        assert_eq!(Requirement::of_trace("mlflow-attachment://0a"), Requirement::None);
    }
}
