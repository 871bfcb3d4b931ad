//! When traces are archived, and where.
//!
//! Traces are archived in one of two ways. By default, the spans of old blocks of traces move to
//! objects of the bucket, and clients notice nothing. If a location is configured, the spans of each
//! trace are written to a file `traces.pb` below the location instead, as MLflow does it, and the
//! tags of the trace say so. `docs/adr/0089-mlflow-archival.md` explains why there are two ways.
//!
//! The age at which a trace is archived is configured for the server, a workspace and an experiment:
//!
//! | scope | where | default |
//! |---|---|---|
//! | server | the row `CFG#trace_archival` ([`TraceArchivalSetting`]), written by `config set` | 30 days |
//! | workspace | its `trace_archival_config` | the server's |
//! | experiment | its tag `mlflow.trace.archivalRetention`. An age that exceeds the workspace's has an effect only if the server's setting lists the experiment | the workspace's |
//!
//! The tag `mlflow.trace.archiveNow` of an experiment requests the archival of its traces to files at
//! once ([`ArchiveRequest`]).
//!
//! [`TraceArchivalPolicy`] resolves these settings without I/O, and [`TraceArchivalCache`] reads and
//! caches them.

mod archival_cache;
mod archival_policy;
mod archival_setting;
mod archive_request;

pub use archival_cache::{TraceArchivalCache, experiment_tag};
pub use archival_policy::{TraceArchival, TraceArchivalPolicy, WorkspaceArchival};
pub use archival_setting::{ArchivalAge, ArchivalSettingChange, TraceArchivalSetting};
pub use archive_request::ArchiveRequest;
