//! Checks that a configuration can work, and is safe.

use std::collections::BTreeSet;

use url::Url;

use super::error::ConfigurationError;
use super::issuer_kind::{
    TENANT_PLACEHOLDER, Tenancy, is_entra, is_github_actions, is_okta, narrowing_claims, narrowing_machine_claims,
};
use super::{ClaimRule, Configuration, MAX_USER_NAME_BYTES, MachineRule, Provider, RoleRule, RoleTarget};
use crate::keys::KeySet;
use crate::urls::{MAX_URL_BYTES, has_extras, is_secure};

/// Maximum numbers of origins, providers, machine rules, rules of a provider, values of a rule, and
/// scopes.
const MAX_ORIGINS: usize = 10;
const MAX_PROVIDERS: usize = 20;
const MAX_MACHINES: usize = 100;
const MAX_RULES: usize = 500;
const MAX_VALUES: usize = 200;
const MAX_SCOPES: usize = 20;
/// Maximum lengths in bytes.
const MAX_NAME_BYTES: usize = 32;
const MAX_TITLE_BYTES: usize = 100;
const MAX_TEXT_BYTES: usize = 1000;
/// Ranges of numbers.
const MAX_RENEWAL_MINUTES: u32 = 24 * 60;
const MAX_GRACE_MINUTES: u32 = 24 * 60;
const MAX_TOKEN_DAYS: u32 = 365;
const MAX_MACHINE_MINUTES: u32 = 60;
/// What tokens of machines may do.
const RESTRICTIONS: [&str; 3] = ["everything", "read", "ingest"];
/// Prefix of the names of roles that hold the grants of one user.
const RESERVED_ROLE_PREFIX: &str = "__user_";
/// Parameters of the request for authorization that the server sets.
const RESERVED_PARAMETERS: [&str; 11] = [
    "client_id",
    "client_secret",
    "code_challenge",
    "code_challenge_method",
    "nonce",
    "redirect_uri",
    "request",
    "request_uri",
    "response_mode",
    "response_type",
    "state",
];

type Checked = Result<(), ConfigurationError>;

impl Configuration {
    /// Checks the configuration, without requests to providers: names, URLs, ranges, and that
    /// providers at which anyone can have an account admit only people that a rule names.
    ///
    /// # Errors
    /// A [`ConfigurationError`] about the first problem.
    pub fn validate(&self) -> Checked {
        check_origins(&self.origins)?;
        in_range("renewal_minutes", self.renewal_minutes, 1, MAX_RENEWAL_MINUTES)?;
        in_range("grace_minutes", self.grace_minutes, 0, MAX_GRACE_MINUTES)?;
        in_range("token_days", self.token_days, 1, MAX_TOKEN_DAYS)?;
        at_most("providers", self.providers.len(), MAX_PROVIDERS)?;
        at_most("machines", self.machines.len(), MAX_MACHINES)?;
        unique("providers", self.providers.iter().map(|provider| provider.name.as_str()))?;
        unique("machine rules", self.machines.iter().map(|rule| rule.name.as_str()))?;
        for provider in &self.providers {
            check_provider(provider).map_err(|error| inside(&format!("provider \"{}\"", provider.name), &error))?;
        }
        let mut issuers = BTreeSet::new();
        for provider in &self.providers {
            if !issuers.insert(&provider.issuer) {
                return refuse(format!(
                    "provider \"{}\": another provider has the issuer \"{}\"; merge the two",
                    provider.name, provider.issuer
                ));
            }
        }
        for rule in &self.machines {
            check_machine(rule).map_err(|error| inside(&format!("machine rule \"{}\"", rule.name), &error))?;
        }
        Ok(())
    }
}

fn check_origins(origins: &[String]) -> Checked {
    if origins.is_empty() {
        return refuse("\"origins\" is empty; name the URL of the server, such as \"https://mlflow.example.com\"");
    }
    at_most("origins", origins.len(), MAX_ORIGINS)?;
    for origin in origins {
        let url = url(origin).map_err(|error| inside(&format!("origin \"{origin}\""), &error))?;
        if !is_secure(&url) {
            return refuse(format!(
                "origin \"{origin}\" has to begin with \"https://\" (\"http://\" only for localhost)"
            ));
        }
        let expected = url.origin().ascii_serialization();
        if *origin != expected {
            return refuse(format!("origin \"{origin}\" has to be written as \"{expected}\""));
        }
    }
    unique("origins", origins.iter().map(String::as_str))
}

