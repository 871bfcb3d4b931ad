//! The configuration of single sign-on: a file in TOML that `admin providers` validates. The access
//! table stores it as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The configuration of single sign-on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The origins under which browsers reach the server, such as `https://mlflow.example.com`.
    /// Redirect URIs are built from them, never from `Host`. The first one is the default.
    pub origins: Vec<String>,
    /// Interval in minutes at which a session is renewed.
    #[serde(default = "defaults::renewal_minutes")]
    pub renewal_minutes: u32,
    /// How long a session stays valid while its provider cannot be reached, in minutes after the
    /// time at which it had to be renewed.
    #[serde(default = "defaults::grace_minutes")]
    pub grace_minutes: u32,
    /// How long the API tokens of a person stay valid after the provider has last confirmed the
    /// person, in days.
    #[serde(default = "defaults::token_days")]
    pub token_days: u32,
    /// The providers at which people sign in.
    #[serde(default)]
    pub providers: Vec<Provider>,
    /// The rules by which machines exchange a JWT for a token.
    #[serde(default)]
    pub machines: Vec<MachineRule>,
}

/// A provider at which people sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Name in URLs, rows and the name of the secret: 1 to 32 of `a-z`, `0-9` and `-`.
    pub name: String,
    /// Text of the link on the sign-in page.
    pub title: String,
    /// The issuer. `{tenantid}` stands for the tenant of Entra's `common` and `organizations`.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// The scopes to request, in addition to `openid`.
    #[serde(default = "defaults::scopes")]
    pub scopes: Vec<String>,
    /// Further parameters of the request for authorization, such as `access_type = "offline"`.
    #[serde(default)]
    pub authorize: AuthorizeParameters,
    /// The claim that names a new user.
    #[serde(default = "defaults::name_claim")]
    pub name_claim: String,
    /// Who creates users.
    #[serde(default)]
    pub new_users: NewUsers,
    /// Claims that a person must have to be admitted.
    #[serde(default)]
    pub require: Vec<ClaimRule>,
    /// Rules that give roles.
    #[serde(default)]
    pub roles: Vec<RoleRule>,
    /// Whether signing out here also signs out at the provider.
    #[serde(default)]
    pub sign_out: bool,
}

/// Names and values of additional parameters.
pub type AuthorizeParameters = BTreeMap<String, String>;

/// Who creates the user of a person who signs in for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewUsers {
    /// The first sign-in creates the user.
    #[default]
    Create,
    /// An administrator creates the user, and links the identity with `admin link`.
    Refuse,
}

/// A condition on a claim: it is one of these values, or a list that contains one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRule {
    /// Name of the claim. A dot leads into an object: `realm_access.roles`. A claim whose name
    /// contains a dot is found first.
    pub claim: String,
    /// The values. Compared exactly.
    pub values: Vec<String>,
}

/// A rule that gives a role to everyone whose claim has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRule {
    /// Name of the claim, as in [`ClaimRule`].
    pub claim: String,
    /// The values. Compared exactly.
    pub values: Vec<String>,
    /// What the rule gives.
    #[serde(flatten)]
    pub gives: RoleTarget,
}

/// What a rule gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RoleTarget {
    /// A role of a workspace.
    Role {
        /// Name of the role.
        role: String,
        /// Name of its workspace.
        #[serde(default = "defaults::workspace")]
        workspace: String,
    },
    /// The rights of an administrator.
    Administrator {
        /// Always true.
        administrator: bool,
    },
}

/// A rule by which a machine exchanges a JWT for a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRule {
    /// Name of the rule, in logs and in the name of the token: as for providers.
    pub name: String,
    /// The issuer of the JWT.
    pub issuer: String,
    /// The audience that the JWT must have, and no other.
    pub audience: String,
    /// The claims that the JWT must have. At least one.
    pub require: Vec<ClaimRule>,
    /// Keys of the issuer (a JWK set), for issuers whose keys cannot be fetched, such as
    /// Kubernetes. Without, they are found by discovery.
    #[serde(default)]
    pub keys: Option<serde_json::Value>,
    /// Name of the user for whom tokens are issued.
    pub user: String,
    /// What tokens may do: `everything`, `read` or `ingest`.
    #[serde(default = "defaults::only")]
    pub only: String,
    /// The experiment that tokens are limited to.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Lifetime of tokens in minutes, at most 60.
    #[serde(default = "defaults::machine_minutes")]
    pub minutes: u32,
}

mod defaults {
    pub(super) fn renewal_minutes() -> u32 {
        15
    }
    pub(super) fn grace_minutes() -> u32 {
        60
    }
    pub(super) fn token_days() -> u32 {
        30
    }
    pub(super) fn scopes() -> Vec<String> {
        ["profile", "email"].map(str::to_owned).to_vec()
    }
    pub(super) fn name_claim() -> String {
        "email".to_owned()
    }
    pub(super) fn workspace() -> String {
        "default".to_owned()
    }
    pub(super) fn only() -> String {
        "everything".to_owned()
    }
    pub(super) fn machine_minutes() -> u32 {
        60
    }
}
