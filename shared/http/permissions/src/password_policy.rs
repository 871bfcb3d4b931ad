//! Which users may authenticate with a password.

use std::collections::BTreeSet;

use access::User;
use mlflow_api::UserName;

/// Which users may authenticate with a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PasswordPolicy {
    /// Every user who has a password.
    #[default]
    Everyone,
    /// Only these users, and each of them only while being an administrator of the server. For
    /// servers on which people sign in with an identity provider: the administrators can still sign
    /// in if the provider or its configuration fails.
    Administrators(BTreeSet<UserName>),
}

impl PasswordPolicy {
    /// Parses the policy from settings: `passwords` is `on` or `off`, and `administrators` is a
    /// comma-separated list of the administrators who keep their passwords if it is `off`. `None`
    /// and an empty text count as `on` and as no administrators.
    ///
    /// # Errors
    /// Returns a sentence that names the invalid value.
    pub fn parse(passwords: Option<&str>, administrators: Option<&str>) -> Result<Self, String> {
        let names = administrators.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
        let names = names
            .map(|name| UserName::new(name).map_err(|error| format!("`{name}` is not a user name: {}", error.message)))
            .collect::<Result<BTreeSet<_>, _>>()?;
        match passwords.unwrap_or_default() {
            "off" => Ok(Self::Administrators(names)),
            "" | "on" if names.is_empty() => Ok(Self::Everyone),
            "" | "on" => Err("administrators who keep their passwords are named, but passwords are on".to_owned()),
            other => Err(format!("passwords are `on` or `off`, not `{other}`")),
        }
    }

    /// Checks whether a user may authenticate with a password.
    #[must_use]
    pub fn allows(&self, user: &User) -> bool {
        match self {
            Self::Everyone => true,
            Self::Administrators(names) => user.is_admin && names.contains(&user.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, is_admin: bool) -> User {
        User { name: UserName::named(name).unwrap(), id: 1, is_admin, roles: Vec::new(), version: 1 }
    }

    #[test]
    fn only_named_administrators_keep_their_passwords() {
        let policy = PasswordPolicy::parse(Some("off"), Some("ann, bob,")).unwrap();
        assert!(policy.allows(&user("ann", true)) && policy.allows(&user("bob", true)));
        assert!(!policy.allows(&user("ann", false)) && !policy.allows(&user("carl", true)));
        let nobody = PasswordPolicy::parse(Some("off"), None).unwrap();
        assert!(!nobody.allows(&user("ann", true)));
        for on in [None, Some(""), Some("on")] {
            assert_eq!(PasswordPolicy::parse(on, Some("")), Ok(PasswordPolicy::Everyone));
        }
        assert!(PasswordPolicy::Everyone.allows(&user("carl", false)));
    }

    #[test]
    fn a_setting_that_cannot_be_meant_is_refused() {
        for (passwords, administrators, part) in [
            (Some("no"), None, "`no`"),
            (Some("Off"), None, "`Off`"),
            (Some("off"), Some("a:b"), "`a:b`"),
            (None, Some("ann"), "passwords are on"),
        ] {
            let error = PasswordPolicy::parse(passwords, administrators).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
