//! Issues: problems that traces exhibit (`issues.proto`, and `issue_utils.py` in MLflow's `utils`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result, python};

/// Maximum length of names, categories and keys of the metadata, in characters.
const MAX_NAME_LENGTH: usize = 250;
/// Maximum length of the name of a user, in characters.
const MAX_USER_LENGTH: usize = 255;
/// Maximum number of categories, of entries of the metadata, and of values of a filter.
const MAX_VALUES: usize = 100;
/// Maximum length of a value of the metadata, in characters.
const MAX_METADATA_VALUE_LENGTH: usize = 65_536;
/// Maximum size of an issue's description, root causes and metadata together, in bytes. MLflow has
/// no limit.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Page size of searches without `max_results`.
pub const DEFAULT_RESULTS: i64 = 100;

/// The status of an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueStatus {
    /// Whether this is an issue has not been decided yet.
    Pending,
    /// It was decided that this is not an issue.
    Rejected,
    /// The issue has been resolved.
    Resolved,
}

/// The severity of an issue, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueSeverity {
    /// Not an issue at all.
    NotAnIssue,
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
}

impl IssueStatus {
    const ALL: [Self; 3] = [Self::Pending, Self::Rejected, Self::Resolved];

    /// Returns MLflow's name of the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Rejected => "rejected",
            Self::Resolved => "resolved",
        }
    }

    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Parses the status in a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if there is no status with this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| invalid("status", name))
    }
}

impl IssueSeverity {
    const ALL: [Self; 4] = [Self::NotAnIssue, Self::Low, Self::Medium, Self::High];

    /// Returns MLflow's name of the severity.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAnIssue => "not_an_issue",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the severity with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }

    /// Parses the severity in a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if there is no severity with this name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| invalid("severity", name))
    }
}

fn invalid(field: &str, value: &str) -> Error {
    Error::invalid(format!("Invalid issue {field}: {}", python::repr(value)))
}

fn is_text(text: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&text.chars().count())
}

/// Checks the name of an issue.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for a name that is empty or too long.
pub fn check_name(name: &str) -> Result<()> {
    if is_text(name) { Ok(()) } else { Err(Error::invalid("Issue name must contain 1 to 250 characters")) }
}

/// Checks the categories of an issue, or the keys of the metadata to delete.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if there are too many, or if one is empty or too long.
pub fn check_texts(field: &str, texts: &[String]) -> Result<()> {
    if texts.len() <= MAX_VALUES && texts.iter().all(|text| is_text(text)) {
        return Ok(());
    }
    Err(Error::invalid(format!("{field} must contain at most 100 nonempty strings of at most 250 characters")))
}

/// Checks the name of the user who has created or changed an issue, as given by a client.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for a name that is too long.
pub fn check_user(field: &str, user: &str) -> Result<()> {
    if user.chars().count() <= MAX_USER_LENGTH { Ok(()) } else { Err(Error::invalid(format!("Invalid {field}"))) }
}

/// Checks the time when an issue was last seen, which is a number of ms, or a text with the digits
/// of such a number.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for any other value.
pub fn check_last_seen(value: &Value) -> Result<()> {
    let is_time = match value {
        Value::Null => true,
        Value::Number(number) => number.as_i64().is_some_and(|time| time >= 0),
        Value::String(text) => {
            python::int(text).and_then(|digits| digits.parse::<i64>().ok()).is_some_and(|time| time >= 0)
        }
        _ => false,
    };
    if is_time { Ok(()) } else { Err(Error::invalid("last_seen_timestamp must be nonnegative milliseconds")) }
}

/// The metadata of an issue.
pub type Metadata = BTreeMap<String, String>;

