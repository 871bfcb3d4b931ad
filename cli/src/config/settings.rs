//! The table of all settings. The command `config`, its help text and a section of the operator
//! guide are derived from it.

use std::fmt::Write;

use entities::quota::QuotaKind;
use retention::HistoryArchiveAge;

/// What a setting configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingKind {
    /// Retention of deleted entities.
    DeletedRetention,
    /// Retention of metric histories.
    HistoryRetention,
    /// Age at which metric histories are archived.
    HistoryArchive,
    /// Retention of traces.
    TraceRetention,
    /// Archival of traces.
    TraceArchival(TraceArchivalValue),
    /// Fields that are indexed by value.
    IndexedValues,
    /// Fields that are indexed by the trigrams of their text.
    IndexedTexts,
    /// Daily quota of a workspace.
    Quota(QuotaKind),
    /// Version of the table's layout. Maintained by the server.
    Layout,
    /// Number of experiment ids that have been assigned. Maintained by the server.
    ExperimentIds,
}

/// A value of the settings for the archival of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceArchivalValue {
    /// Age at which traces are archived.
    Age,
    /// Location of the files `traces.pb`.
    Location,
    /// Experiments that may be archived later than others.
    Allowlist,
    /// Maximum number of traces that are written to files per pass.
    PerPass,
}

/// Description of a setting.
#[derive(Debug)]
pub(super) struct TableSetting {
    pub(super) name: &'static str,
    pub(super) kind: SettingKind,
    pub(super) description: &'static str,
    /// Syntax of the setting's values, as shown to operators.
    pub(super) values: &'static str,
    pub(super) default: &'static str,
    /// Kinds of holders (server, workspace, experiment) for which the setting can be changed.
    pub(super) scope: &'static [SettingScope],
    /// Cost of a change, and when the change takes effect.
    pub(super) cost: &'static str,
}

/// Kind of holder that a setting applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingScope {
    Server,
    Workspace,
    Experiment,
}

impl SettingScope {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Workspace => "workspace",
            Self::Experiment => "experiment",
        }
    }
}

const REINDEX_COST: &str = "A `reindex`: about 35 write units per run of 10 metrics, 5 params and 4 tags. For three minutes, and until it \
                       has finished, searches do not use the index for fields of these two settings";
const ARCHIVAL_COST: &str = "Traces that have reached the age are archived within an hour or, if there are many, over the following hours. Archived \
                         traces stay archived";
const QUOTA_COST: &str =
    "Nothing. Takes effect within a minute; from then on, the indexer reads three more items per batch";

