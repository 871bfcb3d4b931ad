//! The configuration of single sign-on: a file in TOML that `admin providers` validates. The access
//! table stores it as JSON.

mod error;
mod issuer_kind;
mod rules;
mod text;
mod toml_errors;
mod validation;

use std::collections::BTreeMap;

pub use error::ConfigurationError;
pub(crate) use issuer_kind::{Tenancy, expected_issuer, is_entra};
pub use rules::{ClaimRule, RoleRule, RoleTarget};
use serde::{Deserialize, Serialize};

use crate::claims::{Claims, ClaimsError};
use crate::named_role::NamedRole;

/// Maximum length of the name of a user in bytes (`UserName::MAX_BYTES`).
const MAX_USER_NAME_BYTES: usize = 200;
/// Maximum size of the configuration in bytes, as TOML and as JSON.
pub const MAX_CONFIGURATION_BYTES: usize = 300 << 10;

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
    /// The issuer, exactly as in the provider's discovery document. For Entra, the tenant in it may be
    /// `{tenantid}`, `common`, `organizations` or `consumers`, which admits people of any tenant that
    /// [`Self::require`] names.
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

/// What happens when a person without a user signs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewUsers {
    /// The first sign-in creates the user.
    #[default]
    Create,
    /// An administrator creates the user, and links the identity with `admin link`.
    Refuse,
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
    /// Keys of the issuer (a JWK set, which may be given as JSON in a string), for issuers whose keys
    /// cannot be fetched, such as Kubernetes. Without them, keys are found by discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<serde_json::Value>,
    /// Name of the user for whom tokens are issued.
    pub user: String,
    /// What tokens may do: `everything`, `read` or `ingest`.
    #[serde(default = "defaults::only")]
    pub only: String,
    /// The experiment that tokens are limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Lifetime of tokens in minutes, at most 60.
    #[serde(default = "defaults::machine_minutes")]
    pub minutes: u32,
}

impl Configuration {
    /// Returns the provider with this name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Returns the origin under which a browser has reached the server: the configured origin that
    /// the `Host` header of the request names, otherwise the first one. Returns an empty text if no
    /// origin is configured, which [`Self::validate`] refuses.
    #[must_use]
    pub fn origin(&self, host: Option<&str>) -> &str {
        let named = host.and_then(|host| {
            self.origins.iter().find(|origin| {
                let authority = origin.split_once("://").map(|(_, authority)| authority);
                authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
            })
        });
        named.or(self.origins.first()).map(String::as_str).unwrap_or_default()
    }

    /// Returns all roles that rules of the providers give, with duplicates.
    pub fn roles(&self) -> impl Iterator<Item = NamedRole> {
        self.providers.iter().flat_map(|provider| &provider.roles).filter_map(|rule| rule.gives.role())
    }

    /// Parses and validates the file that an operator has written.
    ///
    /// # Errors
    /// A [`ConfigurationError`] with one sentence that says what to fix, for unknown keys, values of
    /// the wrong type, and everything that [`Self::validate`] refuses.
    pub fn from_toml(text: &str) -> Result<Self, ConfigurationError> {
        check_size(text.len())?;
        let mut configuration: Self = toml::from_str(text).map_err(|error| toml_errors::sentence(&error, text))?;
        for rule in &mut configuration.machines {
            rule.parse_keys()?;
        }
        configuration.validate()?;
        check_size(configuration.to_json().len())?;
        Ok(configuration)
    }

    /// Reads a configuration that was stored with [`Self::to_json`].
    ///
    /// # Errors
    /// The text is no configuration of this version, or is not valid.
    pub fn from_json(text: &str) -> Result<Self, ConfigurationError> {
        check_size(text.len())?;
        let configuration: Self = serde_json::from_str(text)
            .map_err(|error| ConfigurationError::new(format!("the stored configuration cannot be read: {error}")))?;
        configuration.validate()?;
        Ok(configuration)
    }

    /// Returns the form in which the configuration is stored.
    #[must_use]
    pub fn to_json(&self) -> String {
        // The types consist of texts, numbers and lists, so that serializing them cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Provider {
    /// Checks whether the provider admits a person with these claims: every condition of
    /// [`Self::require`] has to be satisfied.
    ///
    /// # Errors
    /// [`ClaimsError::NotAdmitted`] if one is not, and [`ClaimsError::Overflow`] if the provider left
    /// out a claim that a condition refers to.
    pub fn check_admission(&self, claims: &Claims) -> Result<(), ClaimsError> {
        for rule in &self.require {
            let values = claims.rule_values(&rule.claim)?;
            if !values.iter().any(|value| rule.values.contains(value)) {
                return Err(ClaimsError::NotAdmitted { claim: rule.claim.clone() });
            }
        }
        Ok(())
    }

    /// Returns the name of the user to create for a person with these claims: the value of
    /// [`Self::name_claim`].
    ///
    /// # Errors
    /// The claim is missing, cannot be the name of a user, or is an email address that the provider
    /// has not verified.
    pub fn name_of_new_user(&self, claims: &Claims) -> Result<String, ClaimsError> {
        let claim = &self.name_claim;
        let name = claims.text(claim).ok_or_else(|| ClaimsError::Missing { claim: claim.clone() })?;
        let unusable = |reason| Err(ClaimsError::Unusable { claim: claim.clone(), reason });
        if claim == "email" && claims.values("email_verified") == ["false"] {
            return unusable("is an address that the provider has not verified");
        }
        if name.trim().is_empty() || name.trim() != name {
            return unusable("is empty, or begins or ends with a space");
        }
        if name.len() > MAX_USER_NAME_BYTES || name.contains(':') || name.chars().any(char::is_control) {
            return unusable(
                "cannot be the name of a user: it is too long, or contains a colon or a control character",
            );
        }
        Ok(name.to_owned())
    }

    /// Returns the names of all claims that the provider's rules refer to.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &str> {
        let required = self.require.iter().map(|rule| rule.claim.as_str());
        required.chain(self.roles.iter().map(|rule| rule.claim.as_str()))
    }
}

impl MachineRule {
    /// Checks whether the claims of a verified token satisfy every condition of the rule. The issuer
    /// and the audience have to be verified with the token.
    #[must_use]
    pub fn matches(&self, claims: &Claims) -> bool {
        !self.require.is_empty() && self.require.iter().all(|rule| rule.matches(claims))
    }

    /// Replaces keys that were given as JSON in a string.
    fn parse_keys(&mut self) -> Result<(), ConfigurationError> {
        if let Some(serde_json::Value::String(text)) = &self.keys {
            let keys = serde_json::from_str(text).map_err(|error| {
                ConfigurationError::new(format!(
                    "machine rule \"{}\": \"keys\" is not valid JSON ({error}); paste the issuer's JWK set",
                    self.name
                ))
            })?;
            self.keys = Some(keys);
        }
        Ok(())
    }
}

fn check_size(bytes: usize) -> Result<(), ConfigurationError> {
    if bytes <= MAX_CONFIGURATION_BYTES {
        return Ok(());
    }
    Err(ConfigurationError::new(format!(
        "the configuration has {bytes} bytes, but may have at most {MAX_CONFIGURATION_BYTES}"
    )))
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
    pub(super) fn only() -> String {
        "everything".to_owned()
    }
    pub(super) fn machine_minutes() -> u32 {
        60
    }
}

#[cfg(test)]
mod tests;
