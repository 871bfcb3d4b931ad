//! The requested faults, and the counts of calls.

use std::collections::BTreeMap;

use aws_smithy_runtime_api::client::http::SharedHttpConnector;

use super::error_responses::{Denial, conflict, is_batch, refusals};
use super::fault::InjectedFault;
use super::gate::{Gate, GatePosition, PausedCall, gate};
use crate::operations::writes;

#[derive(Default)]
pub(super) struct FaultState {
    pub(super) refuse: NthCallCounter,
    pub(super) trouble: Option<FaultWindow>,
    pub(super) lose: NthCallCounter,
    pub(super) halve: NthCallCounter,
    pub(super) frozen_indexes: Option<SharedHttpConnector>,
    pauses: Vec<PausedCall>,
    lost: u64,
    calls: BTreeMap<String, u64>,
    /// Operations that are subject to faults, in the order of their calls. `None` unless recording
    /// was requested.
    order: Option<Vec<String>>,
}

/// The faults that were determined for one call.
#[derive(Default)]
pub(super) struct CallPlan {
    pub(super) pauses_before: Vec<PausedCall>,
    pub(super) refuse: Option<u64>,
    pub(super) halve: bool,
    pub(super) pauses_after: Vec<PausedCall>,
    pub(super) lose: Option<u64>,
    pub(super) disconnect: bool,
    pub(super) deny: Option<Denial>,
}

/// A number of consecutive calls that are affected by one fault.
pub(super) struct FaultWindow {
    pub(super) trouble: InjectedFault,
    /// Number of calls that pass before the affected ones.
    pub(super) before: u64,
    /// Number of affected calls.
    pub(super) calls: u64,
}

impl FaultWindow {
    /// Returns the fault of the next call, if it is affected.
    fn next(&mut self) -> Option<InjectedFault> {
        if self.before > 0 {
            self.before -= 1;
            return None;
        }
        if self.calls == 0 {
            return None;
        }
        self.calls -= 1;
        Some(self.trouble)
    }
}

impl FaultState {
    pub(super) fn next_call(&mut self, operation: &str) -> CallPlan {
        *self.calls.entry(operation.to_owned()).or_default() += 1;
        let reached = self.pauses.extract_if(.., |pause| pause.is_reached_by(operation));
        let (pauses_before, pauses_after) = reached.partition(|pause| matches!(pause.moment, GatePosition::Before));
        let mut course = CallPlan { pauses_before, pauses_after, ..CallPlan::default() };
        if refusals(operation).is_empty() {
            return course;
        }
        if let Some(order) = &mut self.order {
            order.push(operation.to_owned());
        }
        course.refuse = self.refuse.next();
        let (mut lose, mut halve) = (None, false);
        match self.trouble.as_mut().and_then(FaultWindow::next) {
            Some(InjectedFault::Throttled) => course.refuse = Some(0),
            Some(InjectedFault::Disconnected) => course.disconnect = true,
            Some(InjectedFault::AnswerLost) => {
                // Alternates between the causes of a loss, like `lose_answer_every`.
                lose = Some(self.lost);
                self.lost += 1;
            }
            Some(InjectedFault::Conflict) => course.refuse = conflict(operation),
            Some(InjectedFault::Halved) => halve = true,
            Some(InjectedFault::Denied) => course.deny = writes(operation).then_some(Denial::NoPermission),
            Some(InjectedFault::KeyDisabled) => course.deny = Some(Denial::KeyDisabled),
            None => {}
        }
        if course.refuse.is_none() && !course.disconnect {
            course.halve = is_batch(operation) && (self.halve.next().is_some() || halve);
            course.lose = self.lose.next().or(lose);
        }
        course
    }

    pub(super) fn pause(&mut self, moment: GatePosition, operation: &str, nth: u64) -> Gate {
        let (pause, gate) = gate(moment, operation, nth);
        self.pauses.push(pause);
        gate
    }

    pub(super) fn calls(&self, operation: &str) -> u64 {
        self.calls.get(operation).copied().unwrap_or_default()
    }

    pub(super) fn all_calls(&self) -> Vec<(String, u64)> {
        self.calls.iter().map(|(operation, calls)| (operation.clone(), *calls)).collect()
    }

    pub(super) fn keep_order(&mut self) {
        self.order = Some(Vec::new());
    }

    pub(super) fn order(&self) -> Vec<String> {
        self.order.clone().unwrap_or_default()
    }

    pub(super) fn reset_calls(&mut self) {
        self.calls.clear();
    }
}

/// A counter that selects every `n`th call, and numbers the selected calls: 0, 1, 2...
#[derive(Default)]
pub(super) struct NthCallCounter {
    n: u64,
    seen: u64,
}

impl NthCallCounter {
    pub(super) fn set_rate(&mut self, n: u64) {
        *self = Self { n, seen: 0 };
    }

    fn next(&mut self) -> Option<u64> {
        if self.n == 0 {
            return None;
        }
        self.seen += 1;
        self.seen.is_multiple_of(self.n).then(|| self.seen / self.n - 1)
    }
}
