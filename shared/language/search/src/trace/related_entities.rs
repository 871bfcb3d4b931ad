//! Entities to which traces refer, and by which a search can select or sort traces.

use mlflow_api::traces::{MODEL_ID, SOURCE_RUN};

use super::filter::TraceFilter;
use super::order::{TraceOrder, TraceSortBy};
use super::predicate::TracePredicate;

/// A kind of entity, other than the trace itself, to which a trace refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelatedEntity {
    /// The run in which the trace was created.
    Run,
    /// The logged model that created the trace.
    LoggedModel,
    /// An assessment of the trace.
    Assessment,
}

impl RelatedEntity {
    /// Returns the kind of entity that an entry of a trace's metadata refers to.
    #[must_use]
    pub fn of_metadata(key: &str) -> Option<Self> {
        match key {
            SOURCE_RUN => Some(Self::Run),
            MODEL_ID => Some(Self::LoggedModel),
            _ => None,
        }
    }
}

impl TracePredicate {
    fn related(&self) -> Option<RelatedEntity> {
        match self {
            Self::Run(_) => Some(RelatedEntity::Run),
            // A reference to an issue is an assessment.
            Self::Assessment(_) | Self::Issue(_) => Some(RelatedEntity::Assessment),
            Self::Metadata { key, .. } => RelatedEntity::of_metadata(key),
            Self::Text { .. } | Self::Number { .. } | Self::Tag { .. } | Self::Prompt(_) => None,
        }
    }
}

impl TraceFilter {
    /// Returns the kinds of entities, other than the traces themselves, that the filter depends on.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        self.predicates.iter().filter_map(TracePredicate::related)
    }
}

impl TraceOrder {
    /// Returns the kinds of entities, other than the traces themselves, that the order depends on.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        self.terms.iter().filter_map(|term| match &term.by {
            TraceSortBy::Metadata(key) => RelatedEntity::of_metadata(key),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::parse_trace_filter;
    use super::super::order::parse_trace_order_by;
    use super::*;

    #[test]
    fn searches_say_what_they_ask_of_others() {
        let of = |filter: &str, order_by: &[&str]| {
            let order_by: Vec<_> = order_by.iter().map(|clause| (*clause).to_owned()).collect();
            let filter = parse_trace_filter(filter).unwrap();
            filter.related().chain(parse_trace_order_by(&order_by).unwrap().related()).collect::<Vec<_>>()
        };
        for (filter, order_by, expected) in [
            ("", &[][..], &[][..]),
            ("status = 'OK' AND tag.a = 'b' AND metadata.c = 'd'", &["timestamp_ms DESC", "tag.a"], &[]),
            ("run_id = 'r'", &[], &[RelatedEntity::Run]),
            ("metadata.`mlflow.sourceRun` != 'r'", &[], &[RelatedEntity::Run]),
            ("metadata.`mlflow.modelId` = 'm'", &[], &[RelatedEntity::LoggedModel]),
            ("feedback.f = 'yes'", &[], &[RelatedEntity::Assessment]),
            ("expectation.e IS NOT NULL", &[], &[RelatedEntity::Assessment]),
            ("", &["run_id DESC"], &[RelatedEntity::Run]),
            (
                "feedback.f = 'yes'",
                &["metadata.`mlflow.modelId`"],
                &[RelatedEntity::Assessment, RelatedEntity::LoggedModel],
            ),
        ] {
            assert_eq!(of(filter, order_by), expected, "{filter} {order_by:?}");
        }
    }
}
