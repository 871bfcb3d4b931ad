//! Issuers that are treated specially: those at which anyone can have an account, Entra, one
//! discovery document of which serves many issuers, and Okta, at which users cannot be signed out.

use url::Url;

/// The placeholder for the tenant in the issuer of Entra's discovery documents.
pub(crate) const TENANT_PLACEHOLDER: &str = "{tenantid}";
/// Hosts of Entra, in the global and in the national clouds.
const ENTRA_HOSTS: [&str; 4] =
    ["login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn", "sts.windows.net"];
/// Domains of Okta's organizations.
const OKTA_DOMAINS: [&str; 3] = [".okta.com", ".oktapreview.com", ".okta-emea.com"];
/// Names that stand for tenants in Entra's URLs.
const ENTRA_ALIASES: [&str; 3] = ["common", "organizations", "consumers"];

/// Whether the issuer in the configuration stands for one issuer or for many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tenancy {
    /// The issuer is the claim `iss`.
    Single,
    /// Entra's issuers of all tenants.
    Any {
        /// URL that takes the place of the issuer when the discovery document is fetched.
        discovery: String,
        /// The issuer of tokens, with [`TENANT_PLACEHOLDER`].
        template: String,
    },
}

impl Tenancy {
    /// Returns the tenancy of a configured issuer.
    pub(crate) fn of(issuer: &str) -> Self {
        if !is_entra(issuer) {
            return Self::Single;
        }
        if issuer.contains(TENANT_PLACEHOLDER) {
            let discovery = issuer.replace(TENANT_PLACEHOLDER, "common");
            return Self::Any { discovery, template: issuer.to_owned() };
        }
        let alias = ENTRA_ALIASES.iter().map(|alias| format!("/{alias}/")).find(|alias| issuer.contains(alias));
        match alias {
            Some(alias) => Self::Any {
                discovery: issuer.to_owned(),
                template: issuer.replace(&alias, &format!("/{TENANT_PLACEHOLDER}/")),
            },
            None => Self::Single,
        }
    }
}

/// Checks whether an issuer is a tenant of Entra, or all of them.
pub(crate) fn is_entra(issuer: &str) -> bool {
    host(issuer).is_some_and(|host| ENTRA_HOSTS.contains(&host.as_str()))
}

/// Checks whether an issuer is an organization of Okta. Custom domains are not recognized.
pub(crate) fn is_okta(issuer: &str) -> bool {
    host(issuer).is_some_and(|host| OKTA_DOMAINS.iter().any(|domain| host.ends_with(domain)))
}

/// Returns the issuer that a token with this tenant (`tid`) has to have, or `None` if it has to have
/// a tenant and has none.
pub(crate) fn expected_issuer(template: &str, tenant: Option<&str>) -> Option<String> {
    if !template.contains(TENANT_PLACEHOLDER) {
        return Some(template.to_owned());
    }
    // A tenant id is a UUID. Anything else could complete the template to another issuer.
    let is_id = |tenant: &&str| {
        (1..=64).contains(&tenant.len()) && tenant.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    tenant.filter(is_id).map(|tenant| template.replace(TENANT_PLACEHOLDER, tenant))
}

/// Returns the claims of which a provider's `require` has to name at least one, and the name of the
/// issuer, if anyone can have an account there.
pub(crate) fn narrowing_claims(issuer: &str) -> Option<(&'static str, &'static [&'static str])> {
    if Tenancy::of(issuer) != Tenancy::Single {
        return Some(("Entra with accounts of any tenant", &["tid"]));
    }
    match host(issuer)?.as_str() {
        "accounts.google.com" => Some(("Google", &["hd", "sub"])),
        "gitlab.com" => Some(("GitLab", &["groups_direct", "groups", "sub"])),
        "github.com" => Some(("GitHub", &["sub"])),
        "appleid.apple.com" => Some(("Apple", &["sub"])),
        "www.linkedin.com" => Some(("LinkedIn", &["sub"])),
        // The tenant of personal Microsoft accounts.
        _ if is_entra(issuer) && issuer.contains("/9188040d-6c67-4c5b-b112-36a304b66dad/") => {
            Some(("Microsoft with personal accounts", &["oid", "sub"]))
        }
        _ => None,
    }
}

/// Returns the claims of which a machine rule's `require` has to name at least one, and the name of
/// the issuer, if anyone can obtain a token there.
pub(crate) fn narrowing_machine_claims(issuer: &str) -> Option<(&'static str, &'static [&'static str])> {
    match host(issuer)?.as_str() {
        "token.actions.githubusercontent.com" => {
            Some(("GitHub Actions", &["repository_id", "repository_owner_id", "enterprise_id"]))
        }
        "gitlab.com" => Some(("GitLab", &["project_id", "namespace_id", "project_path", "namespace_path", "sub"])),
        "accounts.google.com" => Some(("Google", &["sub", "email"])),
        _ => None,
    }
}

/// Checks whether an issuer is that of GitHub Actions.
pub(crate) fn is_github_actions(issuer: &str) -> bool {
    host(issuer).is_some_and(|host| host == "token.actions.githubusercontent.com")
}

fn host(issuer: &str) -> Option<String> {
    Url::parse(&issuer.replace(TENANT_PLACEHOLDER, "common")).ok()?.host_str().map(str::to_ascii_lowercase)
}
