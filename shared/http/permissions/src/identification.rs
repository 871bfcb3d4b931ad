//! The result of identifying the sender of a request.

use access::Identity;
use mlflow_api::UserName;

/// Settings for requests that are signed by AWS principals.
#[derive(Clone, Debug, Default)]
pub struct SignedRequests {
    /// The user that unmapped principals act as. `None` gives them full access, because the gateway
    /// has admitted them.
    pub unmapped_user: Option<UserName>,
}

/// The result of identifying the sender of a request.
pub(crate) enum Identification {
    /// The caller was identified.
    Caller(Identity),
    /// The caller is this user, whose item has not been read yet.
    User(UserName),
}
