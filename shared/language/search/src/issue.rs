//! Searches of issues: the filter, the ordering, and the fields that they use (`SearchIssuesUtils`
//! in MLflow's `search_utils.py`, `search_issues` in its SQL store).

use mlflow_api::issues::{IssueSeverity, IssueStatus, folded_category};
use mlflow_api::{Error, Result, python};

use crate::comparison::{PartNaming, comparisons};
use crate::fingerprint::Fingerprint;
use crate::identifier::unquoted;
use crate::order_by::SortDirection;
use crate::sort_key::{SortKey, SortKeyPart, SortKeyValue};

/// The fields of an issue that searches use.
pub trait IssueFields {
    /// Returns the id.
    fn id(&self) -> &str;

    /// Returns the name.
    fn name(&self) -> &str;

    /// Returns the status.
    fn status(&self) -> IssueStatus;

    /// Returns the severity.
    fn severity(&self) -> Option<IssueSeverity>;

    /// Returns the id of the run that found the issue.
    fn source_run(&self) -> Option<&str>;

    /// Returns the creation time, in ms.
    fn created(&self) -> i64;

    /// Returns the time of the last change, in ms.
    fn updated(&self) -> i64;

    /// Returns when the issue was last seen, in ms.
    fn last_seen(&self) -> i64;

    /// Checks whether the issue has one of these categories, which are given as `folded_category`
    /// returns them.
    fn has_category(&self, folded: &[String]) -> bool;

    /// Returns the number of traces that exhibit the issue.
    fn trace_count(&self) -> i64;
}

/// The parameters of a search of issues, as sent by the client.
#[derive(Clone, Debug, Default)]
pub struct IssueQuery<'a> {
    /// The filter.
    pub filter: &'a str,
    /// A part of the name.
    pub name: Option<&'a str>,
    /// The statuses.
    pub statuses: &'a [String],
    /// The severities.
    pub severities: &'a [String],
    /// The categories.
    pub categories: &'a [String],
    /// The order.
    pub order_by: &'a [String],
    /// Whether the default order includes the number of traces.
    pub by_trace_count: bool,
}

/// The fields that filters of issues support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterField {
    Status,
    SourceRun,
}

/// A comparison of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilterTest {
    field: FilterField,
    is_equal: bool,
    value: String,
}

/// The conditions of a search of issues, all of which must be met.
#[derive(Clone, Debug, PartialEq)]
pub struct IssueFilter {
    tests: Vec<FilterTest>,
    name: Option<String>,
    statuses: Vec<IssueStatus>,
    severities: Vec<IssueSeverity>,
    categories: Vec<String>,
}

/// The fields that issues can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IssueSortBy {
    Name,
    Status,
    Severity,
    TraceCount,
    Created,
    Updated,
    LastSeen,
}

/// An order of issues. Ties are broken by id, in descending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueOrder(Vec<(IssueSortBy, SortDirection)>);

/// Parses the filter and the ordering of a search of issues.
pub fn parse_issue_search(query: &IssueQuery) -> Result<(IssueFilter, IssueOrder)> {
    let statuses = query.statuses.iter().map(|status| IssueStatus::parse(status)).collect::<Result<_>>()?;
    let severities = query.severities.iter().map(|severity| IssueSeverity::parse(severity)).collect::<Result<_>>()?;
    let tests = comparisons(query.filter, PartNaming::Bare)?
        .map(|comparison| {
            let comparison = comparison?;
            let right = comparison.right.as_ref().map_or("", |right| right.text);
            test(comparison.left, comparison.comparator, right)
        })
        .collect::<Result<_>>()?;
    let filter = IssueFilter {
        tests,
        name: query.name.map(str::to_lowercase),
        statuses,
        severities,
        categories: query.categories.iter().map(|category| folded_category(category)).collect(),
    };
    Ok((filter, IssueOrder::parse(query.order_by, query.by_trace_count)?))
}

fn test(left: &str, comparator: &str, right: &str) -> Result<FilterTest> {
    let key = unquoted(left).unwrap_or(left).trim();
    let field = match key {
        "status" => FilterField::Status,
        "source_run_id" => FilterField::SourceRun,
        _ => {
            return Err(Error::invalid(format!(
                "Invalid filter field '{key}'. Supported fields: {{'status', 'source_run_id'}}"
            )));
        }
    };
    let comparator = comparator.to_uppercase();
    if !matches!(comparator.as_str(), "=" | "!=") {
        return Err(Error::invalid(format!("Invalid comparator '{comparator}'. Supported comparators: {{'=', '!='}}")));
    }
    let value = unquoted(right).unwrap_or(right).trim().to_owned();
    Ok(FilterTest { field, is_equal: comparator == "=", value })
}

