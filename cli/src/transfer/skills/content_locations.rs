//! Locations of the content of skills that is stored in MLflow.

use mlflow_api::skills::{SkillStatus, SourceType};
use retention::skill_content::uploaded_path;

use super::{database_reader, importer};
use crate::Failure;
use crate::transfer::import::ImportContext;

/// Schemes of locations that refer to the files of another entity.
const REFERENCES: [&str; 2] = ["models:", "runs:"];

/// Returns the versions of all skills of an import whose content is stored in MLflow, with their
/// locations as this server reads them, and without deleted versions. Takes five queries per skill.
///
/// # Errors
/// The database or the table cannot be read.
pub(crate) async fn content_locations(context: &ImportContext) -> Result<Vec<(String, String)>, Failure> {
    let mut locations = Vec::new();
    for (workspace, name) in database_reader::names(context, false).await? {
        let record = database_reader::skill(context, &workspace, &name, false).await?;
        let planned = importer::plan(context, record).await?;
        let name = &planned.record.name;
        for (number, version) in &planned.record.versions {
            let source = &version.source;
            let is_reference = REFERENCES.iter().any(|scheme| source.location.starts_with(scheme));
            if source.kind != SourceType::Mlflow || version.status == SkillStatus::Deleted || is_reference {
                continue;
            }
            let uploaded = uploaded_path(source, name, planned.directory.as_deref());
            let location = match (uploaded, &source.subpath) {
                (Some(path), _) => format!("mlflow-artifacts:/{path}"),
                (None, Some(subpath)) => format!("{}/{subpath}", source.location.trim_end_matches('/')),
                (None, None) => source.location.clone(),
            };
            locations.push((format!("{name} version {number}"), location));
        }
    }
    Ok(locations)
}
