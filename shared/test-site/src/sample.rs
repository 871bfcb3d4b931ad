//! Which troubles tests try: all in `make test-slow`, about half of them in `make test`.

/// Says that all are tried.
const ALL: &str = "ALL_TROUBLES";

/// Whether all troubles are tried.
pub fn all_troubles() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Whether a trouble is tried at a request, each named by its number. What is left out at one request is tried at the next, so that the sample has
/// each request and each trouble.
pub fn is_tried(request: u64, trouble: usize) -> bool {
    all_troubles() || request.is_multiple_of(2) == trouble.is_multiple_of(2)
}
