//! Names in the registry of skills.

use std::fmt;

use crate::error::{Error, Result};
use crate::python::repr;

/// Maximum length of the name of a skill, in characters (`MAX_SKILL_NAME_LENGTH`).
const MAX_NAME_LENGTH: usize = 64;
/// Maximum length of an organization, in characters (`MAX_ORGANIZATION_NAME_LENGTH`).
const MAX_ORGANIZATION_LENGTH: usize = 64;

/// The name of a skill, with the organization that the skill belongs to. As a text, it is `name` or
/// `@organization/name`. Names are ordered by organization, and names without one come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillName {
    organization: String,
    name: String,
}

impl SkillName {
    /// Checks an organization and a name (`_validate_skill_path_identity`), and returns them as one
    /// value. The organization is empty for a skill without one.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses one of the two.
    pub fn new(organization: &str, name: &str) -> Result<Self> {
        check_organization(organization)?;
        check_name(name)?;
        Ok(Self { organization: organization.to_owned(), name: name.to_owned() })
    }

    /// Parses `name` or `@organization/name` (`_parse_skill_identities`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for a text that MLflow refuses.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix('@') else { return Self::new("", text) };
        match rest.split_once('/') {
            Some((organization, name)) if !organization.is_empty() => Self::new(organization, name),
            _ => Err(Error::invalid("Skill identities must be 'name' or '@organization/name'.")),
        }
    }

    /// Returns the organization, which is empty for a skill without one.
    #[must_use]
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Returns the name within the organization.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a text for sort keys. Sorting these texts by their bytes sorts the names, because
    /// the separator between organization and name is smaller than all characters of organizations.
    #[must_use]
    pub fn sort_key(&self) -> String {
        format!("{}!{}", self.organization, self.name)
    }

    /// Parses a text that [`SkillName::sort_key`] has returned.
    #[must_use]
    pub fn of_sort_key(text: &str) -> Option<Self> {
        let (organization, name) = text.split_once('!')?;
        Self::new(organization, name).ok()
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.organization.is_empty() {
            write!(formatter, "@{}/", self.organization)?;
        }
        formatter.write_str(&self.name)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("Skill name must not be empty."));
    }
    if !is_name(name, &['-']) {
        return Err(Error::invalid(format!(
            "Invalid skill name {}. Names must be 1-64 lowercase ASCII letters, digits, and hyphens; cannot begin or end \
             with a hyphen; and cannot contain consecutive hyphens.",
            repr(name)
        )));
    }
    at_most("Skill name", MAX_NAME_LENGTH, name)
}

fn check_organization(organization: &str) -> Result<()> {
    if organization.is_empty() {
        return Ok(());
    }
    if !is_name(organization, &['-', '.']) {
        return Err(Error::invalid(format!(
            "Invalid organization name {}. Organizations must be 1-64 lowercase ASCII letters, digits, hyphens, and \
             periods; must have alphanumeric first and last characters; and cannot contain consecutive hyphens or \
             periods.",
            repr(organization)
        )));
    }
    at_most("Organization name", MAX_ORGANIZATION_LENGTH, organization)
}

/// Checks whether a text consists of lowercase letters and digits, separated by single separators.
fn is_name(text: &str, separators: &[char]) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.split(separators).all(is_part)
}

fn at_most(what: &str, most: usize, text: &str) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Error::invalid(format!("'{what}' exceeds the maximum length of {most} characters")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_an_organization() {
        for text in ["a", "code-review", "a1-2", "@acme/a", "@acme.io/a", "@a-b.c/versions"] {
            assert_eq!(SkillName::parse(text).unwrap().to_string(), text);
        }
        let long = "a".repeat(65);
        for text in [
            "", "A", "-a", "a-", "a--b", "a.b", "a_b", "a/b", "@", "@/a", "@acme", "@acme/", "@Acme/a", "@a..b/a",
            &long,
        ] {
            assert!(SkillName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_have_the_order_of_their_keys() {
        let ordered = ["a", "a-b", "b", "@a/z", "@a-b/a", "@a.b/a", "@a.b/a-b", "@a0/a", "@ab/a"];
        let names: Vec<_> = ordered.iter().map(|text| SkillName::parse(text).unwrap()).collect();
        for pair in names.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].sort_key() < pair[1].sort_key(), "{pair:?}");
        }
        for name in names {
            assert_eq!(SkillName::of_sort_key(&name.sort_key()), Some(name));
        }
    }
}
