//! Random operations of three clients, compared with a plain in-memory model ([`state`]). Some
//! operations are concurrent, some meet faults. If a client gets no response, its operation may or
//! may not have taken effect, so several states are possible until a client reads. The indexer runs
//! only on request, which makes it arbitrarily late.
//!
//! `MODEL_SECONDS` sets the duration, and `MODEL_SEED` the first seed. A failure is shrunk to fewer
//! steps, and printed with its seed.

mod client_reads;
mod expiry;
mod operation;
mod state;
mod traces;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use artifact_store::ArtifactStore;
use embedded_engine::StreamReader;
use embedded_engine::faults::{FaultInjector, InjectedFault};
use entities::trace_retention::TraceRetentionSetting;
use fts_indexer::{Indexer, StreamBatch};
use futures::future::join_all;
use mlflow_api::Workspace;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use table::{RetryPolicy, Table};
use test_site::{ROOT, TABLE, TestClient, TestEnvironment, TestResponse};

use operation::{Fault, Ids, Op, Step};
use state::State;

use crate::faults::expiry::{is_kept, remove as remove_expired};
use crate::faults::packing::{STEP, counts, indexer, timed};
use crate::faults::write_faults::faulty_write;
use crate::faults::{removal, trace_invariants};

/// Maximum number of possible states. Above it, a client has to read, which reduces the number to
/// one.
const MOST_STATES: usize = 200;

/// How long a process relies on cached retention settings, including a margin.
const KNOWN: Duration = Duration::from_secs(70);

/// Statistics about packed traces, of one sequence of steps or several.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sequences: u32,
    /// Number of sequences with a block after a packing step.
    packed: u32,
    /// Number of sequences with a read or search while a block was the only source of a trace.
    read: u32,
}

/// Number of sequences after which the statistics are conclusive. Nearly half of them pack traces.
const ENOUGH: u32 = 10;
/// Minimum number of sequences. More are run until traces were packed and read from blocks.
const LEAST: u32 = 3;

/// Outcome of a call as seen by the client.
#[derive(Clone, Debug)]
enum Heard {
    Done(Option<u32>),
    Refused,
    /// The entity to be removed does not exist any more. It may not have existed before the call
    /// either.
    Gone,
    /// No response: the call may or may not have taken effect.
    Nothing,
    /// According to the server, the call had no effect and may be repeated.
    NotDone,
}

/// Returns a table with faults, for processes that give up quickly.
fn faulty(faults: &FaultInjector) -> Table {
    let pause = Duration::from_millis(1);
    let retry = RetryPolicy { attempts: 3, first_pause: pause, longest_pause: pause, ..RetryPolicy::default() };
    Table::new(faults.client(), TABLE).with_retry(retry)
}

struct Lab {
    site: TestEnvironment,
    stream: StreamReader,
    indexer: Indexer,
    clients: Vec<(FaultInjector, TestClient)>,
    ids: Ids,
    /// All states that are possible after the operations so far.
    states: BTreeSet<State>,
    tally: Tally,
}