fn check_provider(provider: &Provider) -> Checked {
    check_name(&provider.name)?;
    text("title", &provider.title, MAX_TITLE_BYTES)?;
    check_issuer(&provider.issuer)?;
    text("client_id", &provider.client_id, MAX_TEXT_BYTES)?;
    at_most("scopes", provider.scopes.len(), MAX_SCOPES)?;
    for scope in &provider.scopes {
        text("scopes", scope, MAX_TEXT_BYTES)?;
        if scope.contains([' ', '"', '\\']) {
            return refuse(format!("scope \"{scope}\" contains a space or a quote; write each scope as its own text"));
        }
    }
    at_most("authorize", provider.authorize.len(), MAX_SCOPES)?;
    for (name, value) in &provider.authorize {
        text("authorize", name, MAX_NAME_BYTES)?;
        text(name, value, MAX_TEXT_BYTES)?;
        if RESERVED_PARAMETERS.contains(&name.as_str()) || name == "scope" {
            return refuse(format!("\"authorize\" cannot set \"{name}\", which the server sets; remove it"));
        }
    }
    text("name_claim", &provider.name_claim, MAX_TEXT_BYTES)?;
    check_conditions(&provider.require)?;
    at_most("roles", provider.roles.len(), MAX_RULES)?;
    provider.roles.iter().try_for_each(check_role_rule)?;
    if provider.sign_out && is_okta(&provider.issuer) {
        return refuse(
            "\"sign_out\" cannot be used with Okta, which requires an ID token that the server does not store; remove it",
        );
    }
    let Some((issuer, claims)) = narrowing_claims(&provider.issuer) else { return Ok(()) };
    if provider.require.iter().any(|rule| claims.contains(&rule.claim.as_str())) {
        return Ok(());
    }
    refuse(format!("anyone can have an account at {issuer}; add a \"require\" rule for the claim {}", either(claims)))
}

fn check_machine(rule: &MachineRule) -> Checked {
    check_name(&rule.name)?;
    check_issuer(&rule.issuer)?;
    if Tenancy::of(&rule.issuer) != Tenancy::Single {
        return refuse("the issuer stands for all tenants of Entra; name the tenant's id");
    }
    text("audience", &rule.audience, MAX_TEXT_BYTES)?;
    text("user", &rule.user, MAX_USER_NAME_BYTES)?;
    if rule.require.is_empty() {
        return refuse("\"require\" is empty; name the claims that identify the machine");
    }
    check_conditions(&rule.require)?;
    let names = |claim: &str| rule.require.iter().any(|condition| condition.claim == claim);
    if is_github_actions(&rule.issuer) && names("sub") {
        return refuse(
            "the claim \"sub\" of GitHub has several forms; require \"repository_id\", and \"ref\" or \"environment\"",
        );
    }
    if let Some((issuer, claims)) = narrowing_machine_claims(&rule.issuer)
        && !claims.iter().any(|claim| names(claim))
    {
        return refuse(format!("anyone can obtain a token of {issuer}; require the claim {}", either(claims)));
    }
    if let Some(keys) = &rule.keys {
        let keys = KeySet::parse(keys);
        if keys.is_none_or(|keys| keys.is_empty()) {
            return refuse(
                "\"keys\" has no key that can be used; paste the issuer's JWK set with RSA, EC or Ed25519 keys",
            );
        }
    }
    if !RESTRICTIONS.contains(&rule.only.as_str()) {
        return refuse(format!("\"only\" cannot be \"{}\"; write {}", rule.only, either(&RESTRICTIONS)));
    }
    if let Some(experiment) = &rule.experiment
        && (experiment.is_empty() || experiment.len() > 32 || !experiment.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return refuse(format!("\"experiment\" is \"{experiment}\"; write the experiment's id, a number in quotes"));
    }
    in_range("minutes", rule.minutes, 1, MAX_MACHINE_MINUTES)
}

