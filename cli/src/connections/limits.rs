//! Limits on the number of open connections, derived from the process's limit of file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything but requests: tables, the log, connections to AWS.
const RESERVED_DESCRIPTORS: usize = 64;
/// File descriptors per request: one for the client's connection, and one for a file or a
/// connection to a bucket.
const DESCRIPTORS_PER_REQUEST: usize = 2;
/// Upper bound of the number of connections. The head of a request may take 64 KB, so this many
/// connections take up to 256 MB.
const MAX_CONNECTIONS: usize = 4_096;
/// Lower bound of the limit on connections. It applies even if there are too few descriptors for it.
const MIN_CONNECTIONS: usize = 8;

/// Maximum numbers of connections that may be open at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// The maximum for all addresses together.
    pub(crate) total: usize,
    /// The maximum per address.
    pub(crate) per_address: usize,
}

impl ConnectionLimits {
    /// Raises the process's soft limit of descriptors as far as the system allows, and returns the
    /// resulting limits.
    pub(crate) fn of_process() -> Self {
        Self::of_descriptors(raise_descriptor_limit())
    }

    /// Returns the connection limits for a process that may open this many file descriptors. `None`
    /// means that descriptors are unlimited.
    fn of_descriptors(descriptors: Option<u64>) -> Self {
        let descriptors = descriptors.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let total = (descriptors.saturating_sub(RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_REQUEST)
            .clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        Self { total, per_address: total / 2 }
    }
}

/// Raises the soft limit of file descriptors to the hard limit. Returns the limit that is now in
/// effect, or `None` if descriptors are unlimited.
fn raise_descriptor_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::debug!(%error, "failed to raise the limit of file descriptors");
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
            assert_eq!(
                ConnectionLimits::of_descriptors(descriptors),
                ConnectionLimits { total, per_address: total / 2 }
            );
        }
    }
}
