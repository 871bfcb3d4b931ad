//! MLflow's limits on names and values (`utils/validation.py`), with its messages.

use std::borrow::Cow;

use serde_json::Value;

use crate::checks::invalid_value;
use crate::python;
use crate::{Error, Result};

/// Maximum length of the key of a metric, a param or a tag, in characters.
pub const MAX_KEY_LENGTH: usize = 250;
/// Maximum length of a param's value, in characters. Longer values are truncated.
pub const MAX_PARAM_VALUE_LENGTH: usize = 6_000;
/// Maximum length of the value of a run's tag, in characters. Longer values are truncated.
pub const MAX_TAG_VALUE_LENGTH: usize = 8_000;
/// Maximum length of an experiment's name, in characters.
pub const MAX_EXPERIMENT_NAME_LENGTH: usize = 500;
/// Maximum length of the value of an experiment's tag, in characters.
pub const MAX_EXPERIMENT_TAG_VALUE_LENGTH: usize = 20_000;
/// Maximum length of an artifact location, in characters.
pub const MAX_ARTIFACT_LOCATION_LENGTH: usize = 2_048;
/// Maximum number of custom views of an experiment, which are stored in tags.
pub const MAX_CUSTOM_VIEWS: usize = 50;
/// Maximum length of the name of a dataset, in characters.
pub const MAX_DATASET_NAME_LENGTH: usize = 500;
/// Maximum length of the digest of a dataset, in characters.
pub const MAX_DATASET_DIGEST_LENGTH: usize = 36;
/// Maximum number of metrics in a batch.
pub const MAX_BATCH_METRICS: usize = 1_000;
/// Maximum number of params in a batch. The same maximum applies to tags.
pub const MAX_BATCH_PARAMS_OR_TAGS: usize = 100;
/// Maximum number of metrics, params and tags in a batch, in total.
pub const MAX_BATCH_ENTRIES: usize = 1_000;
/// Maximum number of experiments in a search for datasets.
pub const MAX_DATASET_EXPERIMENTS: usize = 20;
/// Maximum number of results on a page of a search.
pub const SEARCH_RESULTS: i64 = 50_000;

/// Checks the name of a metric. `path` is the name of the field in the request.
pub fn metric_name(name: &str, path: &str) -> Result<()> {
    key_name(name, path)
}

/// Checks the key of a param or a tag, except its length.
pub fn key_name(name: &str, path: &str) -> Result<()> {
    // In Python, `$` also matches before a line feed at the end.
    let body = name.strip_suffix('\n').unwrap_or(name);
    let allowed = |character: char| character.is_alphanumeric() || "_/.- :".contains(character);
    if !body.chars().all(allowed) {
        let reason = "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) \
                      and slashes (/).";
        return Err(Error::invalid(invalid_value(path, &Value::from(name), reason)));
    }
    path_is_unique(name, path)
}

/// Checks that a name, interpreted as a path, is already in normal form and does not leave its
/// directory (`path_not_unique`).
pub(crate) fn path_is_unique(name: &str, path: &str) -> Result<()> {
    let normal = normalized_path(name);
    if normal != name || normal == "." || normal.starts_with("..") || normal.starts_with('/') {
        let reason = format!(
            "Names may be treated as files in certain cases, and must not resolve to other names when treated as such. \
             This name would resolve to {}",
            python::repr(&normal)
        );
        return Err(Error::invalid(invalid_value(path, &Value::from(name), &reason)));
    }
    Ok(())
}

/// Checks that a value has at most this number of characters.
pub fn at_most(what: &str, characters: usize, value: &str) -> Result<()> {
    if value.chars().count() <= characters {
        return Ok(());
    }
    Err(Error::invalid(format!("'{what}' exceeds the maximum length of {characters} characters")))
}

/// Truncates a value to at most this number of characters.
#[must_use]
pub fn truncated(characters: usize, value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(value[..end].to_owned()),
        None => Cow::Borrowed(value),
    }
}

/// Checks a param, and truncates its value.
pub fn param(key: &str, value: &str, path: &str) -> Result<String> {
    key_name(key, &json_path(path, "key"))?;
    at_most("Param key", MAX_KEY_LENGTH, key)?;
    Ok(truncated(MAX_PARAM_VALUE_LENGTH, value).into_owned())
}

/// Checks a tag of a run, and truncates its value.
pub fn run_tag(key: &str, value: &str, path: &str) -> Result<String> {
    let path = json_path(path, "key");
    key_name(key, &path)?;
    at_most(&path, MAX_KEY_LENGTH, key)?;
    Ok(truncated(MAX_TAG_VALUE_LENGTH, value).into_owned())
}

/// Checks a tag of a trace, and truncates its value.
pub fn trace_tag(key: &str, value: &str) -> Result<String> {
    key_name(key, "key")?;
    at_most("key", MAX_KEY_LENGTH, key)?;
    Ok(truncated(MAX_TAG_VALUE_LENGTH, value).into_owned())
}

/// Checks a tag of an experiment.
pub fn experiment_tag(key: &str, value: &str) -> Result<()> {
    key_name(key, "key")?;
    at_most("key", MAX_KEY_LENGTH, key)?;
    at_most("value", MAX_EXPERIMENT_TAG_VALUE_LENGTH, value)?;
    crate::experiment_tag_formats::experiment_tag(key, value)
}

/// Checks the name of an experiment.
pub fn experiment_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("Invalid experiment name: ''"));
    }
    at_most("name", MAX_EXPERIMENT_NAME_LENGTH, name)
}

