//! The model registry's limits on names and values, with MLflow's error messages
//! (`utils/validation.py`).

use crate::limits::{MAX_KEY_LENGTH, at_most, key_name, path_is_unique};
use crate::python;
use crate::registry::{LATEST_ALIAS, PROMPT_TEXT_TAG, VersionNumber};
use crate::{Error, Result};

/// Maximum length of a tag's value, and of a prompt's text, in characters.
pub const MAX_TAG_VALUE_LENGTH: usize = 100_000;
/// Maximum length of an alias, in characters.
pub const MAX_ALIAS_LENGTH: usize = 255;
/// Maximum number of registered models on a page.
pub const MODELS: i64 = 1_000;
/// Maximum number of model versions on a page.
pub const VERSIONS: i64 = 200_000;

/// Checks the name of a registered model.
pub fn model_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(missing("name"));
    }
    if name.contains(['/', ':']) {
        return Err(Error::invalid(format!("Invalid model name '{name}'. Names cannot contain '/' or ':'.")));
    }
    path_is_unique(name, "name")
}

/// Checks the new name of a registered model.
pub fn new_model_name(name: &str) -> Result<()> {
    if name.trim().is_empty() { Err(missing("new_name")) } else { model_name(name) }
}

fn missing(field: &str) -> Error {
    Error::invalid(format!("Missing value for required parameter '{field}'."))
}

/// Checks a tag of a registered model.
pub fn model_tag(key: &str, value: &str) -> Result<()> {
    key_name(key, "key")?;
    at_most("key", MAX_KEY_LENGTH, key)?;
    at_most("value", MAX_TAG_VALUE_LENGTH, value)
}

/// Checks a tag of a model version.
pub fn version_tag(key: &str, value: &str) -> Result<()> {
    key_name(key, "key")?;
    at_most("key", MAX_KEY_LENGTH, key)?;
    if key == PROMPT_TEXT_TAG && value.chars().count() > MAX_TAG_VALUE_LENGTH {
        return Err(Error::invalid(format!("Prompt text exceeds max length of {MAX_TAG_VALUE_LENGTH} characters.")));
    }
    at_most("value", MAX_TAG_VALUE_LENGTH, value)
}

/// Checks the key of a tag to delete.
pub fn tag_key(key: &str) -> Result<()> {
    key_name(key, "key")
}

/// Parses a version number like Python's `int`.
pub fn version(text: &str) -> Result<VersionNumber> {
    let Some(integer) = python::int(text) else {
        return Err(Error::invalid(format!("Parameter 'version' must be an integer, got '{text}'.")));
    };
    Ok(VersionNumber { number: integer.parse().ok().filter(|version| *version > 0), printed: integer })
}

/// Checks an alias.
pub fn alias(alias: &str) -> Result<()> {
    if alias.is_empty() {
        return Err(Error::invalid("Registered model alias name cannot be empty."));
    }
    // In Python, `$` also matches before a line feed at the end.
    let body = alias.strip_suffix('\n').unwrap_or(alias);
    if !body.chars().all(|character| character.is_alphanumeric() || character == '_' || character == '-') {
        return Err(Error::invalid(format!(
            "Invalid alias name: '{alias}'. Names may only contain alphanumerics, underscores (_), and dashes (-)."
        )));
    }
    at_most("Registered model alias name", MAX_ALIAS_LENGTH, alias)
}

/// Checks an alias to set. Some aliases are reserved.
pub fn new_alias(name: &str) -> Result<()> {
    alias(name)?;
    if name.to_lowercase() == LATEST_ALIAS {
        return Err(Error::invalid("'latest' alias name (case insensitive) is reserved."));
    }
    let body = name.strip_suffix('\n').unwrap_or(name);
    let digits = body.strip_prefix(['v', 'V']).unwrap_or_default();
    if !digits.is_empty() && digits.chars().all(char::is_numeric) {
        return Err(Error::invalid(format!("Version alias name '{name}' is reserved.")));
    }
    Ok(())
}

/// Checks the page size for registered models.
pub fn max_models(results: i64) -> Result<()> {
    page(results, MODELS)
}

/// Checks the page size for model versions.
pub fn max_versions(results: i64) -> Result<()> {
    page(results, VERSIONS)
}

fn page(results: i64, most: i64) -> Result<()> {
    if results < 1 {
        return Err(Error::invalid(format!(
            "Invalid value for max_results. It must be a positive integer, but got {results}"
        )));
    }
    if results <= most {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Invalid value for request parameter max_results. It must be at most {most}, but got value {results}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_integers_as_python_reads_them() {
        for (text, expected) in
            [("1", Some(1)), (" 01", Some(1)), ("1_0", Some(10)), ("0", None), ("-1", None), ("99999999999", None)]
        {
            assert_eq!(version(text).unwrap().number, expected, "{text}");
        }
        for text in ["", "x", "1.0", "1 2"] {
            let message = version(text).unwrap_err().message;
            assert_eq!(message, format!("Parameter 'version' must be an integer, got '{text}'."));
        }
    }

    #[test]
    fn aliases_that_look_like_versions_are_reserved() {
        for alias in ["latest", "LaTest", "v1", "V12"] {
            assert!(new_alias(alias).unwrap_err().message.ends_with("is reserved."), "{alias}");
        }
        for alias in ["v", "v1x", "champion", "ü_-9", "vv1"] {
            assert!(new_alias(alias).is_ok(), "{alias}");
        }
        assert!(alias("a b").is_err() && alias("").is_err() && alias(&"a".repeat(256)).is_err());
    }

    #[test]
    fn names_of_models_are_no_paths() {
        for name in ["a", "a b", "a.b", " a", "a..", "#$%"] {
            assert!(model_name(name).is_ok(), "{name}");
        }
        for name in ["", "  ", "a/b", "a:b", ".", "..", "..a"] {
            assert!(model_name(name).is_err(), "{name}");
        }
    }
}
