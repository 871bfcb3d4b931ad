//! A plain in-memory model of experiments, runs, logged models, the registry, evaluation datasets,
//! scorers and traces.

use std::collections::{BTreeMap, BTreeSet};

use super::operation::Kind::*;
use super::operation::{Op, points, stage, word};
use super::traces::Trace;

pub(super) type Texts = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Experiment {
    pub(super) name: String,
    pub(super) is_deleted: bool,
    pub(super) tags: Texts,
    /// Retention of the experiment's traces, if the experiment has a tag for it.
    pub(super) retention: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) experiment: u8,
    pub(super) is_deleted: bool,
    pub(super) is_finished: bool,
    pub(super) params: Texts,
    pub(super) tags: Texts,
    /// Points of each metric, as step and value.
    pub(super) metrics: BTreeMap<String, BTreeSet<(i64, i64)>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Logged {
    pub(super) experiment: u8,
    pub(super) is_ready: bool,
    pub(super) is_deleted: bool,
    pub(super) params: Texts,
    pub(super) tags: Texts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Registered {
    /// Number of versions that were ever created. Clients cannot see this number.
    pub(super) had: u32,
    /// Stage and tags of each version.
    pub(super) versions: BTreeMap<u32, (String, Texts)>,
    pub(super) aliases: BTreeMap<String, u32>,
    pub(super) tags: Texts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dataset {
    pub(super) tags: Texts,
    /// Outputs of each record, by its inputs.
    pub(super) records: BTreeMap<u8, String>,
    pub(super) experiments: BTreeSet<u8>,
}

/// All entities, by the numbers that they have in operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) experiments: BTreeMap<u8, Experiment>,
    pub(super) runs: BTreeMap<u8, Run>,
    pub(super) models: BTreeMap<u8, Logged>,
    pub(super) registered: BTreeMap<String, Registered>,
    pub(super) datasets: BTreeMap<u8, Dataset>,
    /// Versions of each scorer of each experiment.
    pub(super) scorers: BTreeMap<(u8, String), BTreeMap<u32, String>>,
    pub(super) traces: BTreeMap<u8, Trace>,
    /// Retention of traces, for experiments without a tag of their own.
    pub(super) policy: Option<u8>,
    /// Spans, by trace and experiment, that do not belong to a visible trace. The indexer may
    /// remove them.
    pub(super) strays: BTreeMap<(u8, u8), BTreeSet<u8>>,
    /// Runs that were linked to a trace before the trace arrived.
    pub(super) awaited: BTreeMap<u8, BTreeSet<u8>>,
}

/// Result of an operation: the number of the version that it created, if any.
pub(super) type Made = Option<u32>;

impl State {
    /// Returns the part of the state that clients can see.
    pub(super) fn visible(&self) -> Self {
        let mut visible = self.clone();
        visible.registered.values_mut().for_each(|model| model.had = 0);
        visible.models.retain(|_, model| !model.is_deleted);
        visible.scorers.retain(|(experiment, _), _| self.is_active(*experiment));
        visible.traces.values_mut().filter(|trace| !trace.is_exported).for_each(|trace| trace.spans.clear());
        visible.traces.retain(|_, trace| self.is_kept(trace));
        visible.policy = None;
        visible.strays.clear();
        visible.awaited.clear();
        visible
    }

    /// Returns the state after all deleted entities were permanently removed. A deleted experiment
    /// is kept if one of its runs was restored individually.
    pub(super) fn removed(mut self) -> Self {
        self.runs.retain(|_, run| !run.is_deleted);
        let with_runs: BTreeSet<_> = self.runs.values().map(|run| run.experiment).collect();
        self.experiments.retain(|slot, experiment| !experiment.is_deleted || with_runs.contains(slot));
        let active: BTreeSet<_> = self.experiments.keys().copied().filter(|slot| self.is_active(*slot)).collect();
        let experiments = &self.experiments;
        // A deleted experiment that is kept also keeps its deleted models.
        self.models.retain(|_, model| {
            experiments.contains_key(&model.experiment) && !(model.is_deleted && active.contains(&model.experiment))
        });
        self.scorers.retain(|(experiment, _), _| experiments.contains_key(experiment));
        self.traces.retain(|_, trace| experiments.contains_key(&trace.experiment));
        self.strays.retain(|(_, experiment), _| experiments.contains_key(experiment));
        let runs = &self.runs;
        self.traces.values_mut().for_each(|trace| trace.runs.retain(|run| runs.contains_key(run)));
        self.awaited.values_mut().for_each(|linked| linked.retain(|run| runs.contains_key(run)));
        for dataset in self.datasets.values_mut() {
            dataset.experiments.retain(|experiment| experiments.contains_key(experiment));
        }
        self
    }

    /// Returns whether clients may find this state while deleted entities are being removed. Each
    /// entity must be unchanged, or gone if it is to be removed.
    pub(super) fn is_being_removed(&self, found: &Self) -> bool {
        fn between<K: Ord, V: PartialEq>(all: &BTreeMap<K, V>, found: &BTreeMap<K, V>, left: &BTreeMap<K, V>) -> bool {
            found.iter().all(|(key, value)| all.get(key) == Some(value))
                && left.keys().all(|key| found.contains_key(key))
        }
        // When a run is removed, its links are removed as well.
        let without_links = |mut state: Self| {
            state.traces.values_mut().for_each(|trace| trace.runs.clear());
            state.traces
        };
        let (all, left) = (self.visible(), self.clone().removed().visible());
        between(&all.experiments, &found.experiments, &left.experiments)
            && between(&all.runs, &found.runs, &left.runs)
            && between(&all.models, &found.models, &left.models)
            && all.registered == found.registered
            && between(&without_links(all), &without_links(found.clone()), &without_links(left))
    }

    /// Returns whether an entity of this name exists.
    pub(super) fn knows(&self, name: &str) -> bool {
        let slot = name[1..].parse::<u8>();
        match (&name[..1], slot) {
            ("e", Ok(slot)) => self.experiments.contains_key(&slot),
            ("r", Ok(slot)) => self.runs.contains_key(&slot),
            ("m", Ok(slot)) => self.models.contains_key(&slot),
            _ => true,
        }
    }

    pub(super) fn is_active(&self, experiment: u8) -> bool {
        self.experiments.get(&experiment).is_some_and(|experiment| !experiment.is_deleted)
    }

    /// Returns whether an operation may create an entity that cannot be distinguished from an
    /// existing one: an experiment of the same number may have been renamed, possibly concurrently.
    pub(super) fn is_ambiguous(&self, op: Op, is_with_others: bool) -> bool {
        match op.kind {
            ExperimentCreate => {
                self.experiments.contains_key(&op.of) && (is_with_others || self.clone().apply(op).is_some())
            }
            RunCreate => self.runs.contains_key(&op.of),
            ModelCreate => self.models.contains_key(&op.of),
            DatasetCreate => self.datasets.contains_key(&op.of),
            _ => false,
        }
    }

    /// Returns the states in which an arbitrary subset of an operation's parts has taken effect.
    pub(super) fn parts(&self, op: Op) -> Vec<Self> {
        let mut all = vec![self.clone()];
        let mut fork = |part: &dyn Fn(&mut Self)| {
            let mut forked = all.clone();
            forked.iter_mut().for_each(part);
            all.append(&mut forked);
        };
        match op.kind {
            RunBatch if self.clone().apply(op).is_some() => {
                fork(&|state| state.log_entries(op));
                fork(&|state| state.log_point(op, "k0"));
                fork(&|state| state.log_point(op, "k1"));
            }
            RunMetrics if self.clone().apply(op).is_some() => {
                // A metric's latest value is the value of its last point, and is written before the
                // history.
                let last = points(op.value).last().unwrap();
                let metric = format!("k{}", op.key);
                fork(&|state| {
                    state.runs.get_mut(&op.of).unwrap().metrics.entry(metric.clone()).or_default().insert(last);
                });
            }
            DatasetMerge if self.datasets.contains_key(&op.of) => {
                fork(&|state| state.merge(op, op.key));
                fork(&|state| state.merge(op, (op.key + 1) % 3));
            }
            _ => Self::parts_of_traces(op).iter().for_each(|part| fork(part)),
        }
        all
    }

    fn log_entries(&mut self, op: Op) {
        let run = self.runs.get_mut(&op.of).unwrap();
        run.params.insert(format!("k{}", op.key), word(op.value));
        run.tags.insert(format!("k{}", op.key), word(op.value));
    }

    fn log_point(&mut self, op: Op, metric: &str) {
        let run = self.runs.get_mut(&op.of).unwrap();
        run.metrics.entry(metric.to_owned()).or_default().insert((op.value.into(), op.key.into()));
    }

    fn merge(&mut self, op: Op, inputs: u8) {
        self.datasets.get_mut(&op.of).unwrap().records.insert(inputs, word(op.value));
    }

    /// Applies an operation. Returns `None` if it is refused.
    pub(super) fn apply(mut self, op: Op) -> Option<(Self, Made)> {
        let made = match op.kind {
            ExperimentCreate | ExperimentRename | ExperimentDelete | ExperimentRestore | ExperimentTag
            | ExperimentUntag => {
                self.apply_to_experiment(op)?;
                None
            }
            RunCreate => {
                let run = Run { experiment: self.is_active(op.key).then_some(op.key)?, ..Run::default() };
                self.runs.insert(op.of, run);
                if op.value == 3 {
                    self.runs.get_mut(&op.of)?.tags.insert(format!("k{}", op.key), word(op.value));
                }
                None
            }
            RunDelete | RunRestore => {
                self.runs.get_mut(&op.of)?.is_deleted = op.kind == RunDelete;
                None
            }
            RunFinish | RunMetric | RunMetrics | RunParam | RunTag | RunUntag | RunBatch => {
                self.apply_to_run(op)?;
                None
            }
            ModelCreate => {
                let model = Logged { experiment: self.is_active(op.key).then_some(op.key)?, ..Logged::default() };
                self.models.insert(op.of, model);
                None
            }
            ModelReady | ModelDelete | ModelParam | ModelTag | ModelUntag => {
                self.apply_to_model(op)?;
                None
            }
            DatasetCreate | DatasetDelete | DatasetTag | DatasetUntag | DatasetMerge | DatasetDeleteRecord
            | DatasetAdd | DatasetRemove => {
                self.apply_to_dataset(op)?;
                None
            }
            ScorerRegister | ScorerDelete | ScorerDeleteAll => self.apply_to_scorer(op)?,
            _ if op.is_of_traces() => {
                self.apply_to_traces(op)?;
                None
            }
            _ => self.apply_to_registered(op)?,
        };
        Some((self, made))
    }

    fn apply_to_experiment(&mut self, op: Op) -> Option<()> {
        let is_taken = |state: &Self, name: &str, by_others_than: Option<u8>| {
            state.experiments.iter().any(|(slot, other)| other.name == name && Some(*slot) != by_others_than)
        };
        if op.kind == ExperimentCreate {
            let name = format!("n{}", op.of);
            let tags = Texts::from([("slot".to_owned(), format!("e{}", op.of))]);
            let new = Experiment { name, tags, ..Experiment::default() };
            return (!is_taken(self, &new.name, None)).then(|| self.experiments.insert(op.of, new)).map(|_| ());
        }
        let new_name = format!("n{}", op.key + op.value);
        let is_new_name_taken = is_taken(self, &new_name, Some(op.of));
        let experiment = self.experiments.get_mut(&op.of)?;
        // Restoring requires a deleted experiment, and everything else an active one.
        if experiment.is_deleted != (op.kind == ExperimentRestore) {
            return None;
        }
        match op.kind {
            ExperimentRename => {
                if is_new_name_taken {
                    return None;
                }
                experiment.name = new_name;
            }
            ExperimentTag => {
                experiment.tags.insert(format!("k{}", op.key), word(op.value));
            }
            ExperimentUntag => {
                experiment.tags.remove(&format!("k{}", op.key))?;
            }
            _ => {
                experiment.is_deleted = op.kind == ExperimentDelete;
                let runs = self.runs.values_mut().filter(|run| run.experiment == op.of);
                runs.for_each(|run| run.is_deleted = op.kind == ExperimentDelete);
            }
        }
        Some(())
    }

    fn apply_to_run(&mut self, op: Op) -> Option<()> {
        let (key, value) = (format!("k{}", op.key), word(op.value));
        let run = self.runs.get_mut(&op.of).filter(|run| !run.is_deleted)?;
        let is_other_param = run.params.get(&key).is_some_and(|there| *there != value);
        match op.kind {
            RunFinish => run.is_finished = true,
            RunMetric => {
                run.metrics.entry(key).or_default().insert((op.value.into(), op.value.into()));
            }
            RunMetrics => run.metrics.entry(key).or_default().extend(points(op.value)),
            RunParam | RunBatch if is_other_param => return None,
            RunParam => {
                run.params.insert(key, value);
            }
            RunTag => {
                run.tags.insert(key, value);
            }
            RunUntag => {
                run.tags.remove(&key)?;
            }
            _ => {
                self.log_entries(op);
                self.log_point(op, "k0");
                self.log_point(op, "k1");
            }
        }
        Some(())
    }

    fn apply_to_model(&mut self, op: Op) -> Option<()> {
        let (key, value) = (format!("k{}", op.key), word(op.value));
        let model = self.models.get_mut(&op.of)?;
        match op.kind {
            // Deleted logged models accept writes like any other.
            ModelDelete => model.is_deleted = true,
            ModelReady => model.is_ready = true,
            ModelParam if model.params.get(&key).is_some_and(|there| *there != value) => return None,
            ModelParam => {
                model.params.insert(key, value);
            }
            ModelTag => {
                model.tags.insert(key, value);
            }
            _ => {
                model.tags.remove(&key)?;
            }
        }
        Some(())
    }

    fn apply_to_registered(&mut self, op: Op) -> Option<Made> {
        let (name, key, number) = (format!("g{}", op.of), format!("k{}", op.key), u32::from(op.key) + 1);
        let alias = format!("a{}", op.value % 2);
        match op.kind {
            RegisteredCreate if self.registered.contains_key(&name) => return None,
            RegisteredCreate => {
                self.registered.insert(name, Registered::default());
                return Some(None);
            }
            RegisteredDelete => return self.registered.remove(&name).map(|_| None),
            RegisteredRename => {
                let new_name = format!("g{}", op.key);
                if new_name != name && self.registered.contains_key(&new_name) {
                    return None;
                }
                let model = self.registered.remove(&name)?;
                self.registered.insert(new_name, model);
                return Some(None);
            }
            _ => {}
        }
        let model = self.registered.get_mut(&name)?;
        match op.kind {
            RegisteredTag => {
                model.tags.insert(key, word(op.value));
            }
            RegisteredUntag => {
                model.tags.remove(&key);
            }
            AliasDelete => {
                model.aliases.remove(&alias);
            }
            VersionCreate => {
                model.had += 1;
                model.versions.insert(model.had, ("None".to_owned(), Texts::new()));
                return Some(Some(model.had));
            }
            VersionDelete => {
                model.versions.remove(&number)?;
                model.aliases.retain(|_, version| *version != number);
            }
            _ => {
                let version = model.versions.get_mut(&number)?;
                match op.kind {
                    AliasSet => {
                        model.aliases.insert(alias, number);
                    }
                    VersionTag => {
                        version.1.insert("k0".to_owned(), word(op.value));
                    }
                    VersionUntag => {
                        version.1.remove("k0");
                    }
                    _ => {
                        let stage = stage(op.value);
                        let others = model.versions.iter_mut().filter(|(other, _)| **other != number);
                        if matches!(stage, "Staging" | "Production") {
                            others
                                .filter(|(_, (at, _))| at == stage)
                                .for_each(|(_, (at, _))| "Archived".clone_into(at));
                        }
                        stage.clone_into(&mut model.versions.get_mut(&number)?.0);
                    }
                }
            }
        }
        Some(None)
    }

    fn apply_to_dataset(&mut self, op: Op) -> Option<()> {
        let key = format!("k{}", op.key);
        match op.kind {
            DatasetCreate => {
                self.datasets.insert(op.of, Dataset::default());
                return Some(());
            }
            // Deleting a dataset that does not exist succeeds.
            DatasetDelete => {
                self.datasets.remove(&op.of);
                return Some(());
            }
            DatasetUntag | DatasetDeleteRecord if !self.datasets.contains_key(&op.of) => return Some(()),
            DatasetMerge => {
                self.datasets.get(&op.of)?;
                self.merge(op, op.key);
                self.merge(op, (op.key + 1) % 3);
                return Some(());
            }
            _ => {}
        }
        let dataset = self.datasets.get_mut(&op.of)?;
        match op.kind {
            DatasetTag => {
                dataset.tags.insert(key, word(op.value));
            }
            DatasetUntag => {
                dataset.tags.remove(&key);
            }
            DatasetDeleteRecord => {
                dataset.records.remove(&op.key);
            }
            DatasetAdd => {
                dataset.experiments.insert(op.key);
            }
            _ => {
                dataset.experiments.remove(&op.key);
            }
        }
        Some(())
    }

    fn apply_to_scorer(&mut self, op: Op) -> Option<Made> {
        let key = (self.is_active(op.of).then_some(op.of)?, format!("s{}", op.key));
        match op.kind {
            ScorerRegister => {
                let versions = self.scorers.entry(key).or_default();
                let number = versions.keys().last().copied().unwrap_or_default() + 1;
                versions.insert(number, word(op.value));
                Some(Some(number))
            }
            ScorerDelete => {
                let versions = self.scorers.get_mut(&key)?;
                versions.remove(&(u32::from(op.value) + 1))?;
                if versions.is_empty() {
                    self.scorers.remove(&key);
                }
                Some(None)
            }
            _ => self.scorers.remove(&key).map(|_| None),
        }
    }
}