/// Checks the timestamp of a metric, in ms.
pub fn metric_timestamp(key: &str, value: f64, timestamp: i64, path: &str) -> Result<()> {
    if timestamp >= 0 {
        return Ok(());
    }
    let reason = format!(
        "metric '{key}' (value={}). Timestamp must be a nonnegative long (64-bit integer) ",
        python::float(value)
    );
    Err(Error::invalid(invalid_value(&json_path(path, "timestamp"), &Value::from(timestamp), &reason)))
}

/// Checks the format of a run id, as in `log-batch`.
pub fn run_id(id: &str) -> Result<()> {
    let body = id.strip_suffix('\n').unwrap_or(id);
    let mut characters = body.chars();
    let starts = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts && body.chars().count() <= 256 && characters.all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
        return Ok(());
    }
    let printed = python::json(&Value::from(id));
    Err(Error::invalid(format!("Invalid value {printed} for parameter 'run_id' supplied.")))
}

/// Checks the format of an experiment id, as in lists of scorers.
pub fn experiment_id(id: &str) -> Result<()> {
    let body = id.strip_suffix('\n').unwrap_or(id);
    let mut characters = body.chars();
    let starts = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts && body.chars().count() <= 64 && characters.all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
        return Ok(());
    }
    Err(Error::invalid(format!("Invalid experiment ID: '{id}'")))
}

/// Checks the numbers of metrics, params and tags in a batch.
pub fn batch(metrics: usize, params: usize, tags: usize) -> Result<()> {
    let counts = [
        ("metrics", MAX_BATCH_METRICS, metrics),
        ("params", MAX_BATCH_PARAMS_OR_TAGS, params),
        ("tags", MAX_BATCH_PARAMS_OR_TAGS, tags),
        ("metrics, params, and tags", MAX_BATCH_ENTRIES, metrics + params + tags),
    ];
    for (what, limit, count) in counts {
        if count > limit {
            return Err(Error::invalid(format!(
                "A batch logging request can contain at most {limit} {what}. Got {count} {what}. \
                 Please split up {what} across multiple requests and try again."
            )));
        }
    }
    Ok(())
}

/// Maximum number of experiments that a request can search. It limits the cost of a request,
/// because each experiment takes at least one request to the table. MLflow's limit is the number of
/// variables that its database supports in a statement, which is 32,766 by default in `SQLite`.
pub const MAX_SEARCHED_EXPERIMENTS: usize = 10_000;

/// Checks the number of experiments to search.
pub fn searched_experiments(experiments: usize) -> Result<()> {
    if experiments <= MAX_SEARCHED_EXPERIMENTS {
        return Ok(());
    }
    Err(Error::invalid(format!("A search takes at most {MAX_SEARCHED_EXPERIMENTS} experiments. Found {experiments}.")))
}

/// Checks the page size.
pub fn max_results(results: i64) -> Result<()> {
    let problem = if results < 1 {
        "It must be a positive integer".to_owned()
    } else if results > SEARCH_RESULTS {
        format!("It must be at most {SEARCH_RESULTS}")
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("Invalid value {results} for parameter 'max_results' supplied. {problem}")))
}

/// Returns the path of a field of a list element, in the form that error messages about a request
/// use.
#[must_use]
pub fn json_path(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Normalizes a path like Python's `posixpath.normpath`.
#[must_use]
pub fn normalized_path(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    // Two leading slashes are kept, and three or more are replaced with one.
    let slashes = match path.bytes().take_while(|byte| *byte == b'/').count() {
        0 => 0,
        2 => 2,
        _ => 1,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match parts.last() {
            _ if part != ".." => parts.push(part),
            Some(&"..") => parts.push(part),
            Some(_) => {
                parts.pop();
            }
            None if slashes == 0 => parts.push(part),
            None => {}
        }
    }
    let normal = "/".repeat(slashes) + &parts.join("/");
    if normal.is_empty() { ".".to_owned() } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_paths_must_be_normal() {
        for name in ["loss", "a/b", "a.b", "a b:c-d_e", "é/ü", "...", "a\n"] {
            let outcome = key_name(name, "name");
            assert_eq!(outcome.is_ok(), name != "...", "{name:?} {outcome:?}");
        }
        for (name, normal) in
            [(".", "."), ("a//b", "a/b"), ("/a", "/a"), ("../a", "../a"), ("a/", "a"), ("", "."), ("a/..", ".")]
        {
            let message = key_name(name, "name").unwrap_err().message;
            assert!(message.ends_with(&format!("resolve to '{normal}'")), "{message}");
        }
        let message = key_name("a#b", "metrics[0].name").unwrap_err().message;
        assert!(
            message
                .starts_with("Invalid value \"a#b\" for parameter 'metrics[0].name' supplied: Names may only contain")
        );
        assert!(key_name("a\0b", "name").is_err());
    }

    #[test]
    fn paths_are_normalized_as_in_python() {
        for (path, normal) in
            [("//a", "//a"), ("///a", "/a"), ("a/../../b", "../b"), ("/../a", "/a"), ("a/./b/", "a/b")]
        {
            assert_eq!(normalized_path(path), normal);
        }
    }

    #[test]
    fn lengths_count_characters() {
        assert!(at_most("key", 3, "äöü").is_ok());
        assert_eq!(at_most("key", 2, "äöü").unwrap_err().message, "'key' exceeds the maximum length of 2 characters");
        assert_eq!(truncated(2, "äöü"), "äö");
        assert_eq!(truncated(3, "äöü"), "äöü");
    }
}