impl Lab {
    async fn new() -> Self {
        let site = TestEnvironment::with_stream().await;
        let store = tracking::store::Store::new(site.table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        // Points of the first client, which makes most calls, go into journals. Points of the other
        // clients go into documents.
        let client = |number| {
            let faults = FaultInjector::new(site.engine.http_client());
            let table = faulty(&faults);
            let api = if number == 0 { faulty_write::api_with_journal(&table) } else { faulty_write::api(&table) };
            (faults, api)
        };
        let clients = (0..3).map(client).collect();
        let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
        let states = BTreeSet::from([State::default()]);
        let indexer = indexer(&site.table);
        Self { site, stream, indexer, clients, ids: Ids::new(), states, tally: Tally::default() }
    }

    async fn goes(mut self, steps: Vec<Step>) -> Result<Tally, String> {
        for op in operation::BEGINNING {
            self.calls(&[(op, None)]).await.map_err(|wrong| format!("{op:?}: {wrong}"))?;
        }
        for (at, step) in steps.iter().enumerate() {
            self.step(step).await.map_err(|wrong| format!("step {at}, {step:?}: {wrong}"))?;
        }
        self.ends().await.map_err(|wrong| format!("at the end: {wrong}"))?;
        Ok(self.tally)
    }

    /// Makes a client read everything once more, and checks that traces are complete.
    async fn ends(&mut self) -> Result<(), String> {
        self.look().await?;
        self.reads_traces().await;
        trace_invariants::check_cut_off(&self.site, |_| true).await
    }

    /// Records in the statistics that traces are about to be read from a block. This is the case if
    /// a trace has no mark.
    async fn reads_traces(&mut self) {
        let there = counts(&self.site).await;
        if there.traces > there.marks {
            self.tally.read = 1;
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Calls(calls) => self.calls(calls).await,
            Step::Look => self.look().await,
            Step::Index(fault) => self.index_through(*fault).await,
            Step::Tick => self.tick().await,
            Step::Pack => self.pack().await,
            Step::Search(which) if self.ids.keys().any(|name| name.starts_with('e')) => {
                let found = client_reads::search(&self.clients[0].1, &self.ids, *which).await?;
                // The search covers only experiments whose ids are known, so runs of other
                // experiments are not found.
                let known = |state: &State| {
                    let mut state = state.clone();
                    state.runs.retain(|_, run| self.ids.contains_key(&format!("e{}", run.experiment)));
                    client_reads::should_find(&state, *which)
                };
                let states = self.states.iter().filter(|state| known(state) == found).cloned().collect();
                self.narrow(states, || format!("found {found:?}"))
            }
            Step::SearchTraces(which) if self.ids.keys().any(|name| name.starts_with('e')) => {
                self.reads_traces().await;
                let found = traces::search(&self.clients[0].1, &self.ids, *which).await?;
                let known = |state: &State| {
                    let mut state = state.clone();
                    state.traces.retain(|_, trace| self.ids.contains_key(&format!("e{}", trace.experiment)));
                    traces::should_find(&state, *which)
                };
                let states = self.states.iter().filter(|state| known(state) == found).cloned().collect();
                self.narrow(states, || format!("found {found:?}"))
            }
            Step::Search(_) | Step::SearchTraces(_) => Ok(()),
            Step::Remove(fault) => self.remove(*fault).await,
            Step::Policy(which) => self.set_policy(*which).await,
            Step::Expire(fault) => self.expire(*fault).await,
        }
    }

    /// Makes a client read everything, which leaves a single possible state.
    async fn look(&mut self) -> Result<(), String> {
        // Ids of records are dropped, because deleted records have none. Other ids are kept,
        // including those of deleted entities.
        self.ids.retain(|name, _| !name.contains('/'));
        let found = client_reads::at(&self.clients[0].1, &mut self.ids).await?;
        let states = self.states.iter().filter(|state| state.visible() == found).cloned().collect();
        self.narrow(states, || format!("found {found:?}"))
    }

    fn narrow(&mut self, states: BTreeSet<State>, found: impl Fn() -> String) -> Result<(), String> {
        if states.is_empty() {
            let mut message = found();
            for state in self.states.iter().take(3) {
                write!(message, "\n  it should be {:?}", state.visible()).unwrap();
            }
            return Err(message);
        }
        self.states = states;
        Ok(())
    }

    async fn index(&mut self) -> Result<(), String> {
        let records = self.stream.oldest(1_000).await.unwrap();
        let Some(last) = records.last().map(|last| last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned())
        else {
            return Ok(());
        };
        let answer = self.indexer.handle(StreamBatch { records }).await;
        if !answer.batch_item_failures.is_empty() {
            return Err(format!("{:?}", answer.batch_item_failures));
        }
        self.stream.forget_through(&last).await.unwrap();
        self.states = std::mem::take(&mut self.states).into_iter().flat_map(State::cleared_up).collect();
        Ok(())
    }

    /// Runs the indexer without faults, after running it with a fault if one is given. Wherever the
    /// faulty run stopped, clients find what they should.
    async fn index_through(&mut self, fault: Option<Fault>) -> Result<(), String> {
        if let Some(fault) = fault {
            let records = self.stream.oldest(1_000).await.unwrap();
            let faults = &self.clients[0].0;
            faults.trouble_at(fault.trouble, fault.nth, fault.calls);
            // All records are delivered again, regardless of the outcome.
            let outcome = indexer(&faulty(faults)).handle(StreamBatch { records }).await;
            faults.work_again();
            self.states = std::mem::take(&mut self.states).into_iter().flat_map(State::cleared_up).collect();
            self.look().await.map_err(|wrong| format!("after {outcome:?}: {wrong}"))?;
        }
        self.index().await
    }

    /// Lets time pass, and runs the indexer until all its work is done, including packing.
    async fn pack(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            self.index().await?;
            self.tick().await?;
        }
        self.index().await?;
        if counts(&self.site).await.blocks > 0 {
            self.tally.packed = 1;
        }
        Ok(())
    }

