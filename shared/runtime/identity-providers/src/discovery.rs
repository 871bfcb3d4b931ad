//! Discovery documents (`/.well-known/openid-configuration`).

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::configuration::Tenancy;
use crate::provider_error::ProviderError;
use crate::urls::{MAX_URL_BYTES, has_extras, is_loopback, is_secure};

/// How the server authenticates at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAuthentication {
    /// In the form (`client_secret_post`).
    Form,
    /// In the header `Authorization` (`client_secret_basic`).
    Header,
}

/// What a provider publishes about itself. All URLs are checked.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The issuer of tokens. `{tenantid}` stands for the claim `tid`.
    pub issuer: String,
    /// The page to which browsers are sent to sign in. Issuers of machine tokens have none.
    pub authorization_endpoint: Option<Url>,
    /// Where codes and refresh tokens are exchanged.
    pub token_endpoint: Option<Url>,
    /// Where further claims are read.
    pub userinfo_endpoint: Option<Url>,
    /// The page at which people sign out.
    pub end_session_endpoint: Option<Url>,
    /// Where the keys are.
    pub jwks_uri: Url,
    /// Whether the provider names itself when it redirects back (RFC 9207).
    pub names_itself: bool,
    /// How the server authenticates, or `None` if the provider accepts no client secret.
    pub(crate) authentication: Option<ClientAuthentication>,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    #[serde(default)]
    authorization_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint: Option<String>,
    #[serde(default)]
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    end_session_endpoint: Option<String>,
    jwks_uri: String,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Discovery {
    /// Returns the URL of the discovery document of a configured issuer.
    ///
    /// # Errors
    /// The issuer is not a URL.
    pub(crate) fn url(issuer: &str) -> Result<Url, ProviderError> {
        let base = match Tenancy::of(issuer) {
            Tenancy::Single => issuer.to_owned(),
            Tenancy::Any { discovery, .. } => discovery,
        };
        let url = format!("{}/.well-known/openid-configuration", base.trim_end_matches('/'));
        let url =
            Url::parse(&url).map_err(|error| misconfigured(format!("the issuer {issuer:?} is not a URL: {error}")))?;
        if is_secure(&url) { Ok(url) } else { Err(misconfigured(format!("the issuer {issuer:?} does not use https"))) }
    }

    /// Reads the discovery document of a configured issuer.
    ///
    /// # Errors
    /// [`ProviderError::Misconfigured`] if the document is malformed, names another issuer, or
    /// contains a URL that is not secure.
    pub fn parse(issuer: &str, body: &[u8]) -> Result<Self, ProviderError> {
        let document: Map<String, Value> = serde_json::from_slice(body).map_err(|_| {
            misconfigured(format!("the discovery document of {issuer:?} is not a JSON object; check the issuer"))
        })?;
        let document = Document::deserialize(Value::Object(document)).map_err(|error| {
            misconfigured(format!("the discovery document of {issuer:?} is not complete: {error}; check the issuer"))
        })?;
        let expected = match Tenancy::of(issuer) {
            Tenancy::Single => issuer.to_owned(),
            Tenancy::Any { template, .. } => template,
        };
        // The tenant of personal accounts has a discovery document that names its id.
        let is_same =
            document.issuer == expected || (issuer.contains("/consumers/") && same_host(&document.issuer, issuer));
        if !is_same {
            return Err(misconfigured(format!(
                "the discovery document names the issuer {:?}; write exactly this as \"issuer\" instead of {issuer:?}, if \
                 it is the provider's",
                beginning(&document.issuer)
            )));
        }
        let is_local = Url::parse(&document.issuer.replace("{tenantid}", "common")).is_ok_and(|url| is_loopback(&url));
        let endpoint = |name: &str, text: String| endpoint(name, &text, is_local);
        let optional = |name: &str, text: Option<String>| text.map(|text| endpoint(name, text)).transpose();
        Ok(Self {
            authorization_endpoint: optional("authorization_endpoint", document.authorization_endpoint)?,
            token_endpoint: optional("token_endpoint", document.token_endpoint)?,
            userinfo_endpoint: optional("userinfo_endpoint", document.userinfo_endpoint)?,
            end_session_endpoint: optional("end_session_endpoint", document.end_session_endpoint)?,
            jwks_uri: endpoint("jwks_uri", document.jwks_uri)?,
            names_itself: document.authorization_response_iss_parameter_supported,
            authentication: authentication(document.token_endpoint_auth_methods_supported.as_deref()),
            issuer: document.issuer,
        })
    }
}

/// Returns how to authenticate. In the form if possible: implementations differ in how they decode
/// special characters in the header. Without a list, only the header is supported (section 3 of
/// the specification of discovery documents).
fn authentication(methods: Option<&[String]>) -> Option<ClientAuthentication> {
    let Some(methods) = methods else { return Some(ClientAuthentication::Header) };
    let supports = |method: &str| methods.iter().any(|supported| supported == method);
    if supports("client_secret_post") {
        Some(ClientAuthentication::Form)
    } else if supports("client_secret_basic") {
        Some(ClientAuthentication::Header)
    } else {
        None
    }
}

/// Checks a URL. `http` is allowed on this machine only, and only for issuers on this machine.
fn endpoint(name: &str, text: &str, is_local: bool) -> Result<Url, ProviderError> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL_BYTES);
    let url = url.filter(|url| is_secure(url) && !has_extras(url) && (url.scheme() == "https" || is_local));
    url.ok_or_else(|| {
        misconfigured(format!("{name} in the discovery document is {:?}, which is not an https URL", beginning(text)))
    })
}

fn same_host(left: &str, right: &str) -> bool {
    let host = |text: &str| Url::parse(text).ok().and_then(|url| url.host_str().map(str::to_owned));
    host(left).is_some() && host(left) == host(right)
}

fn beginning(text: &str) -> String {
    text.chars().take(200).collect()
}

fn misconfigured(reason: String) -> ProviderError {
    ProviderError::Misconfigured(reason)
}

#[cfg(test)]
mod tests;
