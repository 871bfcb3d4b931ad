//! Identifiers: the left side of a comparison, or the field of an ordering.

use std::fmt;

use mlflow_api::{Error, Result};

use crate::python_repr;

/// The kinds of fields that a run can be searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunFieldFamily {
    Metric,
    Param,
    Tag,
    Attribute,
    Dataset,
}

impl fmt::Display for RunFieldFamily {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Metric => "metric",
            Self::Param => "parameter",
            Self::Tag => "tag",
            Self::Attribute => "attribute",
            Self::Dataset => "dataset",
        })
    }
}

/// An identifier: a family, and a key within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier<'a> {
    pub(crate) family: RunFieldFamily,
    pub(crate) key: &'a str,
}

const DATASET_FIELDS: [&str; 3] = ["name", "digest", "context"];

/// Parses an identifier of a run search (`SearchUtils._get_identifier`). `attributes` lists the
/// valid attributes.
pub(crate) fn of_run<'a>(text: &'a str, attributes: &[&str]) -> Result<Identifier<'a>> {
    let (family, key) = match text.split_once('.') {
        Some((family, key)) => (run_family(family)?, key),
        None => (RunFieldFamily::Attribute, text),
    };
    let key = unquoted_key(key);
    match family {
        RunFieldFamily::Attribute if !attributes.contains(&key) => Err(invalid_attribute(key, attributes)),
        RunFieldFamily::Dataset if !DATASET_FIELDS.contains(&key) => Err(Error::invalid(format!(
            "Invalid dataset key '{key}' specified. Valid keys are '{}'",
            python_repr::set(&DATASET_FIELDS)
        ))),
        _ => Ok(Identifier { family, key }),
    }
}

/// Parses an identifier of an experiment search (`SearchExperimentsUtils._get_identifier`).
pub(crate) fn of_experiment<'a>(text: &'a str, attributes: &[&str]) -> Result<Identifier<'a>> {
    let Identifier { family, key } = attribute_or_tag(text)?;
    let key = unquoted_key(key);
    if family == RunFieldFamily::Attribute && !attributes.contains(&key) {
        return Err(invalid_attribute(key, attributes));
    }
    Ok(Identifier { family, key })
}

/// Parses an identifier of the model registry (`_get_model_search_identifier`). The names of
/// attributes must not be quoted.
pub(crate) fn of_registry<'a>(text: &'a str, attributes: &[&str]) -> Result<Identifier<'a>> {
    let Identifier { family, key } = attribute_or_tag(text)?;
    if family == RunFieldFamily::Attribute && !attributes.contains(&key) {
        return Err(invalid_attribute(key, attributes));
    }
    Ok(Identifier { family, key: unquoted_key(key) })
}

fn attribute_or_tag(text: &str) -> Result<Identifier<'_>> {
    let (family, key) = match text.split_once('.') {
        Some(("attribute", key)) => (RunFieldFamily::Attribute, key),
        Some(("tag" | "tags", key)) => (RunFieldFamily::Tag, key),
        Some((family, _)) => {
            return Err(Error::invalid(format!(
                "Invalid entity type '{family}'. Valid entity types are ('attribute', 'tag', 'tags')"
            )));
        }
        None => (RunFieldFamily::Attribute, text),
    };
    Ok(Identifier { family, key })
}

/// Returns the text between single or double quotes, or `None` if there are no quotes
/// (`SearchUtils._strip_quotes`).
pub(crate) fn unquoted(text: &str) -> Option<&str> {
    between(text, '\'').or_else(|| between(text, '"'))
}

pub(crate) fn unquoted_key(key: &str) -> &str {
    let key = unquoted(key).unwrap_or(key);
    between(key, '`').unwrap_or(key)
}

pub(crate) fn between(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote)?.strip_suffix(quote)
}

fn run_family(written: &str) -> Result<RunFieldFamily> {
    let name = between(written, '`').unwrap_or(written);
    match name {
        "metric" | "metrics" => Ok(RunFieldFamily::Metric),
        "parameter" | "parameters" | "param" | "params" => Ok(RunFieldFamily::Param),
        "tag" | "tags" => Ok(RunFieldFamily::Tag),
        "attribute" | "attributes" | "attr" | "run" => Ok(RunFieldFamily::Attribute),
        "dataset" | "datasets" => Ok(RunFieldFamily::Dataset),
        _ => Err(Error::invalid(format!(
            "Invalid entity type '{name}'. Valid values are ['metric', 'parameter', 'tag', 'attribute', 'dataset']"
        ))),
    }
}

fn invalid_attribute(key: &str, attributes: &[&str]) -> Error {
    let valid = python_repr::set(attributes);
    Error::invalid(format!("Invalid attribute key '{key}' specified. Valid keys are '{valid}'"))
}
