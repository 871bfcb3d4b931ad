//! Filters of logged models, which have a different grammar than other filters
//! (`utils/search_logged_model_utils.py`). Values need no quotes, and only single quotes are
//! removed. A comparison must consist of exactly three parts.

use mlflow_api::python::{parse_float, repr, repr_list};
use mlflow_api::{Error, ErrorCode, Result};

use super::{Comparator, TextTest};
use crate::comparison::{StatementPart, join_keywords};
use crate::literal_list;
use crate::literals::{FilterLiteral, FilterNumber};
use crate::size_limits;
use crate::syntax;

const NUMBER_COMPARATORS: [&str; 6] = ["<", "<=", ">", ">=", "=", "!="];
const TEXT_COMPARATORS: [&str; 6] = ["=", "!=", "LIKE", "ILIKE", "IN", "NOT IN"];
const ENTITY_TYPES: [&str; 4] = ["attributes", "metrics", "params", "tags"];

/// The conditions of a search of logged models, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFilter {
    /// The conditions, in the order of the filter string.
    pub predicates: Vec<ModelPredicate>,
    /// The names and digests of datasets. If there are any, only points that were measured on one
    /// of them count, and a model needs at least one such point.
    pub datasets: Vec<(String, String)>,
}

/// A condition on a logged model.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelPredicate {
    /// A condition on the points of a metric. It is met if at least one point passes.
    Metric {
        /// The name of the metric.
        key: String,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with. If it is NaN, no point passes.
        value: f64,
    },
    /// A condition on a param, which must be present.
    Param {
        /// The name of the param.
        key: String,
        /// The test of its value.
        test: TextTest,
    },
    /// A condition on a tag, which must be present.
    Tag {
        /// The name of the tag.
        key: String,
        /// The test of its value.
        test: TextTest,
    },
    /// A condition on a text attribute.
    Text {
        /// The attribute.
        attribute: ModelText,
        /// The test of its value.
        test: TextTest,
    },
    /// A condition on an attribute that is a number in MLflow's store, but is compared as a text.
    Code {
        /// The attribute.
        attribute: ModelCode,
        /// The test of its decimal digits.
        test: TextTest,
    },
    /// A condition on a time.
    Time {
        /// The attribute.
        attribute: ModelTime,
        /// The comparator.
        comparator: Comparator,
        /// The time to compare with, in ms. If it is NaN, no model passes.
        value: f64,
    },
}

/// The text attributes of a logged model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelText {
    /// The id.
    ModelId,
    /// The name.
    Name,
    /// The type of the model.
    ModelType,
    /// The run that created the model.
    SourceRunId,
    /// The location of the model's artifacts.
    ArtifactLocation,
    /// The lifecycle stage. Always `active`, because searches do not return deleted models.
    LifecycleStage,
    /// The status message. Always missing, because no endpoint sets it.
    StatusMessage,
}

/// The numeric attributes of a logged model that filters compare as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelCode {
    /// The id of the experiment.
    ExperimentId,
    /// The status, as its number in `service.proto`.
    Status,
}

/// The times of a logged model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTime {
    /// The creation time.
    Created,
    /// The time when the model was last created, finalized or deleted.
    Updated,
}

/// An attribute of a logged model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelAttribute {
    /// A text attribute.
    Text(ModelText),
    /// A numeric attribute that filters compare as text.
    Code(ModelCode),
    /// A time.
    Time(ModelTime),
}

impl ModelAttribute {
    /// Returns the attribute with this name (`SqlLoggedModel` and its `ALIASES`).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "model_id" => Self::Text(ModelText::ModelId),
            "name" => Self::Text(ModelText::Name),
            "model_type" => Self::Text(ModelText::ModelType),
            "source_run_id" => Self::Text(ModelText::SourceRunId),
            "artifact_location" => Self::Text(ModelText::ArtifactLocation),
            "lifecycle_stage" => Self::Text(ModelText::LifecycleStage),
            "status_message" => Self::Text(ModelText::StatusMessage),
            "experiment_id" => Self::Code(ModelCode::ExperimentId),
            "status" => Self::Code(ModelCode::Status),
            "creation_timestamp_ms" | "creation_timestamp" | "creation_time" => Self::Time(ModelTime::Created),
            "last_updated_timestamp_ms" | "last_updated_timestamp" => Self::Time(ModelTime::Updated),
            _ => return None,
        })
    }
}

