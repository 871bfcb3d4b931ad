//! Filters of traces, with the checks of `_get_filter_clauses_for_search_traces` in the same order.

use mlflow_api::{Error, Result};

use super::comparators;
use super::identifier::{ATTRIBUTES, TraceFieldFamily, TraceIdentifier, keys};
use super::predicate::{AssessmentKind, AssessmentPredicate, SpanPredicate, TraceNumber, TracePredicate, TraceText};
use super::value;
use super::value_tests::{NumberTest, TraceKeyTest, TraceTextTest};
use crate::comparison::{Comparison, trace_comparisons};
use crate::literals::{FilterLiteral, FilterNumber};

/// The conditions of a search of traces, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFilter {
    /// The conditions on the trace itself.
    pub predicates: Vec<TracePredicate>,
    /// The conditions on spans. A single span must meet all of them.
    pub spans: Vec<SpanPredicate>,
    /// The earliest start time of spans, in ms, to which a tolerance is applied. It is derived from
    /// the conditions on the request time, and only matters if there are conditions on spans.
    pub(super) spans_from: Option<FilterNumber>,
}

/// A parsed comparison whose comparator has not been checked yet. MLflow checks the comparators
/// after it has parsed all comparisons.
struct UncheckedComparison {
    identifier: TraceIdentifier,
    comparator: String,
    /// The value. `None` for IS NULL and IS NOT NULL.
    value: Option<FilterLiteral>,
}

/// Parses a filter. Every trace passes the empty filter.
pub fn parse_trace_filter(filter: &str) -> Result<TraceFilter> {
    let drafts: Vec<_> = trace_comparisons(filter)?.map(|comparison| read(&comparison?)).collect::<Result<_>>()?;
    let mut parsed = TraceFilter::default();
    for draft in drafts {
        parsed.add(draft)?;
    }
    // If several conditions name a run, MLflow uses only the last one.
    let last = parsed.predicates.iter().rposition(|predicate| matches!(predicate, TracePredicate::Run(_)));
    let mut place = 0..;
    parsed.predicates.retain(|predicate| place.next() == last || !matches!(predicate, TracePredicate::Run(_)));
    Ok(parsed)
}

fn read(comparison: &Comparison) -> Result<UncheckedComparison> {
    let identifier = TraceIdentifier::read(comparison.left, &ATTRIBUTES)?;
    let value = match &comparison.right {
        None => None,
        Some(right) => {
            let value = value::read(&identifier, comparison.comparator, right)?;
            if identifier.family == TraceFieldFamily::Span {
                // The check of span comparators is case-sensitive, as in MLflow.
                comparators::span(&identifier.key, comparison.comparator)?;
            }
            Some(value)
        }
    };
    Ok(UncheckedComparison {
        identifier: identifier.resolved(),
        comparator: comparison.comparator.to_uppercase(),
        value,
    })
}

impl TraceFilter {
    fn add(&mut self, draft: UncheckedComparison) -> Result<()> {
        let UncheckedComparison { identifier: TraceIdentifier { family, key }, comparator, value } = draft;
        let predicate = match family {
            TraceFieldFamily::Issue => {
                comparators::issue(&key, &comparator)?;
                TracePredicate::Issue(text_of(value))
            }
            TraceFieldFamily::Attribute => return self.add_attribute(&key, &comparator, value),
            TraceFieldFamily::Tag => {
                comparators::tag(&comparator)?;
                if key == keys::PROMPTS {
                    TracePredicate::Prompt(comparators::prompt(&comparator, value)?)
                } else {
                    TracePredicate::Tag { test: TraceKeyTest::new(&comparator, value)?, key }
                }
            }
            TraceFieldFamily::Metadata => {
                comparators::metadata(&comparator)?;
                if matches!(key.as_str(), keys::TOKEN_USAGE | keys::COST) {
                    comparators::aggregates(&key, &comparator)?;
                }
                if key == keys::RUN && comparator == "=" {
                    TracePredicate::Run(text_of(value))
                } else {
                    TracePredicate::Metadata { test: TraceKeyTest::new(&comparator, value)?, key }
                }
            }
            TraceFieldFamily::Span => {
                comparators::span(&key, &comparator)?;
                self.spans.push(SpanPredicate::new(&key, &comparator, value)?);
                return Ok(());
            }
            TraceFieldFamily::Feedback | TraceFieldFamily::Expectation => {
                comparators::assessment(&key, &comparator)?;
                let feedback = family == TraceFieldFamily::Feedback;
                let kind = if feedback { AssessmentKind::Feedback } else { AssessmentKind::Expectation };
                TracePredicate::Assessment(AssessmentPredicate::new(kind, key, &comparator, value)?)
            }
        };
        self.predicates.push(predicate);
        Ok(())
    }

    fn add_attribute(&mut self, key: &str, comparator: &str, value: Option<FilterLiteral>) -> Result<()> {
        let Some(attribute) = TraceNumber::parse(key) else {
            comparators::text_attribute(comparator)?;
            let attribute =
                TraceText::parse(key).ok_or_else(|| Error::internal(format!("no such attribute: {key}")))?;
            self.predicates.push(TracePredicate::Text { attribute, test: TraceTextTest::new(comparator, value)? });
            return Ok(());
        };
        comparators::number_attribute(comparator)?;
        if attribute == TraceNumber::RequestTime
            && comparator.starts_with('>')
            && let Some(FilterLiteral::Number(from)) = value
        {
            self.spans_from = Some(self.spans_from.map_or(from, |earlier| earlier.max(from)));
        }
        let test = NumberTest::new(comparator, value, attribute == TraceNumber::EndTime)?;
        self.predicates.push(TracePredicate::Number { attribute, test });
        Ok(())
    }
}

/// Returns the text of a value. The grammar only allows texts here.
fn text_of(value: Option<FilterLiteral>) -> String {
    if let Some(FilterLiteral::Text(text)) = value { text } else { String::new() }
}
