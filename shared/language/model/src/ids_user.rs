//! Names of users.

use std::fmt;

use crate::error::{Error, Result};

/// The name of a user. It is not empty, contains no control characters, and has at most
/// [`UserName::MAX_BYTES`] bytes, so that a key can contain the whole name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// Maximum length of a name, in bytes. A name of this length fits into a key in any encoding,
    /// so no two names share a key.
    pub const MAX_BYTES: usize = 200;

    /// Parses the name of a user in a request. The user does not have to exist.
    ///
    /// Returns `None` for a text that cannot be the name of a user.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        let is_name = !text.is_empty() && text.len() <= Self::MAX_BYTES && !text.chars().any(char::is_control);
        is_name.then(|| Self(text.to_owned()))
    }

    /// Parses the name of a new user.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the name is not allowed. MLflow also accepts longer
    /// names, and names that no client can send, because HTTP Basic authentication splits the
    /// credentials at the first colon.
    pub fn new(text: &str) -> Result<Self> {
        let name = Self::named(text).filter(|_| !text.contains(':'));
        name.ok_or_else(|| {
            Error::invalid(format!(
                "Username must have 1 to {} bytes, without colons and control characters.",
                Self::MAX_BYTES
            ))
        })
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the error for a user that does not exist.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("User with username={text} not found"))
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let longest = "é".repeat(100);
        assert_eq!(UserName::new(&longest).unwrap().as_str(), longest);
        for wrong in ["", "a:b", "a\nb", &format!("{longest}x")] {
            assert!(UserName::new(wrong).is_err(), "{wrong}");
        }
        assert!(UserName::named("a:b").is_some() && UserName::named("").is_none());
    }
}
