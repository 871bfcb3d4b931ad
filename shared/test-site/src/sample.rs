//! The troubles that tests try: all in `make test-slow`, about a quarter of them in `make test`.

use embedded_engine::faults::Trouble;

/// Says that all are tried.
const ALL: &str = "ALL_TROUBLES";

/// Whether all troubles are tried.
pub fn all_troubles() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Whether a trouble is tried at a request, each named by its number. The sample moves on by one
/// trouble from request to request, so that four requests together meet each trouble.
pub fn is_tried(request: u64, trouble: usize) -> bool {
    all_troubles() || (request + trouble as u64).is_multiple_of(4)
}

/// Troubles of a request of work in the background, each with the number of requests that meet it.
/// The first and the third break the work off.
pub const TROUBLES: [(Trouble, u64); 6] = [
    (Trouble::Disconnected, u64::MAX),
    (Trouble::AnswerLost, 1),
    (Trouble::AnswerLost, u64::MAX),
    (Trouble::Throttled, 1),
    (Trouble::Conflict, 1),
    (Trouble::Halved, 1),
];

/// The troubles of a list that are tried at a request. A request meets at least one of those that it
/// can meet.
pub fn tried<'a>(
    request: u64,
    operation: &'a str,
    troubles: &'a [(Trouble, u64)],
) -> impl Iterator<Item = (Trouble, u64)> + 'a {
    let met = troubles.iter().filter(|(trouble, _)| trouble.is_met_by(operation)).copied().collect::<Vec<_>>();
    let step = if all_troubles() { 1 } else { met.len().clamp(1, 4) };
    let number = usize::try_from(request).unwrap_or_default();
    met.into_iter().enumerate().filter(move |(place, _)| (number + place).is_multiple_of(step)).map(|(_, one)| one)
}
