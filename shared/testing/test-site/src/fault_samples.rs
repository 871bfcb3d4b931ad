//! The faults that tests inject. `make test-slow` tries all of them. `make test` tries one fault at
//! a quarter of the requests that write, and at a sixteenth of the requests that read. Reads are
//! sampled less, because a failed read is merely retried.

use embedded_engine::faults::InjectedFault;

/// Environment variable that enables all faults.
const ALL_FAULTS_VARIABLE: &str = "ALL_TROUBLES";

/// Returns whether all faults are enabled.
pub fn all_troubles() -> bool {
    std::env::var_os(ALL_FAULTS_VARIABLE).is_some()
}

/// Returns whether a DynamoDB operation writes.
pub fn writes(operation: &str) -> bool {
    ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"].contains(&operation)
}

/// Selects the faults to try at a request, among the faults that can affect it. Returns all of them
/// if all faults are enabled. Otherwise, returns one fault for some of the request numbers, and
/// none for the others. The selected numbers are not periodic, because reads and writes may
/// alternate.
pub fn sample<T>(number: u64, operation: &str, mut met: Vec<T>) -> Vec<T> {
    if all_troubles() || met.is_empty() {
        return met;
    }
    // Fibonacci hashing: the upper bits are effectively random.
    let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bits = if writes(operation) { 2 } else { 4 };
    if hash >> (u64::BITS - bits) != 0 {
        return Vec::new();
    }
    let place = usize::try_from(number / 4).unwrap_or_default() % met.len();
    vec![met.swap_remove(place)]
}

/// Faults for requests of background work, each with the number of consecutive requests that fail.
/// The first and the third fault abort the work.
pub const BACKGROUND_FAULTS: [(InjectedFault, u64); 6] = [
    (InjectedFault::Disconnected, u64::MAX),
    (InjectedFault::AnswerLost, 1),
    (InjectedFault::AnswerLost, u64::MAX),
    (InjectedFault::Throttled, 1),
    (InjectedFault::Conflict, 1),
    (InjectedFault::Halved, 1),
];

/// Selects the faults to try at a request, among a list of faults.
pub fn tried(request: u64, operation: &str, troubles: &[(InjectedFault, u64)]) -> Vec<(InjectedFault, u64)> {
    let met = troubles.iter().filter(|(trouble, _)| trouble.is_met_by(operation)).copied().collect();
    sample(request, operation, met)
}
