//! The sender of a request, and how it arrived.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Method};
use mlflow_api::{UserName, Workspace};

use crate::credentials::Sent;
use crate::restriction::Restriction;

/// A user, as the table said when the request began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: UserName,
    /// Id. No other user ever gets it, not even one of the same name.
    pub id: u32,
    /// Whether he may do everything.
    pub is_admin: bool,
    /// Ids of his roles.
    pub roles: Vec<u32>,
    /// How often his item has changed.
    pub version: u32,
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Somebody whom the gateway or the loopback address has admitted, and of whom nothing else is known.
    Somebody,
    /// A principal of AWS that has signed the request, and is no user. Everybody whom the gateway
    /// admits may do everything.
    Principal(Arc<str>),
    /// A user.
    User(Arc<User>),
}

impl Caller {
    /// The user, if the caller is one.
    #[must_use]
    pub fn user(&self) -> Option<&User> {
        match self {
            Self::Somebody | Self::Principal(_) => None,
            Self::User(user) => Some(user),
        }
    }

    /// As the log calls the caller.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Somebody => "",
            Self::Principal(principal) => principal,
            Self::User(user) => user.name.as_str(),
        }
    }
}

/// The caller, with workspace and credentials. Calls within the server carry it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The caller.
    pub caller: Caller,
    /// The workspace of the request. It does not see entities of another one.
    pub workspace: Workspace,
    /// Whether there are others than the default one: then an id may be that of something in another workspace.
    pub has_workspaces: bool,
    /// The limits of the credentials.
    pub restriction: Restriction,
    /// The credentials of the request, where the authorizer may have to look at them again.
    pub sent: Option<Arc<Sent>>,
}

impl Identity {
    /// Somebody in the default workspace: callers whom others have admitted, and routes that are
    /// open to everybody.
    #[must_use]
    pub fn somebody() -> Self {
        Self {
            caller: Caller::Somebody,
            workspace: Workspace::default(),
            has_workspaces: false,
            restriction: Restriction::default(),
            sent: None,
        }
    }
}

/// The gateway's findings about the signer of a request (IAM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayIdentity {
    /// The AWS account.
    pub account: String,
    /// The ARN of the user, or of the role's session. The session's name in it is the caller's own choice.
    pub arn: String,
    /// The id of the user, or of the role, which no other ever gets.
    pub user: String,
}

/// Facts about a request that none of its headers has, only the place where it came in. The server
/// of a laptop and the Lambda put them into the extensions of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The address that the request came from.
    pub peer: Option<IpAddr>,
    /// The principal that signed it, where the gateway checked that.
    pub gateway: Option<GatewayIdentity>,
    /// Whether it came over TLS: to the gateway, or to a proxy whose word counts.
    pub is_secure: bool,
}

/// A request as it arrived, but for its body.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// Method.
    pub method: Method,
    /// Path, as it was sent.
    pub path: String,
    /// The part after the `?`, if there is one.
    pub query: Option<String>,
    /// Headers. The sender has written them all, so they prove nothing.
    pub headers: HeaderMap,
    /// What else is known of it.
    pub entry: Entry,
}

impl GatewayIdentity {
    /// The account with the user or the role, such as `123456789012:role/train`. `None` for a
    /// principal without a name of its own.
    ///
    /// The name of a role's session is not in it, as its user chooses that. Nor is the path of a
    /// role, which sessions do not tell.
    #[must_use]
    pub fn principal(&self) -> Option<String> {
        principal_of(&self.arn)
    }
}

/// The principal that an ARN names: of a user, of a role, or of a role's session.
#[must_use]
pub fn principal_of(arn: &str) -> Option<String> {
    let [_, _, service, _, account, resource] = arn.splitn(6, ':').collect::<Vec<_>>().try_into().ok()?;
    let mut parts = resource.split('/');
    let (kind, name) = match (service, parts.next()?) {
        ("sts", "assumed-role") => ("role", parts.next()?),
        ("iam", kind @ ("role" | "user")) => (kind, parts.next_back()?),
        ("iam", "root") => return Some(format!("{account}:root")),
        _ => return None,
    };
    let is_plain = |text: &str| !text.is_empty() && text.len() <= 128 && !text.contains(char::is_whitespace);
    (is_plain(account) && is_plain(name)).then(|| format!("{account}:{kind}/{name}"))
}

impl Arrived {
    /// A request with these parts.
    #[must_use]
    pub fn of(parts: &http::request::Parts) -> Self {
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.clone(),
            entry: parts.extensions.get().cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_no_name_that_its_user_chooses() {
        for (arn, expected) in [
            ("arn:aws:sts::123456789012:assumed-role/train/chosen", Some("123456789012:role/train")),
            ("arn:aws:iam::123456789012:role/team/a/train", Some("123456789012:role/train")),
            ("arn:aws-cn:iam::123456789012:user/team/ann", Some("123456789012:user/ann")),
            ("arn:aws:iam::123456789012:root", Some("123456789012:root")),
            ("arn:aws:sts::123456789012:federated-user/chosen", None),
            ("arn:aws:sts::123456789012:assumed-role", None),
            ("train", None),
            ("", None),
        ] {
            assert_eq!(principal_of(arn).as_deref(), expected, "{arn}");
        }
    }
}