impl ModelFilter {
    /// Checks whether the filter depends on points of metrics.
    #[must_use]
    pub fn asks_for_metrics(&self) -> bool {
        let by_metric = |predicate: &ModelPredicate| matches!(predicate, ModelPredicate::Metric { .. });
        !self.datasets.is_empty() || self.predicates.iter().any(by_metric)
    }

    /// Checks whether the filter depends on the run that created a model.
    #[must_use]
    pub fn asks_for_runs(&self) -> bool {
        let by_run = |predicate: &ModelPredicate| {
            matches!(predicate, ModelPredicate::Text { attribute: ModelText::SourceRunId, .. })
        };
        self.predicates.iter().any(by_run)
    }

    /// If the filter requires a certain run as the creator of the model, returns that run.
    #[must_use]
    pub fn source_run(&self) -> Option<&str> {
        self.predicates.iter().find_map(|predicate| match predicate {
            ModelPredicate::Text { attribute: ModelText::SourceRunId, test: TextTest::Equal(run) } => {
                Some(run.as_str())
            }
            _ => None,
        })
    }
}

/// Parses a filter of logged models.
///
/// # Errors
/// Fails with the message of MLflow's `parse_filter_string`, or with a message of this crate where
/// MLflow's parser raises an unhandled Python exception.
pub fn parse_model_filter(filter: &str, datasets: &[(String, String)]) -> Result<ModelFilter> {
    size_limits::filter(filter)?;
    size_limits::datasets(datasets.len())?;
    let datasets = datasets.to_vec();
    if filter.is_empty() {
        return Ok(ModelFilter { predicates: Vec::new(), datasets });
    }
    let invalid = |reason: &str| Error::invalid(format!("Invalid filter string: {}. {reason}", repr(filter)));
    let mut statements = syntax::statements(filter).ok_or_else(|| invalid("It is too long."))?;
    let Some(statement) = statements.pop().filter(|_| statements.is_empty()) else {
        return Err(invalid("Expected a single SQL expression."));
    };
    let pieces = join_keywords(statement);
    size_limits::comparisons(pieces.iter().filter(|piece| matches!(piece, StatementPart::Clause { .. })).count())?;
    let mut predicates = Vec::new();
    for piece in pieces {
        match piece {
            StatementPart::Clause { members, text } => {
                let parts: Vec<_> = members.iter().map(|member| member.text).collect();
                let &[identifier, comparator, value] = parts.as_slice() else {
                    let text = text.map_or_else(|| parts.concat(), str::to_owned);
                    return Err(Error::invalid(format!(
                        "Invalid comparison: {text}. Expected a comparison with 3 tokens."
                    )));
                };
                predicates.push(predicate(identifier, &comparator.to_uppercase(), value)?);
            }
            StatementPart::Other(node) if node.text.trim().eq_ignore_ascii_case("AND") => {}
            StatementPart::Other(_) => {
                return Err(invalid(
                    "Expected a list of comparisons separated by 'AND' (e.g. 'metrics.loss > 0.1 AND params.lr = 0.01').",
                ));
            }
        }
    }
    Ok(ModelFilter { predicates, datasets })
}

