//! The result of looking up the sender of a request.

use access::Identity;
use mlflow_api::UserName;

/// How it is with requests that a principal of AWS has signed.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// The user that a principal is whom nobody has mapped to one; `None`, if it may do everything: the gateway has admitted it.
    pub unmapped: Option<UserName>,
}

/// The result.
pub(crate) enum Found {
    /// The caller that was found.
    Caller(Identity),
    /// It was this user, of whom nothing was read.
    User(UserName),
}
