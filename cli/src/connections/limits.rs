//! The number of connections that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not for connections of clients and their files: tables, the log, connections to AWS.
const RESERVE: usize = 64;
/// Descriptors of a request: its connection, and a file or a connection to a bucket.
const PER_REQUEST: usize = 2;
/// Largest number of connections. A head may take 64 KB, so they take 256 MB at most.
const MAX_CONNECTIONS: usize = 4_096;
/// Smallest number of connections, however few descriptors there are.
const MIN_CONNECTIONS: usize = 8;

/// The number of connections that may be open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// In all.
    pub(crate) total: usize,
    /// From one address.
    pub(crate) per_address: usize,
}

impl Limits {
    /// The limits of this process. Raises its number of descriptors to what the system allows.
    pub(crate) fn of_process() -> Self {
        Self::of_descriptors(raised())
    }

    /// The limits of a process that may have so many descriptors; `None` if there is no limit.
    fn of_descriptors(descriptors: Option<u64>) -> Self {
        let descriptors = descriptors.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let total = (descriptors.saturating_sub(RESERVE) / PER_REQUEST).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        Self { total, per_address: total / 2 }
    }
}

/// Raises the soft limit of descriptors to the hard one, and returns the limit.
fn raised() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::debug!(%error, "the number of file descriptors stays as it is");
            limit.current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_other_things() {
        for (descriptors, total) in [
            (Some(256), 96),
            (Some(1_024), 480),
            (Some(1 << 20), MAX_CONNECTIONS),
            (None, MAX_CONNECTIONS),
            (Some(10), MIN_CONNECTIONS),
        ] {
            assert_eq!(Limits::of_descriptors(descriptors), Limits { total, per_address: total / 2 });
        }
    }
}
