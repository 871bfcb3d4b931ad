//! The caller of a request, and how the request arrived.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Method};
use mlflow_api::{UserName, Workspace};

use crate::credentials::RequestCredentials;
use crate::restriction::Restriction;

/// A user, as read from the access table when the request began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: UserName,
    /// Id of the user. Ids are never reused, not even for a later user with the same name.
    pub id: u32,
    /// Whether the user is an administrator, who may do everything.
    pub is_admin: bool,
    /// Ids of the user's roles.
    pub roles: Vec<u32>,
    /// Version of the user's item, incremented with every change.
    pub version: u32,
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An anonymous caller, admitted by the gateway, or because the server accepts only loopback
    /// connections.
    Anonymous,
    /// An AWS principal that signed the request and is not mapped to a user. It has full access,
    /// because the gateway has admitted it.
    Principal(Arc<str>),
    /// A user.
    User(Arc<User>),
}

impl Caller {
    /// Returns the user, if the caller is one.
    #[must_use]
    pub fn user(&self) -> Option<&User> {
        match self {
            Self::Anonymous | Self::Principal(_) => None,
            Self::User(user) => Some(user),
        }
    }

    /// Returns the caller's name for log messages; empty for an anonymous caller.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Anonymous => "",
            Self::Principal(principal) => principal,
            Self::User(user) => user.name.as_str(),
        }
    }
}

/// The caller with workspace and credentials. Passed on to endpoints that the server calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The caller.
    pub caller: Caller,
    /// Workspace of the request. Entities of other workspaces are not visible in it.
    pub workspace: Workspace,
    /// Whether the server has workspaces other than the default one. If so, an id in the request
    /// may belong to an entity of another workspace.
    pub has_workspaces: bool,
    /// Restrictions of the credentials.
    pub restriction: Restriction,
    /// The credentials of the request, if the authorizer may have to check them again.
    pub request_credentials: Option<Arc<RequestCredentials>>,
}

impl Identity {
    /// Returns an anonymous caller in the default workspace. Used if the gateway or the loopback
    /// address admits callers, and for public routes.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            caller: Caller::Anonymous,
            workspace: Workspace::default(),
            has_workspaces: false,
            restriction: Restriction::default(),
            request_credentials: None,
        }
    }
}

/// The identity of a request's signer, as verified by the gateway (IAM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayIdentity {
    /// The AWS account.
    pub account: String,
    /// ARN of the IAM user or of the role session. The session name in the ARN of a role session is
    /// chosen by the caller.
    pub arn: String,
    /// Unique id of the IAM user or role. AWS never reuses it.
    pub user: String,
}

/// Facts about a request that come from the connection rather than from its headers. The local
/// server and the Lambda runtime put them into the extensions of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The client's IP address.
    pub peer: Option<IpAddr>,
    /// The principal that signed the request, if the gateway verified a signature.
    pub gateway: Option<GatewayIdentity>,
    /// Whether the client connected over TLS, either to the gateway or to a trusted proxy.
    pub is_secure: bool,
}

/// A request as it arrived, without its body.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Method.
    pub method: Method,
    /// Path, as sent by the client.
    pub path: String,
    /// Query string without the `?`, if there is one.
    pub query: Option<String>,
    /// Headers. All of them are set by the client, so they prove nothing.
    pub headers: HeaderMap,
    /// Facts from the connection.
    pub connection: ConnectionInfo,
}

impl GatewayIdentity {
    /// Returns the account with the user or role, such as `123456789012:role/train`. Returns `None`
    /// for a principal without a name of its own, such as a federated user.
    ///
    /// The name of a role session is left out, because the caller chooses it. The path of a role is
    /// left out as well, because ARNs of sessions do not contain it.
    #[must_use]
    pub fn principal(&self) -> Option<String> {
        principal_of(&self.arn)
    }
}

/// Returns the principal of an ARN of an IAM user, a role, a role session or the root user.
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

impl RequestHead {
    /// Returns the request with these parts.
    #[must_use]
    pub fn of(parts: &http::request::Parts) -> Self {
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.clone(),
            connection: parts.extensions.get().cloned().unwrap_or_default(),
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