fn check_conditions(rules: &[ClaimRule]) -> Checked {
    at_most("require", rules.len(), MAX_RULES)?;
    rules.iter().try_for_each(|rule| check_condition(&rule.claim, &rule.values))
}

fn check_role_rule(rule: &RoleRule) -> Checked {
    check_condition(&rule.claim, &rule.values)?;
    let RoleTarget::Role { role, workspace } = &rule.gives else { return Ok(()) };
    text("role", role, MAX_TEXT_BYTES)?;
    if role.starts_with(RESERVED_ROLE_PREFIX) {
        return refuse(format!(
            "role \"{role}\" has the reserved prefix \"{RESERVED_ROLE_PREFIX}\"; choose another role"
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(2..=63).contains(&workspace.len()) || !workspace.bytes().all(is_plain) {
        return refuse(format!("workspace \"{workspace}\" cannot exist; write the name of the role's workspace"));
    }
    Ok(())
}

fn check_condition(claim: &str, values: &[String]) -> Checked {
    text("claim", claim, MAX_TEXT_BYTES)?;
    if values.is_empty() {
        return refuse(format!("the rule for the claim \"{claim}\" has no values; add at least one to \"values\""));
    }
    at_most("values", values.len(), MAX_VALUES)?;
    values.iter().try_for_each(|value| text("values", value, MAX_TEXT_BYTES))
}

fn check_issuer(issuer: &str) -> Checked {
    let has_tenant = issuer.contains(TENANT_PLACEHOLDER);
    let url = url(&issuer.replace(TENANT_PLACEHOLDER, "common"))
        .map_err(|error| inside(&format!("issuer \"{issuer}\""), &error))?;
    if has_tenant && !is_entra(issuer) {
        return refuse(format!("issuer \"{issuer}\" contains {TENANT_PLACEHOLDER}, which only Entra has"));
    }
    if !is_secure(&url) {
        return refuse(format!("issuer \"{issuer}\" has to begin with \"https://\" (\"http://\" only for localhost)"));
    }
    if has_extras(&url) || url.query().is_some() {
        return refuse(format!("issuer \"{issuer}\" must not contain credentials, a query or a fragment"));
    }
    if issuer.ends_with("/.well-known/openid-configuration") {
        return refuse(format!("issuer \"{issuer}\" is the URL of the discovery document; remove \"/.well-known/…\""));
    }
    Ok(())
}

fn url(text: &str) -> Result<Url, ConfigurationError> {
    if text.len() > MAX_URL_BYTES {
        return Err(ConfigurationError::new(format!("the URL is longer than {MAX_URL_BYTES} bytes")));
    }
    if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err(ConfigurationError::new("the URL contains a space; remove it"));
    }
    Url::parse(text).map_err(|error| ConfigurationError::new(format!("it is not a URL ({error}); write \"https://…\"")))
}

fn check_name(name: &str) -> Checked {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    refuse(format!("the name has to consist of 1 to {MAX_NAME_BYTES} lower-case letters, digits and hyphens"))
}

/// Checks a text that must not be empty.
fn text(key: &str, text: &str, longest: usize) -> Checked {
    if text.trim().is_empty() {
        return refuse(format!("\"{key}\" is empty; fill it in"));
    }
    if text.len() > longest {
        return refuse(format!("\"{key}\" is longer than {longest} bytes; shorten it"));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return refuse(format!("\"{key}\" begins or ends with a space, or contains a control character; remove it"));
    }
    Ok(())
}

fn in_range(key: &str, value: u32, least: u32, most: u32) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(format!("\"{key}\" is {value}; write a number from {least} to {most}"))
}

fn at_most(key: &str, count: usize, most: usize) -> Checked {
    if count <= most {
        return Ok(());
    }
    refuse(format!("\"{key}\" has {count} items, but may have at most {most}"))
}

fn unique<'a>(things: &str, names: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return refuse(format!("two {things} are named \"{name}\"; rename or remove one"));
        }
    }
    Ok(())
}

fn either(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ")
}

fn inside(place: &str, error: &ConfigurationError) -> ConfigurationError {
    ConfigurationError::new(format!("{place}: {}", error.message))
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ConfigurationError> {
    Err(ConfigurationError::new(message))
}
