//! Claims of a person or a machine.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum length in bytes of a claim that identifies a person.
const MAX_IDENTIFIER_BYTES: usize = 255;

/// Claims of a verified token, or of the provider's userinfo endpoint.
///
/// `Debug` prints the names of the claims only, because the values are personal data.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Claims(Map<String, Value>);

/// Why the claims of a person do not suffice. Each message is one sentence without a final period.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimsError {
    /// A claim that identifies the person is missing, or is not a text.
    #[error("the provider did not send the claim \"{claim}\"; request a scope that contains it")]
    Missing {
        /// Name of the claim.
        claim: String,
    },
    /// A claim that identifies or names the person has a value that cannot be used.
    #[error("the claim \"{claim}\" {reason}")]
    Unusable {
        /// Name of the claim.
        claim: String,
        /// What is wrong with the value.
        reason: &'static str,
    },
    /// The provider left out a claim because its value is too long, as Entra does above 200 groups.
    #[error(
        "the provider left out the claim \"{claim}\", because its value is too long; use app roles, or groups assigned \
         to the application"
    )]
    Overflow {
        /// Name of the claim.
        claim: String,
    },
    /// The person does not satisfy a condition of the provider's `require`.
    #[error("your account is not admitted: the claim \"{claim}\" has none of the required values")]
    NotAdmitted {
        /// Name of the claim.
        claim: String,
    },
    /// The issuer of the token is not the one of the person's tenant.
    #[error("the claim \"tid\" does not match the issuer")]
    OtherTenant,
}

impl Claims {
    /// Returns the claim at a path. A dot leads into an object; a claim whose name contains a dot is
    /// found first.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Value> {
        find(&self.0, path)
    }

    /// Returns the claim at a path if it is a text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// Returns the values of the claim at a path: a list's items, or the claim itself. Numbers and
    /// booleans become their JSON text; objects, `null` and nested lists are left out.
    #[must_use]
    pub fn values(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::Array(items)) => items.iter().filter_map(scalar).collect(),
            Some(value) => scalar(value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Checks whether the provider has left out the claim at a path because its value is too long:
    /// Entra then sends `_claim_names` or `hasgroups` in its place.
    #[must_use]
    pub fn overflows(&self, path: &str) -> bool {
        if self.get(path).is_some() {
            return false;
        }
        let first = path.split('.').next().unwrap_or(path);
        let elsewhere = self.0.get("_claim_names").and_then(Value::as_object);
        let is_elsewhere = elsewhere.is_some_and(|names| names.contains_key(path) || names.contains_key(first));
        let has_groups = self.0.get("hasgroups").is_some_and(|flag| flag == &Value::Bool(true) || flag == "true");
        is_elsewhere || (path == "groups" && has_groups)
    }

    /// Returns the values of a claim that a rule refers to.
    ///
    /// # Errors
    /// [`ClaimsError::Overflow`] if the provider has left out the claim. A claim that is simply
    /// absent has no values.
    pub fn rule_values(&self, path: &str) -> Result<Vec<String>, ClaimsError> {
        if self.overflows(path) {
            return Err(ClaimsError::Overflow { claim: path.to_owned() });
        }
        Ok(self.values(path))
    }

    /// Adds the claims that are missing here. The present ones are kept, because an ID token is
    /// signed and the userinfo endpoint's response is not.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (name, value) in others.0 {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    /// Returns a claim that identifies a person.
    pub(crate) fn identifier(&self, claim: &str) -> Result<&str, ClaimsError> {
        let missing = || ClaimsError::Missing { claim: claim.to_owned() };
        let text = self.0.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty()).ok_or_else(missing)?;
        let unusable = |reason| Err(ClaimsError::Unusable { claim: claim.to_owned(), reason });
        if text.len() > MAX_IDENTIFIER_BYTES {
            return unusable("is too long");
        }
        if text.chars().any(char::is_control) {
            return unusable("contains control characters");
        }
        Ok(text)
    }

    /// Sets a claim that is not a part of a response, but is known.
    pub(crate) fn with(mut self, claim: &str, value: &str) -> Self {
        self.0.entry(claim).or_insert_with(|| Value::from(value));
        self
    }
}

impl From<Map<String, Value>> for Claims {
    fn from(claims: Map<String, Value>) -> Self {
        Self(claims)
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Claims").field(&self.0.keys().collect::<Vec<_>>()).finish()
    }
}

/// Returns the value at a path. Each object is entered at most once, because the parts of the path
/// that lead to it determine the rest.
fn find<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    // Longest names first.
    path.rmatch_indices('.').find_map(|(dot, _)| {
        let (name, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
        find(object.get(name)?.as_object()?, rest)
    })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
