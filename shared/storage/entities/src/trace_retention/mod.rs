//! How long traces are kept.
//!
//! The tag `mlflow.trace.retention` of an experiment determines how long its traces are kept. For
//! experiments without the tag, the server's setting applies, which an administrator creates.
//! Without the setting, their traces are kept forever. This module contains the code for all of
//! this, except for the parts that belong to other floors (`ARCHITECTURE.md`):
//!
//! | step | where |
//! |---|---|
//! | the format of the tag and the setting, and its check in requests | `mlflow_api::TraceRetention` |
//! | `import` announces experiments with the tag, and reports traces that would expire | `experiments/importer.rs` and `import/retention_check.rs` in `cli/src/transfer` |
//! | `config set` and `gc --set-trace-policy` write the setting; `experiments/create` and `experiments/set-experiment-tag` write the tag | `cli/src/config`, `store/experiment` of `tracking`, [`TraceRetentionSetting`] |
//! | an experiment is announced in the setting before it gets the tag | [`TraceRetentionSetting::announce`] |
//! | reads hide expired traces at once | [`TraceRetentionCache`], in the store of `functions/traces` |
//! | expired traces are deleted, by `housekeeper`, `serve` and `gc` | `shared/storage/retention/src/expired_traces.rs` |
//!
//! `docs/adr/0035-expiry-of-traces.md` explains why.

mod retention_cache;
mod retention_setting;

pub use retention_cache::{TraceCutoffs, TraceRetentionCache, retention_tags};
pub use retention_setting::TraceRetentionSetting;
