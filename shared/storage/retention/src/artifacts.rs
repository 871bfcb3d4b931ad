//! Deletes the artifacts of an entity that is being permanently deleted.

use artifact_store::ArtifactPath;
use mlflow_api::{Error, ErrorCode};

use crate::store::Retention;

impl Retention {
    /// Deletes the artifacts of a run or a logged model, if there are any. The error text contains
    /// the location of the artifacts and the reason why they could not be deleted.
    pub(crate) async fn remove_artifacts(&self, location: &str, id: &str) -> Result<(), String> {
        let failed =
            |error: Error| format!("its artifacts at {location} remain: {}", error.cause.unwrap_or(error.message));
        let place = match self.artifacts.at(directory(location, id)) {
            Err(error) if error.code == ErrorCode::NotImplemented && self.leaves_artifacts => return Ok(()),
            place => place.map_err(failed)?,
        };
        place.delete(&ArtifactPath::default()).await.map_err(failed)
    }
}

/// Returns the directory named after the entity's ID if `location` is inside such a directory, and
/// otherwise `location`. Locations that this server creates have this form, and their directories
/// contain nothing else.
fn directory<'a>(location: &'a str, id: &str) -> &'a str {
    let named = location
        .strip_suffix("/artifacts")
        .filter(|named| named.strip_suffix(id).is_some_and(|rest| rest.ends_with('/')));
    named.unwrap_or(location)
}

#[cfg(test)]
mod tests {
    use super::directory;

    #[test]
    fn a_directory_of_its_own_goes_whole() {
        for (location, expected) in [
            ("s3://b/1/r/artifacts", "s3://b/1/r"),
            ("mlflow-artifacts:/1/models/r/artifacts", "mlflow-artifacts:/1/models/r"),
            // This server has not created these locations, so they are returned unchanged.
            ("s3://b/1/xr/artifacts", "s3://b/1/xr/artifacts"),
            ("s3://b/shared/artifacts", "s3://b/shared/artifacts"),
            ("r/artifacts", "r/artifacts"),
            ("s3://b/r", "s3://b/r"),
        ] {
            assert_eq!(directory(location, "r"), expected);
        }
    }
}
