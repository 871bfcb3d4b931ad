//! Counts the usage of workspaces: runs that are created, traces that begin, and bytes of spans.
//!
//! The stream contains records of these events anyway, so counting requires no additional records.
//! A batch that is delivered twice is counted twice. The bytes of an export are counted only if the
//! export writes a mark. The first export of a trace does so, and later ones about once per minute.
//! If several processes export spans of a trace, they may each write a mark with spans. Such a trace is
//! counted once per batch.
//! Imported runs and traces are not counted, because they were not created here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use entities::attributes::{BYTES, IMPORTED, TRACE_EXISTS, WORKSPACE};
use entities::quota::{QuotaKind, day_of};
use entities::workspace_named;
use entities::workspaces::Workspaces;
use key_schema::{Key, rows};
use mlflow_api::{ExperimentId, Workspace};
use serde_json::Value;
use table::Table;
use trace_blocks::{TraceKey, TracePartition, is_mark};

use crate::stream_batch::StreamBatch;

/// Maximum number of experiments whose workspaces are cached.
const MAX_CACHED_EXPERIMENTS: usize = 10_000;

type UsageAmounts = BTreeMap<QuotaKind, i64>;

/// The usage of experiments in a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchUsage(BTreeMap<ExperimentId, UsageAmounts>);

impl BatchUsage {
    /// Sums up the usage of each experiment in the records of a batch.
    pub(crate) fn of(batch: &StreamBatch) -> Self {
        let (mut brought, mut begun) = (Self::default(), HashSet::new());
        for record in &batch.records {
            brought.add(record, &mut begun);
        }
        brought
    }

    /// Adds a record. `begun` are the traces that have been counted. Several processes may put marks
    /// with spans for one trace.
    fn add(&mut self, record: &Value, begun: &mut HashSet<(TracePartition, TraceKey)>) -> Option<()> {
        let is_new = match record.get("eventName")?.as_str()? {
            "INSERT" => true,
            "MODIFY" => false,
            _ => return None,
        };
        let part = |name: &str| record.pointer(&format!("/dynamodb/Keys/{name}/S")).and_then(Value::as_str);
        let key = Key { pk: part("PK")?.to_owned(), sk: part("SK")?.to_owned() };
        let is_imported = record.pointer(&format!("/dynamodb/NewImage/{IMPORTED}/S")).is_some();
        let mut count = |experiment, what, much: i64| {
            *self.0.entry(experiment).or_default().entry(what).or_default() += much;
        };
        if let Some(run) = rows::Run::parse(&key).filter(|_| is_new && !is_imported) {
            count(run.experiment, QuotaKind::Runs, 1);
        }
        if is_mark(&key) && !is_imported {
            let (partition, place) = (TracePartition::of_key(&key)?, TraceKey::of_key(&key)?);
            let experiment = partition.experiment;
            let exists = record.pointer(&format!("/dynamodb/NewImage/{TRACE_EXISTS}/N")).is_some();
            if is_new && !exists && begun.insert((partition, place)) {
                count(experiment, QuotaKind::Traces, 1);
            }
            let bytes = record.pointer(&format!("/dynamodb/NewImage/{BYTES}/N")).and_then(Value::as_str);
            if let Some(bytes) = bytes.and_then(|bytes| bytes.parse().ok()) {
                count(experiment, QuotaKind::Bytes, bytes);
            }
        }
        Some(())
    }
}

/// The usage counter for the workspaces of a table.
#[derive(Clone)]
pub(crate) struct UsageCounter {
    table: Table,
    workspaces: Workspaces,
    workspace_cache: Arc<Mutex<HashMap<ExperimentId, Workspace>>>,
}

impl std::fmt::Debug for UsageCounter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Counting")
    }
}

impl UsageCounter {
    pub(crate) fn of(table: Table) -> Self {
        Self { workspaces: Workspaces::new(table.clone()), table, workspace_cache: Arc::default() }
    }

