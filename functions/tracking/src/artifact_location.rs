//! Checks the artifact location that a client has chosen for a new experiment.

use access::Scope;
use artifact_access::{check_writable, needs_to_share};
use mlflow_api::{Error, ErrorCode, Result, location};

use crate::store::Store;

/// Checks an experiment's artifact location, decoded and absolute, as the server will resolve it. A
/// location in this server's artifact storage must be inside an experiment that the caller may
/// change, unless the caller is an administrator. Other locations are not restricted, because
/// clients access them with their own credentials. Makes no requests unless the location is inside
/// an experiment.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` for a location that MLflow rejects, or that this server cannot
/// resolve, and `PERMISSION_DENIED` for a location in this server's artifact storage that the
/// caller may not write to.
pub(crate) async fn check_artifact_location(scope: &Scope, store: &Store, location: &str) -> Result<()> {
    location::check(location, store.artifact_root())?;
    let location = &location::absolute(location, store.working_directory())?;
    // This server only accepts schemes in lower case, but clients accept any case. The check must
    // not miss a location because of its case.
    let resolved = store.artifacts().at(&location::with_lower_scheme(location));
    let path = match &resolved {
        Ok(place) => place.path(),
        // The storage does not implement this location, so it is outside this server's artifact
        // storage and not restricted.
        Err(error) if error.code == ErrorCode::NotImplemented => return Ok(()),
        Err(error) => return Err(error.clone()),
    };
    if store.artifacts().at(location).is_err() {
        return Err(Error::invalid(format!("Write the scheme of the artifact location '{location}' in lower case.")));
    }
    check_writable(path)?;
    if scope.is_allowed(service::DomainStore::table(store), &needs_to_share(path)).await? {
        return Ok(());
    }
    // The message must not contain text from the client, because it is sent as HTML.
    Err(Error::new(
        ErrorCode::PermissionDenied,
        "Permission denied. This artifact_location is in the server's artifact storage, outside the experiments that you \
         may change. Omit artifact_location, or ask an administrator to create the experiment.",
    ))
}