fn predicate(identifier: &str, comparator: &str, value: &str) -> Result<ModelPredicate> {
    let (entity_type, key) = entity(identifier)?;
    let attribute = ModelAttribute::parse(&key).filter(|_| entity_type == "attributes");
    let is_number = entity_type == "metrics" || matches!(attribute, Some(ModelAttribute::Time(_)));
    let comparators = if is_number { NUMBER_COMPARATORS } else { TEXT_COMPARATORS };
    if !comparators.contains(&comparator) {
        let expected = comparators.map(repr).join(", ");
        return Err(Error::invalid(format!(
            "Invalid comparison operator for {entity_type}.{key}: {}. Expected one of ({expected}).",
            repr(comparator)
        )));
    }
    if is_number {
        let no_number =
            || Error::invalid(format!("Expected a number to compare {entity_type}.{key} with. Got {value}"));
        let value = parse_float(value).ok_or_else(no_number)?;
        let comparator = Comparator::parse(comparator).ok_or_else(no_number)?;
        return Ok(match attribute {
            Some(ModelAttribute::Time(attribute)) => ModelPredicate::Time { attribute, comparator, value },
            _ => ModelPredicate::Metric { key, comparator, value },
        });
    }
    let no_comparison = || {
        let message = format!("{comparator} does not compare {entity_type}.{key} with {value}");
        Error::new(ErrorCode::BadRequest, message)
    };
    let test = |literal| TextTest::new(comparator, literal)?.ok_or_else(no_comparison);
    let literal = literal(value)?;
    Ok(match (entity_type, attribute) {
        ("params", _) => ModelPredicate::Param { test: test(literal)?, key },
        ("tags", _) => ModelPredicate::Tag { test: test(literal)?, key },
        (_, Some(ModelAttribute::Text(attribute))) => ModelPredicate::Text { attribute, test: test(literal)? },
        (_, Some(ModelAttribute::Code(attribute))) => {
            let is_pattern = comparator.ends_with("LIKE");
            let test = test(if is_pattern { literal } else { with_digits(literal) })?;
            ModelPredicate::Code { attribute, test }
        }
        _ => return Err(Error::invalid(format!("Invalid attribute of logged models: {key}"))),
    })
}

/// Splits an identifier into the type of an entity and a key (`Entity.from_str`).
fn entity(identifier: &str) -> Result<(&'static str, String)> {
    let (entity_type, key) = match identifier.split_once('.') {
        Some((entity_type, key))
            if !entity_type.is_empty()
                && entity_type.bytes().all(|byte| byte.is_ascii_lowercase())
                && !key.is_empty()
                && !key.trim_end_matches('\n').contains('\n') =>
        {
            let known = ENTITY_TYPES.into_iter().find(|known| *known == entity_type);
            let known = known.ok_or_else(|| {
                Error::invalid(format!(
                    "Invalid entity type: {}. Expected one of {}.",
                    repr(entity_type),
                    repr_list(&ENTITY_TYPES)
                ))
            });
            (known?, key)
        }
        _ => ("attributes", identifier),
    };
    let key = key.trim_matches('`');
    // MLflow's messages contain the attribute that an alias stands for, but only for an identifier
    // without an entity type.
    let is_bare = identifier == key;
    let key = match key {
        "creation_time" | "creation_timestamp" if is_bare => "creation_timestamp_ms",
        "last_updated_timestamp" if is_bare => "last_updated_timestamp_ms",
        key => key,
    };
    Ok((entity_type, key.to_owned()))
}

/// Parses a text, which needs no quotes, or a list of texts. Numbers in a list are texts as well.
fn literal(value: &str) -> Result<FilterLiteral> {
    if value.starts_with('(') && value.ends_with(')') {
        let ill_formed = || Error::new(ErrorCode::BadRequest, format!("Expected a list of quoted texts. Got {value}"));
        return literal_list::texts_and_numbers(value).map(FilterLiteral::List).ok_or_else(ill_formed);
    }
    Ok(FilterLiteral::Text(value.trim_matches('\'').to_owned()))
}