    /// Adds the usage to the daily totals of the workspaces. Takes one request for each workspace,
    /// and one per hundred experiments that are not in the cache.
    pub(crate) async fn count(&self, brought: BatchUsage, now: i64) -> mlflow_api::Result<()> {
        let of = self.workspaces_of(brought.0.keys().copied().collect()).await?;
        let mut amounts = BTreeMap::<Workspace, UsageAmounts>::new();
        for (experiment, brought) in brought.0 {
            let Some(workspace) = of.get(&experiment) else { continue };
            for (what, much) in brought {
                *amounts.entry(workspace.clone()).or_default().entry(what).or_default() += much;
            }
        }
        for (workspace, amounts) in amounts {
            self.workspaces.add(&workspace, day_of(now), &amounts).await?;
        }
        Ok(())
    }

    async fn workspaces_of(
        &self,
        experiments: Vec<ExperimentId>,
    ) -> mlflow_api::Result<HashMap<ExperimentId, Workspace>> {
        let mut found = HashMap::new();
        let mut unknown = Vec::new();
        {
            let mut known = self.workspace_cache.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() > MAX_CACHED_EXPERIMENTS {
                known.clear();
            }
            for experiment in experiments {
                match known.get(&experiment) {
                    Some(workspace) => drop(found.insert(experiment, workspace.clone())),
                    None => unknown.push(experiment),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(found);
        }
        let keys: Vec<_> = unknown.iter().map(rows::Experiment::key).collect();
        let items = self.table.get_many(&keys).await?;
        for (experiment, key) in unknown.into_iter().zip(keys) {
            if let Some(item) = items.get(&key) {
                let workspace = workspace_named(item.get(WORKSPACE)).map_err(mlflow_api::Error::internal)?;
                found.insert(experiment, workspace);
            }
        }
        let mut known = self.workspace_cache.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(found.iter().map(|(experiment, workspace)| (*experiment, workspace.clone())));
        Ok(found)
    }

    /// Enforces the quotas of workspaces.
    pub(crate) async fn enforce_quotas(&self) -> mlflow_api::Result<()> {
        // The cache is cleared, because experiments may have been moved to another workspace in the
        // meantime.
        self.workspace_cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.workspaces.hold_to_quotas().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_runs_and_traces_count_and_bytes_of_each_export() {
        let record = |event: &str, pk: &str, sk: String, image: Value| {
            json!({ "eventName": event, "dynamodb": {
                "Keys": { "PK": { "S": pk }, "SK": { "S": sk } }, "NewImage": image } })
        };
        let experiment = ExperimentId::from_number(7).unwrap();
        let run = rows::Run::key(&experiment, &mlflow_api::RunId::new(1, experiment, 1));
        let partition = TracePartition { experiment, day: 3, shard: 0 };
        let trace = mlflow_api::TraceId::named("tr-1").unwrap();
        let mark = partition.mark_key(&trace_blocks::TraceKey { time: 5, trace });
        let of = |bytes: &str| json!({ (BYTES): { "N": bytes } });
        let imported = json!({ (IMPORTED): { "S": "0" }, (BYTES): { "N": "7" } });
        let records = vec![
            record("INSERT", &run.pk, run.sk.clone(), imported.clone()),
            record("INSERT", &mark.pk, mark.sk.clone(), imported),
            record("INSERT", &run.pk, run.sk.clone(), json!({})),
            record("MODIFY", &run.pk, run.sk, json!({})),
            record("INSERT", &mark.pk, mark.sk.clone(), of("100")),
            record("MODIFY", &mark.pk, mark.sk, of("20")),
            record("REMOVE", "EXP#7", "R#x".to_owned(), json!({})),
            json!({}),
        ];
        let amounts = UsageAmounts::from([(QuotaKind::Runs, 1), (QuotaKind::Traces, 1), (QuotaKind::Bytes, 120)]);
        assert_eq!(BatchUsage::of(&StreamBatch { records }), BatchUsage(BTreeMap::from([(experiment, amounts)])));
    }
}