impl IssueFilter {
    /// Checks whether the filter compares the run that found an issue. The result of such a search
    /// reveals which issues a run has found.
    #[must_use]
    pub fn selects_run(&self) -> bool {
        self.tests.iter().any(|test| test.field == FilterField::SourceRun)
    }

    /// Checks whether an issue meets the conditions. A missing value does not meet any comparison,
    /// not even `!=`.
    pub fn matches(&self, issue: &impl IssueFields) -> bool {
        let meets = |test: &FilterTest| {
            let value = match test.field {
                FilterField::Status => Some(issue.status().name()),
                FilterField::SourceRun => issue.source_run(),
            };
            value.is_some_and(|value| (value == test.value) == test.is_equal)
        };
        self.tests.iter().all(meets)
            && self.name.as_ref().is_none_or(|part| issue.name().to_lowercase().contains(part))
            && (self.statuses.is_empty() || self.statuses.contains(&issue.status()))
            && (self.severities.is_empty() || issue.severity().is_some_and(|own| self.severities.contains(&own)))
            && (self.categories.is_empty() || issue.has_category(&self.categories))
    }
}

impl IssueOrder {
    fn parse(order_by: &[String], by_trace_count: bool) -> Result<Self> {
        if order_by.is_empty() {
            let count = by_trace_count.then_some(IssueSortBy::TraceCount);
            let by = [Some(IssueSortBy::Severity), count, Some(IssueSortBy::Created)];
            return Ok(Self(by.into_iter().flatten().map(|by| (by, SortDirection::Descending)).collect()));
        }
        order_by.iter().map(|clause| clause_of(clause)).collect::<Result<_>>().map(Self)
    }

    /// Returns the sort key of an issue. Different issues have different keys, because the id is
    /// part of the key.
    pub fn key(&self, issue: &impl IssueFields) -> SortKey {
        let integer = SortKeyValue::Integer;
        let parts = self.0.iter().map(|(by, direction)| {
            let value = match by {
                IssueSortBy::Name => SortKeyValue::Text(issue.name().to_lowercase()),
                IssueSortBy::Status => integer(match issue.status() {
                    IssueStatus::Pending => 0,
                    IssueStatus::Rejected => 1,
                    IssueStatus::Resolved => 2,
                }),
                IssueSortBy::Severity => integer(match issue.severity() {
                    None => -1,
                    Some(IssueSeverity::NotAnIssue) => 0,
                    Some(IssueSeverity::Low) => 1,
                    Some(IssueSeverity::Medium) => 2,
                    Some(IssueSeverity::High) => 3,
                }),
                IssueSortBy::TraceCount => integer(issue.trace_count()),
                IssueSortBy::Created => integer(issue.created()),
                IssueSortBy::Updated => integer(issue.updated()),
                IssueSortBy::LastSeen => integer(issue.last_seen()),
            };
            SortKeyPart(*direction, value)
        });
        let id = SortKeyPart(SortDirection::Descending, SortKeyValue::Text(issue.id().to_owned()));
        SortKey(parts.chain([id]).collect())
    }

    /// Checks whether a key from a page token has the form of this order's keys.
    #[must_use]
    pub fn has_form(&self, key: &SortKey) -> bool {
        let directions = self.0.iter().map(|(_, direction)| *direction).chain([SortDirection::Descending]);
        key.0.iter().map(|part| part.0).eq(directions)
    }
}

fn clause_of(clause: &str) -> Result<(IssueSortBy, SortDirection)> {
    let refused = || Error::invalid(format!("Invalid issue order_by: {}", python::repr(clause)));
    let parts: Vec<_> = clause.split_whitespace().collect();
    let (field, direction) = match parts.as_slice() {
        [field] => (*field, SortDirection::Ascending),
        [field, direction] => match direction.to_uppercase().as_str() {
            "ASC" => (*field, SortDirection::Ascending),
            "DESC" => (*field, SortDirection::Descending),
            _ => return Err(refused()),
        },
        _ => return Err(refused()),
    };
    let by = match field {
        "name" => IssueSortBy::Name,
        "status" => IssueSortBy::Status,
        "severity" => IssueSortBy::Severity,
        "created_timestamp" => IssueSortBy::Created,
        "last_updated_timestamp" => IssueSortBy::Updated,
        "last_seen_timestamp" => IssueSortBy::LastSeen,
        _ => return Err(refused()),
    };
    Ok((by, direction))
}

