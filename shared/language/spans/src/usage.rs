//! Tokens and cost of a trace, derived from those of its spans.
//!
//! Some SDKs report counts on each call of a model, some on the agent span above it, and some on
//! both. To avoid counting tokens twice, the descendants of a span with counts are ignored. This
//! requires the tree of spans, so a [`TraceUsage`] stores the position of every span in the tree.
//! Two usages of one trace can be merged.

use std::collections::HashMap;

use indexmap::IndexMap;
use mlflow_api::Json;
use mlflow_api::json::JsonObject;

use crate::Span;
use crate::attributes::value_of;
use crate::translate::{keys, parsed};

const COUNTS: [&str; 6] = [
    keys::INPUT_TOKENS,
    keys::OUTPUT_TOKENS,
    keys::TOTAL_TOKENS,
    keys::CACHE_READ,
    keys::CACHE_CREATION,
    keys::CACHE_CREATION_1HR,
];

/// Number of leading elements of [`COUNTS`] that a trace's usage always contains, even if no span
/// reports them.
const REQUIRED_COUNTS: usize = 3;

const COSTS: [&str; 3] = [keys::INPUT_COST, keys::OUTPUT_COST, keys::TOTAL_COST];

/// Tokens and cost of the spans of one trace, or of some of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceUsage {
    nodes: IndexMap<Vec<u8>, SpanUsage>,
}

/// The usage of one span.
#[derive(Clone, Debug, PartialEq)]
struct SpanUsage {
    parent: Vec<u8>,
    tokens: Option<JsonObject>,
    cost: Option<JsonObject>,
}

impl TraceUsage {
    pub(crate) fn add(&mut self, span: &Span) {
        let said = |key: &str| match value_of(span, key).map(|value| parsed(&value)) {
            Some(Json::Object(object)) => Some(object),
            _ => None,
        };
        let node = SpanUsage { parent: span.parent_span_id.clone(), tokens: said(keys::USAGE), cost: said(keys::COST) };
        self.nodes.insert(span.span_id.clone(), node);
    }

    /// Checks whether no span has tokens or cost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.values().all(|node| node.tokens.is_none() && node.cost.is_none())
    }

    /// Adds later spans. If spans have the same ID, the later one is kept.
    pub fn merge(&mut self, later: Self) {
        self.nodes.extend(later.nodes);
    }

    /// Returns the counts, each with its name. Empty if no span has counts.
    #[must_use]
    pub fn token_counts(&self) -> Vec<(&'static str, i64)> {
        let sums = self.sums(&COUNTS, |node| node.tokens.as_ref());
        let counts = sums.into_iter().enumerate().filter_map(|(place, (name, sum))| {
            let sum = if place < REQUIRED_COUNTS { Some(sum.unwrap_or(PythonSum::Integer(0))) } else { sum };
            Some((name, sum?.count()?))
        });
        counts.collect()
    }

    /// Returns the costs in US dollars, each with its name. Empty if no span has a cost.
    #[must_use]
    pub fn costs(&self) -> Vec<(&'static str, f64)> {
        let sums = self.sums(&COSTS, |node| node.cost.as_ref());
        let costs = sums.into_iter().map(|(name, sum)| (name, sum.map_or(0.0, PythonSum::number)));
        costs.filter(|(_, cost)| cost.is_finite()).collect()
    }

    /// Returns the value of the metadata `mlflow.trace.tokenUsage`.
    #[must_use]
    pub fn tokens(&self) -> Option<String> {
        let counts = self.token_counts().into_iter();
        printed(counts.map(|(name, count)| (name.to_owned(), Json::Integer(count.to_string()))).collect())
    }

    /// Returns the value of the metadata `mlflow.trace.cost`.
    #[must_use]
    pub fn cost(&self) -> Option<String> {
        printed(self.costs().into_iter().map(|(name, cost)| (name.to_owned(), Json::Float(cost))).collect())
    }

    /// Sums over the spans that have values, but not over the descendants of these spans. Empty if
    /// no span has values.
    fn sums<const N: usize>(
        &self,
        names: &[&'static str; N],
        said: impl Fn(&SpanUsage) -> Option<&JsonObject>,
    ) -> Vec<(&'static str, Option<PythonSum>)> {
        let mut children: HashMap<&[u8], Vec<&Vec<u8>>> = HashMap::new();
        let mut waiting = Vec::new();
        for (id, node) in &self.nodes {
            if self.nodes.contains_key(&node.parent) {
                children.entry(&node.parent).or_default().push(id);
            } else {
                waiting.push(id);
            }
        }
        // Floats are added in MLflow's order, because the order affects the rounding of the sum.
        let mut sums = [None; N];
        let mut any = false;
        while let Some(id) = waiting.pop() {
            let Some(node) = self.nodes.get(id) else { continue };
            let Some(object) = said(node) else {
                waiting.extend(children.get(id.as_slice()).into_iter().flatten());
                continue;
            };
            any = true;
            for (sum, name) in sums.iter_mut().zip(names) {
                if let Some(value) = object.get(name).and_then(PythonSum::of) {
                    *sum = Some(sum.unwrap_or(PythonSum::Integer(0)).plus(value));
                }
            }
        }
        if any { names.iter().copied().zip(sums).collect() } else { Vec::new() }
    }
}

fn printed(object: JsonObject) -> Option<String> {
    (!object.is_empty()).then(|| Json::Object(object).print())
}

/// A number that is added as in Python. Values that are not numbers are omitted.
#[derive(Clone, Copy, Debug)]
enum PythonSum {
    Integer(i128),
    Float(f64),
}

impl PythonSum {
    fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Integer(digits) => digits.parse().ok().map(Self::Integer),
            Json::Float(number) => Some(Self::Float(*number)),
            Json::Bool(value) => Some(Self::Integer(i128::from(*value))),
            _ => None,
        }
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Self::Integer(one.saturating_add(other)),
            _ => Self::Float(self.number() + other.number()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as in Python")]
    fn number(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Returns the sum as a 64-bit integer, or `None` if it is not an integer or does not fit,
    /// because MLflow stores it in a column of integers.
    fn count(self) -> Option<i64> {
        match self {
            Self::Integer(number) => i64::try_from(number).ok(),
            Self::Float(number) if number.is_finite() && number.fract() == 0.0 => format!("{number:.0}").parse().ok(),
            Self::Float(_) => None,
        }
    }
}
