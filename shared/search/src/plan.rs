//! How a search is carried out.

use std::fmt;

use mlflow_api::tracking::ViewType;

use crate::filter::RunFilter;
use crate::fingerprint::view_name;
use crate::order_by::RunOrder;

/// How the runs of a search are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPath {
    /// Read all runs of the experiments, keep those that pass, and sort them.
    ReadExperiments,
    /// Read the page from the index of runs by start time, where the runs already are in order.
    LatestFirst,
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReadExperiments => "read the experiments",
            Self::LatestFirst => "latest first",
        })
    }
}

/// A search of runs, ready to be carried out. Whatever the path, the runs found are those that pass the filter and the
/// view, in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Where to look.
    pub path: AccessPath,
    /// What the path leaves to be checked on each run.
    pub filter: RunFilter,
    /// The order of the answer.
    pub order: RunOrder,
    /// Whether deleted runs are seen.
    pub view: ViewType,
}

/// Plans a search of runs.
#[must_use]
pub fn plan_run_search(filter: RunFilter, order: RunOrder, view: ViewType) -> RunPlan {
    let in_index_order = filter.predicates.is_empty() && order == RunOrder::default();
    let path = if in_index_order { AccessPath::LatestFirst } else { AccessPath::ReadExperiments };
    RunPlan { path, filter, order, view }
}

impl fmt::Display for RunPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path)?;
        if !self.filter.predicates.is_empty() {
            write!(formatter, "\n  keep {}", self.filter)?;
        }
        write!(formatter, "\n  view {}\n  order {}", view_name(self.view), self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_run_search;

    fn plan(filter: &str, order_by: &[&str], view: ViewType) -> String {
        let order_by: Vec<_> = order_by.iter().map(|&clause| clause.to_owned()).collect();
        let (filter, order) = parse_run_search(filter, &order_by).unwrap();
        plan_run_search(filter, order, view).to_string()
    }

    #[test]
    fn the_default_search_is_read_from_the_index() {
        let expected = "latest first\n  view active\n  order start_time DESC, run_id ASC";
        assert_eq!(plan("", &[], ViewType::ActiveOnly), expected);
        assert_eq!(plan("", &["attributes.start_time DESC"], ViewType::ActiveOnly), expected);
        assert_eq!(plan("", &["created desc"], ViewType::ActiveOnly), expected);
    }

    #[test]
    fn a_filter_or_another_order_reads_the_experiments() {
        assert_eq!(
            plan("metrics.acc > 0.5 and params.m = 'it' AND run_name != \"x\"", &[], ViewType::All),
            "read the experiments\n  keep metrics.`acc` > 0.5 AND params.`m` = 'it' AND tags.`mlflow.runName` != 'x'\n\
             \x20 view all\n  order start_time DESC, run_id ASC"
        );
        assert_eq!(
            plan("", &["metrics.`val loss`", "run_name DESC"], ViewType::DeletedOnly),
            "read the experiments\n  view deleted\n  order metrics.`val loss` ASC, run_name DESC, start_time DESC, \
             run_id ASC"
        );
        assert_eq!(
            plan("", &["start_time ASC"], ViewType::ActiveOnly),
            "read the experiments\n  view active\n  order start_time ASC, run_id ASC"
        );
    }
}
