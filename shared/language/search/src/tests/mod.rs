//! Tests of complete searches.

mod bounds;
mod evaluation;
mod messages;
mod ordering;
mod paging;

use std::collections::BTreeMap;

use mlflow_api::ExperimentId;

use crate::{
    DatasetInputFields, ExperimentFields, ExperimentNumber, RunFields, RunFilter, RunNumber, RunOrder, RunText,
    parse_run_filter, parse_run_order_by,
};

/// A run in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestRun {
    pub(crate) id: String,
    pub(crate) name: Option<&'static str>,
    pub(crate) status: Option<&'static str>,
    pub(crate) start_time: Option<i64>,
    pub(crate) end_time: Option<i64>,
    pub(crate) user_id: Option<&'static str>,
    pub(crate) metrics: BTreeMap<&'static str, f64>,
    pub(crate) params: BTreeMap<&'static str, &'static str>,
    pub(crate) tags: BTreeMap<&'static str, &'static str>,
    pub(crate) datasets: Vec<DatasetInputFields<'static>>,
}

impl RunFields for TestRun {
    fn text(&self, attribute: RunText) -> Option<&str> {
        match attribute {
            RunText::RunId => Some(&self.id),
            RunText::RunName => self.name,
            RunText::Status => self.status,
            RunText::UserId => self.user_id,
            RunText::ArtifactUri => None,
        }
    }

    fn number(&self, attribute: RunNumber) -> Option<i64> {
        match attribute {
            RunNumber::StartTime => self.start_time,
            RunNumber::EndTime => self.end_time,
        }
    }

    fn metric(&self, key: &str) -> Option<f64> {
        self.metrics.get(key).copied()
    }

    fn param(&self, key: &str) -> Option<&str> {
        self.params.get(key).copied()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).copied()
    }

    fn datasets(&self) -> impl Iterator<Item = DatasetInputFields<'_>> {
        self.datasets.iter().copied()
    }
}

/// An experiment in memory.
struct TestExperiment {
    id: u64,
    name: &'static str,
    created: i64,
    tags: BTreeMap<&'static str, &'static str>,
}

impl ExperimentFields for TestExperiment {
    fn id(&self) -> ExperimentId {
        ExperimentId::from_number(self.id).unwrap()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn number(&self, attribute: ExperimentNumber) -> i64 {
        match attribute {
            ExperimentNumber::CreationTime => self.created,
            ExperimentNumber::LastUpdateTime => self.created + 1,
        }
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).copied()
    }
}

fn filter(text: &str) -> RunFilter {
    parse_run_filter(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn owned(clauses: &[&str]) -> Vec<String> {
    clauses.iter().map(|&clause| clause.to_owned()).collect()
}

fn order(clauses: &[&str]) -> RunOrder {
    parse_run_order_by(&owned(clauses)).unwrap_or_else(|error| panic!("{clauses:?}: {error}"))
}
