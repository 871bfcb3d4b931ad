//! Ids of traces and assessments, which clients may choose.

use std::fmt;

use crate::error::{Error, Result};
use crate::ids::RunId;

/// The id of a trace: `tr-` followed by the 32 hexadecimal digits of an OpenTelemetry trace id, or
/// any other text that matches the grammar of [`RunId::parse`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(String);

const TRACE_PREFIX: &str = "tr-";
const ASSESSMENT_PREFIX: &str = "a-";
/// Maximum length of the id of an assessment, in characters (`SqlAssessments` in MLflow's
/// `models.py`).
const ASSESSMENT: usize = 50;

impl TraceId {
    /// Creates the id of an OpenTelemetry trace.
    #[must_use]
    pub fn new(id: u128) -> Self {
        Self(format!("{TRACE_PREFIX}{id:032x}"))
    }

    /// Creates an id for a trace from an old client, which leaves the choice of the id to the
    /// server (`generate_request_id_v2`). All bits are random.
    #[must_use]
    pub fn made_here(random: u128) -> Self {
        Self(format!("{random:032x}"))
    }

    /// Accepts any id that may be part of a key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        RunId::parse(text).map(|_| Self(text.to_owned()))
    }

    /// Checks whether this is the id of an OpenTelemetry trace, as created by [`TraceId::new`].
    #[must_use]
    pub fn is_opentelemetry(&self) -> bool {
        let digits = self.0.strip_prefix(TRACE_PREFIX).unwrap_or_default();
        digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the id in a request. A text that cannot be the id of a trace is treated as the id of
    /// a trace that does not exist.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST`.
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| Self::not_found(text))
    }

    /// Returns the error for a trace that does not exist.
    #[must_use]
    pub fn not_found(text: &str) -> Error {
        Error::not_found(format!("Trace with ID '{text}' not found."))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of an assessment: `a-` followed by 32 hexadecimal digits, or a text that the client has
/// chosen. It is unique within its trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssessmentId(String);

impl AssessmentId {
    /// Creates an id. All bits are random.
    #[must_use]
    pub fn new(random: u128) -> Self {
        Self(format!("{ASSESSMENT_PREFIX}{random:032x}"))
    }

    /// Parses an id that a client has chosen. Returns `None` if it is empty or too long.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (!text.is_empty() && text.chars().count() <= ASSESSMENT).then(|| Self(text.to_owned()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AssessmentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_opentelemetry_are_told_from_others() {
        assert!(TraceId::new(u128::MAX / 3).is_opentelemetry());
        let hex = "0123456789abcdef0123456789abcdef";
        for other in [hex.to_owned(), format!("tr-{}", hex.to_uppercase()), format!("tr-{hex}0"), "tr-1".to_owned()] {
            assert!(!TraceId::parse(&other).unwrap().is_opentelemetry(), "{other}");
        }
    }

    #[test]
    fn ids_are_taken_and_made() {
        assert_eq!(TraceId::new(7).as_str(), "tr-00000000000000000000000000000007");
        assert_eq!(TraceId::parse("tr-1").unwrap().to_string(), "tr-1");
        assert_eq!(TraceId::made_here(u128::MAX).as_str().len(), 32);
        assert_eq!(TraceId::named("a#b").unwrap_err().message, "Trace with ID 'a#b' not found.");
        assert_eq!(AssessmentId::new(1).as_str().len(), 34);
        assert_eq!((AssessmentId::parse(""), AssessmentId::parse(&"a".repeat(51))), (None, None));
    }
}
