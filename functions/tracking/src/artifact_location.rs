//! Checks the artifact location that a client chose for a new experiment.

use access::Scope;
use artifact_access::{check_writable, needs_to_share};
use mlflow_api::{Error, ErrorCode, Result, location};

use crate::store::Store;

/// Checks a location in the form in which the server will resolve it: decoded, and whether it is a
/// URI or a path. A location among the artifacts of this server must be in an experiment that the
/// caller may change. For other locations, clients need rights of their own. No request, unless the
/// location is in an experiment.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` for a location that MLflow refuses, or that this server could not
/// resolve; `PERMISSION_DENIED`, if its artifacts would be among those of somebody else.
pub(crate) async fn check(scope: &Scope, store: &Store, location: &str) -> Result<()> {
    location::check(location, store.artifact_root())?;
    let location = &location::absolute(location, store.working_directory())?;
    // Clients compare schemes in lower case, this server does not.
    let resolved = store.artifacts().at(&location::with_lower_scheme(location));
    let path = match &resolved {
        Ok(place) => place.path(),
        // Somewhere else.
        Err(error) if error.code == ErrorCode::NotImplemented => return Ok(()),
        Err(error) => return Err(error.clone()),
    };
    if store.artifacts().at(location).is_err() {
        return Err(Error::invalid(format!("Write the scheme of the artifact location '{location}' in lower case.")));
    }
    check_writable(path)?;
    if scope.may(service::Store::table(store), &needs_to_share(path)).await? {
        return Ok(());
    }
    // The answer is HTML, so it has no text of the client.
    Err(Error::new(
        ErrorCode::PermissionDenied,
        "Permission denied. This artifact_location is among the artifacts of the server, outside the experiments that you \
         may change. Omit artifact_location, or ask an administrator to create the experiment.",
    ))
}