/// All settings of a table, in the order in which they are listed.
pub(super) const SETTINGS: [TableSetting; 15] = [
    TableSetting {
        name: "deleted-retention",
        kind: SettingKind::DeletedRetention,
        description: "How long deleted runs, logged models and experiments are kept. With `off`, `serve` and a stack remove none of \
               them, and `gc` without an age removes all",
        values: "a duration such as `30d` or `1d12h`, or `off`",
        default: "off",
        scope: &[SettingScope::Server],
        cost: "About 35 write units per removed run of 10 metrics, 5 params and 3 tags. `serve` and a stack remove them within an \
               hour; with `Housekeeping=off`, a stack only removes them when `gc` runs without an age",
    },
    TableSetting {
        name: "metric-retention",
        kind: SettingKind::HistoryRetention,
        description: "How long metric histories are kept after their run has ended; `off` keeps them forever. The latest point of each \
               metric is always kept, and so are charts of more than about 11,000 points",
        values: "a duration such as `365d` or `12h`, or `off`",
        default: "off",
        scope: &[SettingScope::Server],
        cost: "One write unit for each KB that is removed: 2,000 points of a metric have 3 to 30 KB. `serve` removes histories within \
               an hour, a stack within a day. Looking for more takes one read unit per older run, once a month",
    },
    TableSetting {
        name: "metric-archive",
        kind: SettingKind::HistoryArchive,
        description: "When metric histories of more than about 11,000 points move from the table to the bucket or directory of the \
               artifacts, counted from the end of their run; `off` keeps all of them in the table. They are read as before. Charts do \
               not read them, so a chart of fewer than 10,000 steps of such a history shows about a quarter of its points",
        values: "a duration such as `90d` or `12h`, or `off`",
        default: HistoryArchiveAge::DEFAULT,
        scope: &[SettingScope::Server],
        cost: "One write unit for each KB that moves, and one request to the bucket per 4 MB of a metric. `serve` moves histories within \
               an hour, a stack within a day. Archived histories do not move back. Looking for more takes one read unit per older run, \
               once a month",
    },
    TableSetting {
        name: "trace-retention",
        kind: SettingKind::TraceRetention,
        description: "How long traces are kept after their start; `off` keeps them forever. The value of an experiment is its tag \
               `mlflow.trace.retention`",
        values: "a duration such as `30d`, `12h` or `90m`, or `off`",
        default: "off",
        scope: &[SettingScope::Server, SettingScope::Experiment],
        cost: "Older traces are hidden within a minute. Removing a trace takes at least one write unit for its document and one for \
               each part of its spans",
    },
    TableSetting {
        name: "trace-archival",
        kind: SettingKind::TraceArchival(TraceArchivalValue::Age),
        description: "Age at which the spans of traces move from the table to the bucket, or to the artifact directory; `off` keeps \
               them in the table. The value of a workspace is the `retention` of its `trace_archival_config`. An experiment with \
               the tag `mlflow.trace.archivalRetention` can have a lower age",
        values: "a duration such as `30d`, `12h` or `90m`, or `off`",
        default: "30d",
        scope: &[SettingScope::Server, SettingScope::Workspace],
        cost: ARCHIVAL_COST,
    },
    TableSetting {
        name: "trace-archival-location",
        kind: SettingKind::TraceArchival(TraceArchivalValue::Location),
        description: "Directory below which the spans of each archived trace are written to a file `traces.pb`, as MLflow does it; \
               with `off`, spans are archived in a form that only this server reads. The value of a workspace is the `location` of \
               its `trace_archival_config`",
        values: "the server's artifact root or a directory below it, as a URI such as `s3://bucket/archive`; or `off`",
        default: "off",
        scope: &[SettingScope::Server, SettingScope::Workspace],
        cost: "Nothing at once. From then on, archiving a trace takes one upload, and four write units or more. Archived traces stay \
               where they are",
    },
    TableSetting {
        name: "trace-archival-allowlist",
        kind: SettingKind::TraceArchival(TraceArchivalValue::Allowlist),
        description: "Experiments whose tag `mlflow.trace.archivalRetention` may be a higher age than `trace-archival`",
        values: "IDs of experiments, or `none`",
        default: "none",
        scope: &[SettingScope::Server],
        cost: "Nothing",
    },
    TableSetting {
        name: "trace-archival-batch",
        kind: SettingKind::TraceArchival(TraceArchivalValue::PerPass),
        description: "Maximum number of traces that are written to files `traces.pb` per pass. `serve` and a stack start a pass once per hour",
        values: "a positive number, or `off`",
        default: "off",
        scope: &[SettingScope::Server],
        cost: "Nothing",
    },
    TableSetting {
        name: "indexed-values",
        kind: SettingKind::IndexedValues,
        description: "Fields that are indexed by value, for `=`, `LIKE 'x%'` and `ORDER BY`. A search over several experiments uses \
               the index if the field is indexed in all of them",
        values: "patterns such as `tags.*` and `!tags.mlflow.*`, where the last match wins; or `none`",
        default: "tags.* !tags.mlflow.* tags.mlflow.parentRunId tags.mlflow.runType",
        scope: &[SettingScope::Server, SettingScope::Experiment],
        cost: REINDEX_COST,
    },
    TableSetting {
        name: "indexed-texts",
        kind: SettingKind::IndexedTexts,
        description: "Fields that are indexed by trigrams, for `LIKE '%x%'`, with one entry per character. Run names are always indexed",
        values: "patterns as for `indexed-values`, or `none`",
        default: "attributes.run_name",
        scope: &[SettingScope::Server, SettingScope::Experiment],
        cost: REINDEX_COST,
    },
    TableSetting {
        name: "daily-runs",
        kind: SettingKind::Quota(QuotaKind::Runs),
        description: "Maximum number of runs created in a workspace per UTC day",
        values: "a number, or `off`",
        default: "off",
        scope: &[SettingScope::Workspace],
        cost: QUOTA_COST,
    },
    TableSetting {
        name: "daily-traces",
        kind: SettingKind::Quota(QuotaKind::Traces),
        description: "Maximum number of traces created in a workspace per UTC day",
        values: "a number, or `off`",
        default: "off",
        scope: &[SettingScope::Workspace],
        cost: QUOTA_COST,
    },
    TableSetting {
        name: "daily-bytes",
        kind: SettingKind::Quota(QuotaKind::Bytes),
        description: "Maximum bytes of spans that a workspace stores per UTC day, after compression",
        values: "a number, or `off`",
        default: "off",
        scope: &[SettingScope::Workspace],
        cost: QUOTA_COST,
    },
    TableSetting {
        name: "layout",
        kind: SettingKind::Layout,
        description: "Version of the table's keys and attributes. `migrate` raises it",
        values: "read-only",
        default: "",
        scope: &[SettingScope::Server],
        cost: "",
    },
    TableSetting {
        name: "experiment-ids",
        kind: SettingKind::ExperimentIds,
        description: "The highest experiment id assigned so far",
        values: "read-only",
        default: "",
        scope: &[SettingScope::Server],
        cost: "",
    },
];

impl TableSetting {
    /// Returns the setting of a kind.
    #[cfg(test)]
    pub(super) fn of(kind: SettingKind) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.kind == kind)
    }

    /// Returns the setting with this name, as entered by an operator. Fails if there is none.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            format!("there is no setting {name}. The settings are {}", names.join(", "))
        })
    }

    /// Returns whether operators can change the setting.
    pub(super) fn is_settable(&self) -> bool {
        !matches!(self.kind, SettingKind::Layout | SettingKind::ExperimentIds)
    }
}

/// Formats all settings as a Markdown table, which is also readable on a terminal.
pub(super) fn settings_table() -> String {
    let mut text =
        "| setting | applies to | what it does | values | default | a change costs |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for TableSetting { name, description: does, values, default, scope, cost, .. } in &SETTINGS {
        let scope: Vec<_> = scope.iter().map(|scope| scope.name()).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let _ = writeln!(text, "| `{name}` | {} | {does} | {values} | {default} | {cost} |", scope.join(", "));
    }
    text
}

/// Formats the settings for the help text of the command, one per line.
pub(super) fn settings_help() -> String {
    let mut text = "Settings:\n".to_owned();
    for TableSetting { name, description: does, values, .. } in &SETTINGS {
        let _ = writeln!(text, "  {name:<24} {does}: {values}.");
    }
    text + "\nOptions of `serve` and parameters of a stack are not settings of a table: see `serve --help` and the operator guide."
}