    /// Permanently removes deleted entities. After an interrupted removal, each entity is either
    /// unchanged or gone.
    async fn remove(&mut self, fault: Option<Fault>) -> Result<(), String> {
        self.look().await?;
        if let Some(fault) = fault {
            let faults = &self.clients[0].0;
            faults.trouble_at(fault.trouble, fault.nth, fault.calls);
            let outcome = removal::all(&faulty(faults)).await;
            faults.work_again();
            let found = client_reads::at(&self.clients[1].1, &mut self.ids).await?;
            let states = self.states.iter().filter(|state| state.is_being_removed(&found)).cloned().collect();
            self.narrow(states, || format!("found {found:?} after {outcome:?}"))?;
        }
        removal::all(&self.site.table).await?;
        self.states = std::mem::take(&mut self.states).into_iter().map(State::removed).collect();
        let states = &self.states;
        self.ids.retain(|name, _| states.iter().any(|state| state.knows(name)));
        self.look().await
    }

    /// Sets the retention of traces, and waits until all processes use it.
    async fn set_policy(&mut self, which: Option<u8>) -> Result<(), String> {
        let kept = which.map(expiry::text);
        TraceRetentionSetting::write(&self.site.table, kept.as_deref()).await.map_err(|error| format!("{error:?}"))?;
        let set = |state: State| State { policy: which, ..state };
        self.states = std::mem::take(&mut self.states).into_iter().map(set).collect();
        runtime::clock::sleep(KNOWN).await;
        Ok(())
    }

    /// Removes traces past their retention, after a pause since the last change. Clients do not
    /// notice, even if the removal is interrupted.
    async fn expire(&mut self, fault: Option<Fault>) -> Result<(), String> {
        self.look().await?;
        runtime::clock::sleep(STEP).await;
        if let Some(fault) = fault {
            let faults = &self.clients[0].0;
            faults.trouble_at(fault.trouble, fault.nth, fault.calls);
            let outcome = remove_expired(&faulty(faults), &ArtifactStore::default()).await;
            faults.work_again();
            self.look().await.map_err(|wrong| format!("after {outcome:?}: {wrong}"))?;
            trace_invariants::check_cut_off(&self.site, is_kept(&self.site).await)
                .await
                .map_err(|wrong| format!("after {outcome:?}: {wrong}"))?;
        }
        remove_expired(&self.site.table, &ArtifactStore::default()).await?;
        let left = std::mem::take(&mut self.states).into_iter().map(State::expired);
        self.states = left.flat_map(State::cleared_up).collect();
        trace_invariants::check_cut_off(&self.site, |_| true).await?;
        self.look().await
    }

    async fn tick(&mut self) -> Result<(), String> {
        runtime::clock::sleep(STEP).await;
        self.indexer = indexer(&self.site.table);
        self.indexer.tick().await.map_err(|failure| format!("{failure:?}"))
    }