/// Rewrites texts that represent an integer in plain decimal digits. SQLite does the same when it
/// compares such a text with a column of integers.
fn with_digits(literal: FilterLiteral) -> FilterLiteral {
    let digits = |text: String| {
        let number = parse_float(&text).filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
        number.map_or(text, |number| format!("{:.0}", number + 0.0))
    };
    match literal {
        FilterLiteral::Text(text) => FilterLiteral::Text(digits(text)),
        FilterLiteral::List(texts) => FilterLiteral::List(texts.into_iter().map(digits).collect()),
        FilterLiteral::Number(FilterNumber::Integer(number)) => FilterLiteral::Text(number.to_string()),
        literal @ FilterLiteral::Number(FilterNumber::Float(_)) => literal,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::like::LikePattern;

    fn parsed(filter: &str) -> ModelPredicate {
        let mut predicates = parse_model_filter(filter, &[]).unwrap().predicates;
        assert_eq!(predicates.len(), 1, "{filter}");
        predicates.remove(0)
    }

    fn refused(filter: &str) -> String {
        parse_model_filter(filter, &[]).unwrap_err().message
    }

    #[test]
    fn values_need_no_quotes() {
        let name =
            |text: &str| ModelPredicate::Text { attribute: ModelText::Name, test: TextTest::Equal(text.to_owned()) };
        for (filter, text) in [
            ("name = 'n'", "n"),
            ("attributes.name = n", "n"),
            ("`name` = 5", "5"),
            ("name = 0.10", "0.10"),
            ("name = \"n\"", "\"n\""),
            ("name = 'it''s'", "it''s"),
            ("name = ''", ""),
        ] {
            assert_eq!(parsed(filter), name(text), "{filter}");
        }
    }

    #[test]
    fn keys_are_taken_as_they_are() {
        for (filter, key) in [("params.a.b = 1", "a.b"), ("params.`a b` = 1", "a b"), ("params.\"a b\" = 1", "\"a b\"")]
        {
            let test = TextTest::Equal("1".to_owned());
            assert_eq!(parsed(filter), ModelPredicate::Param { key: key.to_owned(), test }, "{filter}");
        }
    }

    #[test]
    fn lists_and_codes() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<BTreeSet<_>>();
        let tag = |test| ModelPredicate::Tag { key: "t".to_owned(), test };
        assert_eq!(parsed("tags.t in ('a')"), tag(TextTest::In(texts(&["a"]))));
        assert_eq!(parsed("tags.t NOT  IN ('a', 2)"), tag(TextTest::NotIn(texts(&["a", "2"]))));
        assert_eq!(parsed("tags.t IN ()"), tag(TextTest::In(BTreeSet::new())));
        let status = |test| ModelPredicate::Code { attribute: ModelCode::Status, test };
        assert_eq!(parsed("status = '2.0'"), status(TextTest::Equal("2".to_owned())));
        assert_eq!(parsed("status IN ('02', 'READY')"), status(TextTest::In(texts(&["2", "READY"]))));
        assert_eq!(parsed("status LIKE '02'"), status(TextTest::Like(LikePattern::like("02").unwrap())));
    }

    #[test]
    fn mistakes_are_reported_as_in_mlflow() {
        let numbers = "('<', '<=', '>', '>=', '=', '!=').";
        let texts = "('=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN').";
        for (filter, message) in [
            (" ", "Invalid filter string: ' '. Expected a single SQL expression.".to_owned()),
            ("a = b; c = d", "Invalid filter string: 'a = b; c = d'. Expected a single SQL expression.".to_owned()),
            ("name IS NULL", "Invalid comparison: nameIS NULL. Expected a comparison with 3 tokens.".to_owned()),
            ("metrics.a like 'b'", format!("Invalid comparison operator for metrics.a: 'LIKE'. Expected one of {numbers}")),
            ("creation_time IN ('b')", format!("Invalid comparison operator for attributes.creation_timestamp_ms: 'IN'. Expected one of {numbers}")),
            ("params.a > 1", format!("Invalid comparison operator for params.a: '>'. Expected one of {texts}")),
            ("metric.a > 1", "Invalid entity type: 'metric'. Expected one of ['attributes', 'metrics', 'params', 'tags'].".to_owned()),
            ("Metrics.a > 1", format!("Invalid comparison operator for attributes.Metrics.a: '>'. Expected one of {texts}")),
            ("name", "Invalid filter string: 'name'. Expected a list of comparisons separated by 'AND' (e.g. 'metrics.loss > 0.1 AND params.lr = 0.01').".to_owned()),
        ] {
            assert_eq!(refused(filter), message, "{filter}");
        }
        for filter in ["metrics.a > '1'", "name = ('a')", "name IN (a)", "name IN (1)", "other = 'x'", "tags = 'x'"] {
            let _ = refused(filter);
        }
    }
}
