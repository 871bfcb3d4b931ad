//! Names and versions in the registry of MCP servers.

use std::cmp::Ordering;
use std::fmt;
use std::fmt::Write as _;

use crate::error::{Error, Result};

/// Slugs that no server may have, because they are parts of paths (`_MCP_SERVER_RESERVED_SLUGS`).
const RESERVED_SLUGS: [&str; 4] = ["aliases", "endpoints", "tags", "versions"];
/// Maximum length of a name, in characters, as in MLflow's database.
const MAX_NAME_LENGTH: usize = 256;
/// Maximum length of a version, in characters (`_MAX_SEMVER_LENGTH`).
const MAX_VERSION_LENGTH: usize = 128;
/// Maximum of each of a version's three numbers (`_MAX_SEMVER_CORE_VALUE`).
const MAX_VERSION_NUMBER: u64 = 2_147_483_647;

/// The name of an MCP server: a namespace and a slug, such as `com.example/search`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct McpServerName(String);

impl McpServerName {
    /// Parses a name (`validate_mcp_server_name`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("MCP server name must not be empty"));
        }
        if !is_name(text) {
            return Err(Error::invalid(
                "Invalid MCP server name. Expected '<reverse-dns namespace>/<server slug>' such as \
                 'com.example/server-name'.",
            ));
        }
        if text.len() > MAX_NAME_LENGTH {
            return Err(Error::invalid(format!("The name of an MCP server has at most {MAX_NAME_LENGTH} characters.")));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for McpServerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |part: &str, others: &[char]| {
        let is_edge = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
        let mut characters = part.chars();
        part.len() >= 2
            && is_edge(part.chars().next())
            && is_edge(part.chars().next_back())
            && characters.all(|character| character.is_ascii_alphanumeric() || others.contains(&character))
    };
    text.split_once('/').is_some_and(|(namespace, slug)| {
        is_part(namespace, &['.', '-']) && is_part(slug, &['.', '_', '-']) && !RESERVED_SLUGS.contains(&slug)
    })
}

/// A version of an MCP server: a semantic version (SemVer 2.0.0), as it was written. Versions are
/// ordered by precedence, and then as texts, because build metadata has no precedence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpVersion {
    text: String,
    parsed: semver::Version,
}

impl McpVersion {
    /// Parses a version (`parse_semver`). `what` names the field in error messages.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse(what: &str, text: &str) -> Result<Self> {
        let length = text.chars().count();
        if length > MAX_VERSION_LENGTH {
            return Err(Error::invalid(format!(
                "Invalid semantic version for {what}: '{text}' (maximum length is {MAX_VERSION_LENGTH} characters)"
            )));
        }
        if let Some((label, _)) = oversized_number(text) {
            return Err(Error::invalid(format!(
                "Invalid semantic version for {what}: '{text}' ({label} must be <= {MAX_VERSION_NUMBER})"
            )));
        }
        Self::of(text).ok_or_else(|| Error::invalid(format!("Invalid semantic version for {what}: '{text}'")))
    }

    /// Parses a version, or returns `None` for any other text.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let parsed = semver::Version::parse(text).ok()?;
        let has_bounds = [parsed.major, parsed.minor, parsed.patch].iter().all(|number| *number <= MAX_VERSION_NUMBER);
        (text.len() <= MAX_VERSION_LENGTH && has_bounds).then(|| Self { text: text.to_owned(), parsed })
    }

    /// Returns the version as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns a text whose byte order is the precedence of versions: the three numbers with ten
    /// digits each, and the prerelease. It ends with `~` or `!`, and contains no `#`.
    ///
    /// A release is encoded as `~`, and the identifiers of a prerelease as `-0<length><digits>!` for
    /// numbers and `-1<text>!` for others. `!` is smaller than all characters of identifiers, so
    /// that `alpha` sorts before `alpha-1` and `alpha.1`. The end of the list is another `!`.
    #[must_use]
    pub fn precedence_key(&self) -> String {
        let semver::Version { major, minor, patch, pre, .. } = &self.parsed;
        let mut key = format!("{major:010}.{minor:010}.{patch:010}.");
        if pre.is_empty() {
            key.push('~');
            return key;
        }
        for identifier in pre.split('.') {
            key.push('-');
            if identifier.bytes().all(|byte| byte.is_ascii_digit()) {
                let length = identifier.len();
                let _ = write!(key, "0{length:03}");
            } else {
                key.push('1');
            }
            key.push_str(identifier);
            key.push('!');
        }
        key.push('!');
        key
    }

    /// Compares two versions by precedence alone. Versions that differ only in build metadata are
    /// equal.
    #[must_use]
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.parsed.cmp_precedence(&other.parsed)
    }

    /// Returns MLflow's error for a version that does not exist. The version may be any text.
    #[must_use]
    pub fn not_found(server: &str, version: &str) -> Error {
        Error::not_found(format!("MCP server version '{server}' version '{version}' not found"))
    }
}

impl PartialOrd for McpVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for McpVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_precedence(other).then_with(|| self.text.cmp(&other.text))
    }
}

impl fmt::Display for McpVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Returns the first number of an otherwise valid version that is too large, with its label.
fn oversized_number(text: &str) -> Option<(&'static str, &str)> {
    let core = text.split(['-', '+']).next()?;
    let numbers: Vec<_> = core.split('.').collect();
    let replaced = numbers.iter().map(|number| if is_number(number) && number.len() > 9 { "1" } else { *number });
    let replaced = replaced.collect::<Vec<_>>().join(".");
    semver::Version::parse(&format!("{replaced}{}", text.get(core.len()..)?)).ok()?;
    let is_large = |number: &str| number.parse::<u64>().map_or(true, |number| number > MAX_VERSION_NUMBER);
    ["major", "minor", "patch"].into_iter().zip(numbers).find(|(_, number)| is_large(number))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_namespace_and_a_slug() {
        for name in ["com.example/server-name", "io.github.user/a_b.c", "ab/cd", "A-1/b2"] {
            assert!(McpServerName::parse(name).is_ok(), "{name}");
        }
        let long = format!("com.example/{}", "x".repeat(245));
        for name in
            ["", "a", "a/b", "ab/", "/ab", "ab/cd/ef", "a_b/cd", "ab/-cd", "ab/cd.", "com.x/tags", "ab/ç1", &long]
        {
            assert!(McpServerName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn versions_have_the_order_of_semver() {
        let version = |text: &str| McpVersion::parse("v", text).unwrap();
        let ordered = [
            "0.9.10",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-alpha-1",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.0+a",
            "1.0.0+b",
            "1.0.1",
            "1.1.0",
            "2.0.0-0",
            "10.0.0",
        ];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert!(version("1.0.0+a").cmp_precedence(&version("1.0.0+b")).is_eq());
    }

    #[test]
    fn other_texts_are_refused_as_in_mlflow() {
        let message = |text: &str| McpVersion::parse("version", text).unwrap_err().message;
        for text in
            ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-01", "1.0.0-", "1.0.0+", "1.0.0 ", "٢.0.0", "1.0.0-a..b"]
        {
            assert_eq!(message(text), format!("Invalid semantic version for version: '{text}'"));
        }
        for (text, label) in [("2147483648.0.0", "major"), ("1.99999999999999999999999.0-a", "minor")] {
            assert_eq!(
                message(text),
                format!("Invalid semantic version for version: '{text}' ({label} must be <= 2147483647)")
            );
        }
        assert!(McpVersion::parse("version", "2147483647.0.0").is_ok());
        assert!(message(&format!("1.0.0-{}", "a".repeat(123))).ends_with("(maximum length is 128 characters)"));
    }
}