    async fn calls(&mut self, calls: &[(Op, Option<Fault>)]) -> Result<(), String> {
        if self.states.len() > MOST_STATES {
            self.look().await?;
        }
        let mut made = BTreeSet::new();
        let lone = calls.iter().position(|(op, _)| op.is_of_several_traces());
        let sendable: Vec<_> = calls
            .iter()
            .enumerate()
            .filter(|(number, (op, _))| !op.is_of_traces() || lone.is_none_or(|lone| lone == *number))
            .map(|(_, call)| call)
            .filter(|(op, _)| !self.states.iter().any(|state| state.is_ambiguous(*op, calls.len() > 1)))
            // Two concurrent creations of one name could not be distinguished.
            .filter(|(op, _)| !op.is_creation() || made.insert((format!("{:?}", op.kind), op.of)))
            .filter_map(|(op, fault)| Some((*op, *fault, op.request(&self.ids)?)))
            .collect();
        let sent =
            sendable.iter().zip(&self.clients).map(|((op, fault, (method, path, body)), (faults, api))| async move {
                if let Some(fault) = fault {
                    faults.trouble_at(fault.trouble, fault.nth, fault.calls);
                }
                let answer = api.call_at(method, path, body.to_string()).await;
                faults.work_again();
                (*op, heard(*op, *fault, &answer, calls.len() > 1))
            });
        let mut told = Vec::new();
        for (op, (heard, id)) in join_all(sent).await {
            let heard = heard?;
            if op.kind == operation::Kind::DatasetCreate && !matches!(heard, Heard::Refused | Heard::NotDone) {
                // Ids of the deleted dataset of this name are obsolete.
                let name = format!("d{}", op.of);
                self.ids.retain(|of, _| of.split('/').next() != Some(&name));
            }
            if let Some((kind, id)) = id {
                self.ids.insert(format!("{kind}{}", op.of), id);
            }
            if op.kind == operation::Kind::DatasetDeleteRecord {
                self.ids.remove(&format!("d{}/{}", op.of, op.key));
            }
            told.push((op, heard));
        }
        if told.iter().any(|(_, heard)| matches!(heard, Heard::Nothing)) {
            // A deletion without a response may have succeeded, so processes may still rely on
            // cached state.
            runtime::clock::sleep(faulty_write::LEASE).await;
        }
        if told.iter().any(|(op, _)| op.is_of_retention()) {
            // Processes may still rely on cached retention settings.
            runtime::clock::sleep(KNOWN).await;
        }
        let states = self.states.iter().flat_map(|state| after(state, &told)).collect();
        self.narrow(states, || format!("{told:?}"))?;
        // Points of an abandoned call may be in the metric's history without being its latest
        // value, until the client repeats the call.
        for (op, heard) in told {
            if op.kind == operation::Kind::RunMetrics && matches!(heard, Heard::Nothing) {
                Box::pin(self.calls(&[(op, None)])).await?;
            }
        }
        Ok(())
    }
}

/// Returns what a client learns from a response, and the id of a created entity. Responses that no
/// client should get are errors.
fn heard(
    op: Op,
    fault: Option<Fault>,
    answer: &TestResponse,
    is_with_others: bool,
) -> (Result<Heard, String>, Option<(char, String)>) {
    let is_lost = fault.is_some_and(|fault| fault.trouble == InjectedFault::AnswerLost);
    let is_unknown = answer.status == 409 && answer.body["error_code"] == "ABORTED";
    let heard = match answer.status {
        _ if fault.is_some_and(|fault| fault.stops) => Heard::Nothing,
        200 if is_lost && op.is_untagging() => Heard::Gone,
        200 => {
            let version = answer.body.pointer("/model_version/version").or(answer.body.get("version"));
            let version = version.map(|version| version.to_string().trim_matches('"').parse().unwrap());
            let id = ["/experiment_id", "/run/info/run_id", "/model/info/model_id", "/dataset/dataset_id"];
            let kinds = ['e', 'r', 'm', 'd'];
            let id = id
                .iter()
                .zip(kinds)
                .find_map(|(pointer, kind)| Some((kind, answer.body.pointer(pointer)?.as_str()?.to_owned())));
            let makes_version = matches!(op.kind, operation::Kind::VersionCreate | operation::Kind::ScorerRegister);
            return (Ok(Heard::Done(version.filter(|_| makes_version))), id.filter(|_| op.is_creation()));
        }
        409 if is_unknown && is_lost && op.is_creation() => Heard::Nothing,
        // The first attempt succeeded, and the retry was refused because of another call since
        // then.
        400..=407 if is_lost && is_with_others => Heard::Nothing,
        400..=407 if !is_unknown => Heard::Refused,
        // As in MLflow, this error has status 500.
        500 if answer.body["error_code"] == "INVALID_STATE" => Heard::Refused,
        _ if answer.is_repeated() && fault.is_some() => {
            if op.is_creation() {
                Heard::NotDone
            } else {
                Heard::Nothing
            }
        }
        _ => return (Err(format!("{op:?}: {answer:?}")), None),
    };
    (Ok(heard), None)
}