/// Reads the metadata in a request. A missing value is read as no metadata.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for a value that is not a map of texts within the limits.
pub fn metadata(value: Option<&Value>) -> Result<Metadata> {
    let refused = || Error::invalid("metadata must be a string map with at most 100 entries");
    let entries = match value {
        None | Some(Value::Null) => return Ok(Metadata::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(refused()),
    };
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let metadata: Metadata = entries.iter().map(entry).collect::<Option<_>>().ok_or_else(refused)?;
    check_metadata(&metadata)?;
    Ok(metadata)
}

/// Checks the metadata of an issue.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if there are too many entries, or if one is too long.
pub fn check_metadata(metadata: &Metadata) -> Result<()> {
    let fits = |(key, value): (&String, &String)| is_text(key) && value.chars().count() <= MAX_METADATA_VALUE_LENGTH;
    if metadata.len() <= MAX_VALUES && metadata.iter().all(fits) {
        return Ok(());
    }
    Err(Error::invalid("metadata must be a string map with at most 100 entries"))
}

/// Checks that no key of the metadata is both set and deleted.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if one is.
pub fn check_deleted_keys(metadata: &Metadata, deleted: &[String]) -> Result<()> {
    if deleted.iter().any(|key| metadata.contains_key(key)) {
        return Err(Error::invalid("Cannot update and delete the same key"));
    }
    Ok(())
}

/// Checks the values of a search (`validate_issue_search`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the name is too long or a list has too many values.
pub fn check_search(name: Option<&str>, lists: &[(&str, &[String])]) -> Result<()> {
    if name.is_some_and(|name| name.chars().count() > MAX_NAME_LENGTH) {
        return Err(Error::invalid("name must be a string of at most 250 characters"));
    }
    match lists.iter().find(|(_, values)| values.len() > MAX_VALUES) {
        Some((field, _)) => Err(Error::invalid(format!("{field} must be a list of at most 100 strings"))),
        None => Ok(()),
    }
}

/// Returns the form in which categories are compared: without surrounding white space, and in lower
/// case.
#[must_use]
pub fn folded_category(category: &str) -> String {
    category.trim().to_lowercase()
}

/// An issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The id.
    pub issue_id: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The status.
    pub status: IssueStatus,
    /// The severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<IssueSeverity>,
    /// The root causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub root_causes: Vec<String>,
    /// The id of the run that found the issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_run_id: Option<String>,
    /// The creation time, in ms.
    pub created_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
    /// The user who created the issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The number of traces that exhibit the issue, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_count: Option<i64>,
    /// When the issue was last seen, in ms.
    pub last_seen_timestamp: i64,
    /// The user who last changed the issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_by: Option<String>,
    /// The metadata.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// A response with one issue.
#[derive(Debug, Serialize)]
pub struct IssueResponse {
    /// The issue.
    pub issue: Issue,
}

/// The response of `issues/search`.
#[derive(Debug, Serialize)]
pub struct IssuesResponse {
    /// The issues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    /// The token of the next page, which is empty on the last page.
    pub next_page_token: String,
    /// The number of issues on all pages, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_count: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_a_bounded_map_of_texts() {
        assert_eq!(metadata(Some(&json!({"k": "v"}))).unwrap(), Metadata::from([("k".to_owned(), "v".to_owned())]));
        assert_eq!(metadata(None).unwrap(), Metadata::new());
        let many: serde_json::Map<_, _> = (0..101).map(|key| (key.to_string(), json!(""))).collect();
        for value in
            [json!([]), json!({"k": 1}), json!({"": "v"}), json!({"k": "v".repeat(65_537)}), Value::Object(many)]
        {
            assert!(metadata(Some(&value)).is_err());
        }
        let set = metadata(Some(&json!({"k": "v"}))).unwrap();
        assert!(
            check_deleted_keys(&set, &["k".to_owned()]).is_err() && check_deleted_keys(&set, &["l".to_owned()]).is_ok()
        );
    }

    #[test]
    fn times_are_numbers_or_their_digits() {
        for value in [json!(0), json!("17"), json!(i64::MAX)] {
            assert!(check_last_seen(&value).is_ok(), "{value}");
        }
        for value in [json!(-1), json!(1.5), json!(true), json!("x"), json!("-1"), json!(u64::MAX)] {
            assert!(check_last_seen(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn texts_are_bounded() {
        assert!(check_name("n").is_ok() && check_name("").is_err() && check_name(&"n".repeat(251)).is_err());
        assert!(check_texts("categories", &[String::new()]).is_err());
        assert!(check_texts("categories", &vec!["a".to_owned(); 101]).is_err());
        assert!(check_user("created_by", &"u".repeat(256)).is_err());
        assert_eq!(IssueStatus::parse("open").unwrap_err().message, "Invalid issue status: 'open'");
        assert!(check_search(Some(&"n".repeat(251)), &[]).is_err());
        assert!(check_search(None, &[("statuses", &vec![String::new(); 101])]).is_err());
    }
}
