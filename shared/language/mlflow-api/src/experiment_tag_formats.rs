//! The experiment tags with a required format. They configure how long traces are kept and how they
//! are archived.

use crate::Result;
use crate::trace_archival::{ARCHIVAL_RETENTION_TAG, ARCHIVE_NOW_TAG, ArchivalRetention, ArchiveNow};
use crate::trace_retention::{TRACE_RETENTION_TAG, TraceRetention};

/// Maximum number of traces on a page of a search.
pub(crate) const SEARCH_RESULTS: i64 = 500;

/// Checks the value of an experiment tag, if the tag requires a format. All other tags pass.
pub(crate) fn experiment_tag(key: &str, value: &str) -> Result<()> {
    match key {
        ARCHIVAL_RETENTION_TAG => ArchivalRetention::of_tag(value).map(|_| ()),
        ARCHIVE_NOW_TAG => ArchiveNow::of_tag(value).map(|_| ()),
        TRACE_RETENTION_TAG => TraceRetention::parse(value).map(|_| ()),
        _ => Ok(()),
    }
}
