//! Fingerprints of searches, which identify a search when its next page is requested.

use mlflow_api::ExperimentId;
use mlflow_api::tracking::ViewType;
use serde::{Deserialize, Serialize};

/// A hash of everything that determines which rows a search finds, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Returns the fingerprint of a run search. The order of the experiments is irrelevant.
    #[must_use]
    pub fn of_run_search(experiments: &[ExperimentId], filter: &str, order_by: &[String], view: ViewType) -> Self {
        let mut experiments = experiments.to_vec();
        experiments.sort_unstable();
        experiments.dedup();
        let hash = FnvHash::new("runs").count(experiments.len());
        let hash = experiments.iter().fold(hash, |hash, id| hash.text(&id.to_string()));
        hash.query(filter, order_by, view)
    }

    /// Returns the fingerprint of an experiment search.
    #[must_use]
    pub fn of_experiment_search(filter: &str, order_by: &[String], view: ViewType) -> Self {
        FnvHash::new("experiments").query(filter, order_by, view)
    }

    /// Returns the fingerprint of a search of registered models.
    #[must_use]
    pub fn of_registered_model_search(filter: &str, order_by: &[String]) -> Self {
        FnvHash::new("registered models").query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of a search of model versions.
    #[must_use]
    pub fn of_version_search(filter: &str, order_by: &[String]) -> Self {
        FnvHash::new("model versions").query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of a search of evaluation datasets. The order of the experiments is
    /// irrelevant.
    #[must_use]
    pub fn of_dataset_search(experiments: &[String], filter: &str, order_by: &[String]) -> Self {
        let mut experiments: Vec<_> = experiments.iter().collect();
        experiments.sort_unstable();
        experiments.dedup();
        let hash = FnvHash::new("evaluation datasets").count(experiments.len());
        let hash = experiments.iter().fold(hash, |hash, id| hash.text(id));
        hash.query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of a search of traces. The order of the experiments is irrelevant.
    #[must_use]
    pub fn of_trace_search(experiments: &[ExperimentId], filter: &str, order_by: &[String]) -> Self {
        let mut experiments = experiments.to_vec();
        experiments.sort_unstable();
        experiments.dedup();
        let hash = FnvHash::new("traces").count(experiments.len());
        let hash = experiments.iter().fold(hash, |hash, id| hash.text(&id.to_string()));
        hash.query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of a search in the registry of MCP servers. `of` contains the kind of
    /// entity, and further parameters of the search.
    #[must_use]
    pub fn of_mcp_search(of: &[&str], filter: &str, order_by: &[String]) -> Self {
        let hash = FnvHash::new("mcp servers").count(of.len());
        of.iter().fold(hash, |hash, text| hash.text(text)).query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of a search in the registry of skills. `of` contains the kind of the
    /// entities, and for versions also the name of their skill.
    #[must_use]
    pub fn of_skill_search(of: &[&str], filter: &str, order_by: &[String]) -> Self {
        let hash = FnvHash::new("skills").count(of.len());
        of.iter().fold(hash, |hash, text| hash.text(text)).query(filter, order_by, ViewType::All)
    }

    /// Returns the fingerprint of the records of an evaluation dataset.
    #[must_use]
    pub fn of_dataset_records(dataset: &str) -> Self {
        Self(FnvHash::new("dataset records").text(dataset).0)
    }

    /// Returns the fingerprint of a list of an experiment's entities, such as its review queues, with
    /// these conditions.
    #[must_use]
    pub fn of_list(kind: &str, container: &str, conditions: &[Option<&str>]) -> Self {
        let hash = FnvHash::new("list").text(kind).text(container);
        let add = |hash: FnvHash, condition: Option<&str>| match condition {
            Some(condition) => hash.count(1).text(condition),
            None => hash.count(0),
        };
        Self(conditions.iter().copied().fold(hash, add).0)
    }

    /// Returns the fingerprint of a search of issues. `values` are the parameters with a single
    /// value, and `lists` those with several.
    #[must_use]
    pub(crate) fn of_issue_search(values: &[&str], lists: &[Vec<String>]) -> Self {
        let hash = values.iter().fold(FnvHash::new("issues"), |hash, value| hash.text(value));
        let add_list = |hash: FnvHash, list: &Vec<String>| {
            list.iter().fold(hash.count(list.len()), |hash, value| hash.text(value))
        };
        Self(lists.iter().fold(hash, add_list).0)
    }

    /// Returns the fingerprint of the list of a workspace's webhooks.
    #[must_use]
    pub fn of_webhook_list(workspace: &str) -> Self {
        Self(FnvHash::new("webhooks").text(workspace).0)
    }

    /// Returns the fingerprint of the history of a metric.
    #[must_use]
    pub fn of_metric_history(run_id: &str, metric: &str) -> Self {
        Self(FnvHash::new("metric history").text(run_id).text(metric).0)
    }
}

/// An FNV-1a hash of 64 bits. Unlike the standard library's hasher, it is stable across machines
/// and versions.
///
/// The hash is meant to detect mistakes, not attacks. A caller who constructs two searches with
/// equal hashes, or forges a token, only gets a wrong page of the caller's own search, and the page
/// still contains only entities that the caller may read.
struct FnvHash(u64);

impl FnvHash {
    fn new(kind: &str) -> Self {
        Self(0xcbf2_9ce4_8422_2325).text(kind)
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// Adds a text to the hash. The length is added first, so that moving a character from one text
    /// to the next changes the hash.
    fn text(self, text: &str) -> Self {
        self.count(text.len()).bytes(text.as_bytes())
    }

    fn count(self, count: usize) -> Self {
        self.bytes(&(count as u64).to_le_bytes())
    }

    fn query(self, filter: &str, order_by: &[String], view: ViewType) -> Fingerprint {
        let hash = self.text(filter).text(view_name(view)).count(order_by.len());
        Fingerprint(order_by.iter().fold(hash, |hash, clause| hash.text(clause)).0)
    }
}

/// Returns the view as a single word.
pub(crate) fn view_name(view: ViewType) -> &'static str {
    match view {
        ViewType::ActiveOnly => "active",
        ViewType::DeletedOnly => "deleted",
        ViewType::All => "all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(FnvHash(0xcbf2_9ce4_8422_2325).bytes(b"foobar").0, 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_part_of_a_search_counts() {
        let id = |number| ExperimentId::from_number(number).unwrap();
        let order = |clauses: &[&str]| clauses.iter().map(|&clause| clause.to_owned()).collect::<Vec<_>>();
        let prints = [
            Fingerprint::of_run_search(&[id(1)], "", &[], ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1), id(2)], "", &[], ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(12)], "", &[], ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1)], "a", &[], ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1)], "", &order(&["a"]), ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1)], "", &order(&["a", ""]), ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1)], "", &[], ViewType::All),
            Fingerprint::of_run_search(&[], "", &[], ViewType::ActiveOnly),
            Fingerprint::of_experiment_search("", &[], ViewType::ActiveOnly),
            Fingerprint::of_dataset_search(&[], "", &[]),
            Fingerprint::of_dataset_search(&order(&["1"]), "", &[]),
            Fingerprint::of_dataset_search(&[], "", &order(&["1"])),
            Fingerprint::of_dataset_records("d-1"),
            Fingerprint::of_webhook_list("d-1"),
        ];
        for (place, print) in prints.iter().enumerate() {
            assert!(!prints[..place].contains(print), "{place}");
        }
        assert_eq!(
            Fingerprint::of_run_search(&[id(2), id(1), id(1)], "", &[], ViewType::ActiveOnly),
            Fingerprint::of_run_search(&[id(1), id(2)], "", &[], ViewType::ActiveOnly)
        );
    }
}
