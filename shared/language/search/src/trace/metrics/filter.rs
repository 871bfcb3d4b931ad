//! Filters of trace metrics, each of which is a single comparison with `=`
//! (`SearchTraceMetricsUtils`).

use mlflow_api::{Error, Result};

use super::super::evaluate::{AssessmentFields, SpanFields, TraceFields};
use super::super::identifier::keys;
use super::super::predicate::{AssessmentKind, TraceText};
use super::super::related_entities::RelatedEntity;
use super::measures::MetricView;
use crate::comparison::single_comparisons;
use crate::identifier::{between, unquoted_key};
use crate::literals::text;

/// A condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricFilter {
    field: Field,
    value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Status,
    Tag(String),
    Metadata(String),
    SpanName,
    SpanStatus,
    SpanType,
    AssessmentName,
    AssessmentType,
}

/// Parses a filter of a query about this kind of entity.
pub(super) fn parse_filter(filter: &str, view: MetricView) -> Result<MetricFilter> {
    let comparisons = single_comparisons(filter)?.collect::<Result<Vec<_>>>()?;
    let [comparison] = comparisons.as_slice() else {
        return Err(Error::invalid(format!("Invalid filter: '{filter}'. Expected one filter clause.")));
    };
    let field = Field::read(comparison.left)?;
    if comparison.comparator != "=" {
        let message = format!("Invalid comparator: '{}', only '=' operator is supported", comparison.comparator);
        return Err(Error::invalid(message));
    }
    let refusal = |written: &str| {
        let entity = field.entity();
        Error::invalid(format!(
            "Expected a quoted string value for {entity} value (e.g. 'my-value'). Got value {written}"
        ))
    };
    let right = comparison.right.as_ref().ok_or_else(|| refusal(""))?;
    let value = text(right).ok_or_else(|| refusal(right.text))??;
    match field {
        Field::SpanName | Field::SpanStatus | Field::SpanType if view != MetricView::Spans => {
            Err(Error::invalid(format!("Filtering by span is only supported for SPANS view type, got {}", view.name())))
        }
        Field::AssessmentName | Field::AssessmentType if view != MetricView::Assessments => Err(Error::invalid(
            format!("Filtering by assessment is only supported for ASSESSMENTS view type, got {}", view.name()),
        )),
        field => Ok(MetricFilter { field, value }),
    }
}

impl Field {
    fn read(written: &str) -> Result<Self> {
        let mut parts = written.splitn(3, '.');
        let (Some(view), Some(entity), key) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::invalid(format!(
                "Invalid identifier {}. Columns should be specified as 'trace.<key>', 'span.<key>', 'assessment.<key>'.",
                mlflow_api::python::repr(written)
            )));
        };
        let view = between(view, '`').unwrap_or(view);
        let entities: &[&str] = match view {
            "trace" => &["status", "tag", "metadata"],
            "span" => &["name", "status", "type"],
            "assessment" => &["name", "type"],
            _ => {
                return Err(Error::invalid(format!(
                    "Invalid view type '{view}'. Valid values are dict_keys(['trace', 'span', 'assessment'])"
                )));
            }
        };
        if !entities.contains(&entity) {
            let listed = mlflow_api::python::repr_list(entities);
            return Err(Error::invalid(format!(
                "Invalid entity '{entity}' specified for view type '{view}'. Valid entities are {listed}"
            )));
        }
        let needs_key = matches!(entity, "tag" | "metadata");
        match (needs_key, key) {
            (true, None) => Err(Error::invalid(format!(
                "Filtering by {entity} requires a key, e.g. '{view}.{entity}.<key> = <value>'"
            ))),
            (false, Some(_)) => Err(Error::invalid(format!(
                "Filtering by {entity} does not require a key, use '{view}.{entity}' instead"
            ))),
            (_, key) => {
                let key = key.map(unquoted_key).unwrap_or_default().to_owned();
                Ok(match (view, entity) {
                    ("trace", "tag") => Self::Tag(key),
                    ("trace", "metadata") => Self::Metadata(key),
                    ("span", "name") => Self::SpanName,
                    ("span", "status") => Self::SpanStatus,
                    ("span", _) => Self::SpanType,
                    ("assessment", "name") => Self::AssessmentName,
                    ("assessment", _) => Self::AssessmentType,
                    _ => Self::Status,
                })
            }
        }
    }

    const fn entity(&self) -> &'static str {
        match self {
            Self::Status | Self::SpanStatus => "status",
            Self::Tag(_) => "tag",
            Self::Metadata(_) => "metadata",
            Self::SpanName | Self::AssessmentName => "name",
            Self::SpanType | Self::AssessmentType => "type",
        }
    }
}

impl MetricFilter {
    /// Returns the kind of entity, other than traces and spans, by which the filter selects traces.
    /// `None` if there is none.
    pub(super) fn related(&self) -> Option<RelatedEntity> {
        match &self.field {
            Field::Metadata(key) => RelatedEntity::of_metadata(key),
            Field::AssessmentName | Field::AssessmentType => Some(RelatedEntity::Assessment),
            _ => None,
        }
    }

    /// Checks whether the filter is about the state, the name, the session or the tokens of a
    /// trace.
    pub(super) fn is_about_columns(&self) -> bool {
        match &self.field {
            Field::Status => true,
            Field::Tag(key) => key == keys::NAME,
            Field::Metadata(key) => key == keys::SESSION || key == keys::TOKEN_USAGE,
            _ => false,
        }
    }

    /// Checks whether a trace passes. Conditions on spans and assessments are ignored.
    pub(super) fn lets_trace(&self, trace: &impl TraceFields) -> bool {
        let value = Some(self.value.as_str());
        match &self.field {
            Field::Status => trace.text(TraceText::State) == value,
            Field::Tag(key) => trace.tag(key) == value,
            Field::Metadata(key) => {
                trace.metadata(key) == value || (key == keys::RUN && trace.is_linked_to_run(&self.value))
            }
            _ => true,
        }
    }

    /// Checks whether a span passes.
    pub(super) fn lets_span(&self, span: &impl SpanFields) -> bool {
        let value = Some(self.value.as_str());
        match &self.field {
            Field::SpanName => span.name() == value,
            Field::SpanStatus => Some(span.status()) == value,
            Field::SpanType => span.kind() == value,
            _ => true,
        }
    }

    /// Checks whether an assessment passes.
    pub(super) fn lets_assessment(&self, assessment: &AssessmentFields) -> bool {
        match &self.field {
            Field::AssessmentName => assessment.name == self.value,
            Field::AssessmentType => kind_name(assessment.kind) == self.value,
            _ => true,
        }
    }
}

const fn kind_name(kind: AssessmentKind) -> &'static str {
    match kind {
        AssessmentKind::Feedback => "feedback",
        AssessmentKind::Expectation => "expectation",
        AssessmentKind::Issue => "issue",
    }
}