/// Returns the possible states after concurrent calls, which may have taken effect in any order.
fn after(state: &State, told: &[(Op, Heard)]) -> Vec<State> {
    if told.is_empty() {
        return vec![state.clone()];
    }
    let mut all = Vec::new();
    for first in 0..told.len() {
        let mut rest = told.to_vec();
        let (op, heard) = rest.remove(first);
        let applied = state.clone().apply(op);
        let next = match (heard, applied) {
            (Heard::Done(said), Some((next, made))) if said == made => vec![next],
            (Heard::Gone, Some((next, _))) => vec![next],
            (Heard::Gone, None) | (Heard::NotDone, _) => vec![state.clone()],
            (Heard::Refused, None) => vec![state.clone().refused(op)],
            (Heard::Nothing, None) => state.parts(op),
            (Heard::Nothing, Some((next, _))) => state.parts(op).into_iter().chain([next]).collect(),
            _ => continue,
        };
        all.extend(next.iter().flat_map(|next| after(next, &rest)));
    }
    all
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.sequences += 1;
        self.packed += other.packed;
        self.read += other.read;
    }

    /// Returns whether traces were packed and read from blocks often enough. Otherwise the test is
    /// not conclusive about blocks.
    fn is_of_blocks(self) -> bool {
        let is_often = |sequences: u32| sequences > 0 && sequences * 10 >= self.sequences;
        is_often(self.packed) && is_often(self.read)
    }
}

#[test]
fn clients_find_what_the_model_says() {
    let (begun, lasting) = (Instant::now(), Duration::from_secs(setting("MODEL_SECONDS", 1)));
    let mut seed = setting("MODEL_SEED", 1);
    let tally = Cell::new(Tally::default());
    // With a given seed, a single sequence is enough.
    let is_one = std::env::var_os("MODEL_SEED").is_some();
    let is_enough = |so_far: Tally| {
        let least = if is_one { 1 } else { LEAST };
        so_far.sequences >= ENOUGH || so_far.sequences >= least && (is_one || so_far.is_of_blocks())
    };
    while begun.elapsed() < lasting || !is_enough(tally.get()) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: 10_000,
            max_shrink_time: 60_000,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let outcome = runner.run(&operation::steps(), |steps| {
            // Simulated time only passes while a task waits, so the test never waits in real time.
            let went = timed(async { Box::pin(Lab::new().await.goes(steps)).await });
            let mut all = tally.get();
            all.add(went.map_err(TestCaseError::fail)?);
            tally.set(all);
            Ok(())
        });
        match outcome {
            Ok(()) => seed += 1,
            Err(TestError::Fail(reason, steps)) => {
                let steps: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
                let steps = steps.join("\n");
                panic!("MODEL_SEED={seed}: {reason}\nafter these steps:\n{steps}");
            }
            Err(TestError::Abort(reason)) => panic!("MODEL_SEED={seed}: {reason}"),
        }
    }
    let tally = tally.get();
    assert!(is_one && tally.sequences < ENOUGH || tally.is_of_blocks(), "{tally:?}");
    println!("{tally:?}");
}