impl IssueQuery<'_> {
    /// Returns the fingerprint of this search in an experiment, or in all experiments if
    /// `experiment` is `None`. `view` is the view in the request, if it names one.
    #[must_use]
    pub fn fingerprint(&self, experiment: Option<mlflow_api::ExperimentId>, view: Option<&str>) -> Fingerprint {
        let experiment = experiment.map_or_else(|| "every".to_owned(), |experiment| experiment.to_string());
        let by_trace_count = self.by_trace_count.to_string();
        let sorted = |values: &[String]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values.dedup();
            values
        };
        let categories: Vec<_> = self.categories.iter().map(|category| folded_category(category)).collect();
        let lists = [sorted(self.statuses), sorted(self.severities), sorted(&categories), self.order_by.to_vec()];
        Fingerprint::of_issue_search(
            &[&experiment, self.filter, self.name.unwrap_or("\0"), view.unwrap_or_default(), &by_trace_count],
            &lists,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample {
        id: &'static str,
        name: &'static str,
        severity: Option<IssueSeverity>,
        run: Option<&'static str>,
        created: i64,
    }

    const SAMPLE: Sample = Sample { id: "iss-1", name: "Wrong Tool", severity: None, run: Some("r1"), created: 7 };

    impl IssueFields for Sample {
        fn id(&self) -> &str {
            self.id
        }
        fn name(&self) -> &str {
            self.name
        }
        fn status(&self) -> IssueStatus {
            IssueStatus::Pending
        }
        fn severity(&self) -> Option<IssueSeverity> {
            self.severity
        }
        fn source_run(&self) -> Option<&str> {
            self.run
        }
        fn created(&self) -> i64 {
            self.created
        }
        fn updated(&self) -> i64 {
            self.created
        }
        fn last_seen(&self) -> i64 {
            self.created
        }
        fn has_category(&self, folded: &[String]) -> bool {
            folded.iter().any(|category| category == "latency")
        }
        fn trace_count(&self) -> i64 {
            0
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn filters_compare_status_and_run() {
        let matches = |filter: &str, issue: &Sample| {
            parse_issue_search(&IssueQuery { filter, ..IssueQuery::default() }).unwrap().0.matches(issue)
        };
        for filter in ["", "status = 'pending'", "source_run_id = 'r1' AND status != \"resolved\""] {
            assert!(matches(filter, &SAMPLE), "{filter}");
        }
        assert!(!matches("source_run_id != 'r1'", &SAMPLE));
        assert!(!matches("source_run_id != 'r1'", &Sample { run: None, ..SAMPLE }));
        for (filter, message) in [
            ("name = 'x'", "Invalid filter field 'name'. Supported fields: {'status', 'source_run_id'}"),
            ("status > 'x'", "Invalid comparator '>'. Supported comparators: {'=', '!='}"),
        ] {
            let error = parse_issue_search(&IssueQuery { filter, ..IssueQuery::default() }).unwrap_err();
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn other_conditions_are_combined() {
        let (statuses, severities) = (texts(&["pending"]), texts(&["high", "low"]));
        let categories = texts(&[" LATENCY "]);
        let query = IssueQuery {
            name: Some("wrong t"),
            statuses: &statuses,
            severities: &severities,
            categories: &categories,
            ..IssueQuery::default()
        };
        let (filter, _) = parse_issue_search(&query).unwrap();
        assert!(filter.matches(&Sample { severity: Some(IssueSeverity::Low), ..SAMPLE }));
        assert!(!filter.matches(&SAMPLE) && !filter.selects_run());
    }

    #[test]
    fn the_default_order_is_severity_and_age() {
        let (_, order) = parse_issue_search(&IssueQuery::default()).unwrap();
        let high = Sample { severity: Some(IssueSeverity::High), ..SAMPLE };
        let newer = Sample { created: 8, ..SAMPLE };
        let greater_id = Sample { id: "iss-2", ..SAMPLE };
        let keys = [&high, &newer, &greater_id, &SAMPLE].map(|issue| order.key(issue));
        assert!(keys.is_sorted());
        let by_name = texts(&["name DESC"]);
        let (_, by_name) = parse_issue_search(&IssueQuery { order_by: &by_name, ..IssueQuery::default() }).unwrap();
        assert!(by_name.has_form(&by_name.key(&SAMPLE)) && !by_name.has_form(&order.key(&SAMPLE)));
        for clause in ["", "name UP", "name ASC x", "id"] {
            let order_by = texts(&[clause]);
            assert!(parse_issue_search(&IssueQuery { order_by: &order_by, ..IssueQuery::default() }).is_err());
        }
    }
}
