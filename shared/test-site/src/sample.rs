//! Which troubles tests try: all in `make test-slow`, about a quarter of them in `make test`.

/// Says that all are tried.
const ALL: &str = "ALL_TROUBLES";

/// Whether all troubles are tried.
pub fn all_troubles() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Whether a trouble is tried at a request, each named by its number. The sample moves on by one trouble from request to request, so that four requests
/// together meet each trouble.
pub fn is_tried(request: u64, trouble: usize) -> bool {
    all_troubles() || (request + trouble as u64).is_multiple_of(4)
}
