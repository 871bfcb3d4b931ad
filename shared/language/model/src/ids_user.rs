//! Names of users.

use std::fmt;

use crate::error::{Error, Result};

/// The name of a user. It is not empty, has no control characters, and at most
/// [`UserName::LONGEST`] bytes, so that it fits whole into a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// The longest name, in bytes. A key has room for it, however it is encoded: no two names share a key.
    pub const LONGEST: usize = 200;

    /// The name of a user in a request. There may be no such user.
    ///
    /// `None` for a text that is no user's name.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        let is_name = !text.is_empty() && text.len() <= Self::LONGEST && !text.chars().any(char::is_control);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name of a user that is to be made.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE`. MLflow takes longer names, and such as no client can send: HTTP's Basic scheme cuts a name at the first colon.
    pub fn new(text: &str) -> Result<Self> {
        let name = Self::named(text).filter(|_| !text.contains(':'));
        name.ok_or_else(|| {
            Error::invalid(format!(
                "Username must have 1 to {} bytes, without colons and control characters.",
                Self::LONGEST
            ))
        })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The error for a user who is not there.
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
