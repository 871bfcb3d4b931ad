//! The table of all settings. The command `config`, its help text and a section of the operator
//! guide are derived from it.

use std::fmt::Write;

use entities::quota::Counted;

/// What a setting configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Retention of deleted entities.
    DeletedRetention,
    /// Retention of metric histories.
    HistoryRetention,
    /// Retention of traces.
    TraceRetention,
    /// Fields that are indexed by value.
    IndexedValues,
    /// Fields that are indexed by the trigrams of their text.
    IndexedTexts,
    /// Daily quota of a workspace.
    Quota(Counted),
    /// Version of the table's layout. Maintained by the server.
    Layout,
    /// Number of experiment ids that have been assigned. Maintained by the server.
    ExperimentIds,
}

/// Description of a setting.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) does: &'static str,
    /// Syntax of its values.
    pub(super) values: &'static str,
    pub(super) default: &'static str,
    /// Holders that can have a value.
    pub(super) scope: &'static [Scope],
    /// Cost of a change, and when the change takes effect.
    pub(super) cost: &'static str,
}

/// Kind of holder that a setting applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Server,
    Workspace,
    Experiment,
}

impl Scope {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Workspace => "workspace",
            Self::Experiment => "experiment",
        }
    }
}

const REINDEX: &str = "A `reindex`: about 36 write units per run of 10 metrics, 5 params and 4 tags. For three minutes, and until it \
                       has finished, searches do not use the index for fields of these two settings";
const QUOTA: &str = "Nothing. Takes effect within a minute; from then on, the indexer reads three more items per batch";

/// All settings of a table, in the order in which they are listed.
pub(super) const SETTINGS: [Setting; 10] = [
    Setting {
        name: "deleted-retention",
        kind: Kind::DeletedRetention,
        does: "How long deleted runs, logged models and experiments are kept. With `off`, `serve` and a stack remove none of \
               them, and `gc` without an age removes all",
        values: "a duration such as `30d` or `1d12h`, or `off`",
        default: "off",
        scope: &[Scope::Server],
        cost: "About 35 write units per removed run of 10 metrics, 5 params and 3 tags. `serve` and a stack remove them within an \
               hour; with `Housekeeping=off`, a stack only removes them when `gc` runs without an age",
    },
    Setting {
        name: "metric-retention",
        kind: Kind::HistoryRetention,
        does: "How long metric histories are kept after their run has ended; `off` keeps them forever. The latest point of each \
               metric is always kept, and so are charts of more than about 11,000 points",
        values: "a duration such as `365d` or `12h`, or `off`",
        default: "off",
        scope: &[Scope::Server],
        cost: "One write unit for each KB that is removed: 2,000 points of a metric have 3 to 30 KB. `serve` removes histories within \
               an hour, a stack within a day. Looking for more takes one read unit per older run, once a month",
    },
    Setting {
        name: "trace-retention",
        kind: Kind::TraceRetention,
        does: "How long traces are kept after their start; `off` keeps them forever. The value of an experiment is its tag \
               `mlflow.trace.retention`",
        values: "a duration such as `30d`, `12h` or `90m`, or `off`",
        default: "off",
        scope: &[Scope::Server, Scope::Experiment],
        cost: "Older traces are hidden within a minute. Removing a trace takes at least one write unit for its document and one for \
               each part of its spans",
    },
    Setting {
        name: "indexed-values",
        kind: Kind::IndexedValues,
        does: "Fields that are indexed by value, for `=`, `LIKE 'x%'` and `ORDER BY`. A search over several experiments uses \
               the index if the field is indexed in all of them",
        values: "patterns such as `tags.*` and `!tags.mlflow.*`, where the last match wins; or `none`",
        default: "tags.* !tags.mlflow.* tags.mlflow.parentRunId tags.mlflow.runType",
        scope: &[Scope::Server, Scope::Experiment],
        cost: REINDEX,
    },
    Setting {
        name: "indexed-texts",
        kind: Kind::IndexedTexts,
        does: "Fields that are indexed by trigrams, for `LIKE '%x%'`, with one entry per character. Run names are always indexed",
        values: "patterns as for `indexed-values`, or `none`",
        default: "attributes.run_name",
        scope: &[Scope::Server, Scope::Experiment],
        cost: REINDEX,
    },
    Setting {
        name: "daily-runs",
        kind: Kind::Quota(Counted::Runs),
        does: "Maximum number of runs created in a workspace per UTC day",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "daily-traces",
        kind: Kind::Quota(Counted::Traces),
        does: "Maximum number of traces created in a workspace per UTC day",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "daily-bytes",
        kind: Kind::Quota(Counted::Bytes),
        does: "Maximum bytes of spans that a workspace stores per UTC day, after compression",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "layout",
        kind: Kind::Layout,
        does: "Version of the table's keys and attributes. `migrate` raises it",
        values: "read-only",
        default: "",
        scope: &[Scope::Server],
        cost: "",
    },
    Setting {
        name: "experiment-ids",
        kind: Kind::ExperimentIds,
        does: "The highest experiment id assigned so far",
        values: "read-only",
        default: "",
        scope: &[Scope::Server],
        cost: "",
    },
];

impl Setting {
    /// Returns the setting of a kind.
    #[cfg(test)]
    pub(super) fn of(kind: Kind) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.kind == kind)
    }

    /// Returns the setting of this name, as entered by an operator.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            format!("there is no setting {name}. The settings are {}", names.join(", "))
        })
    }

    /// Returns whether operators can change the setting.
    pub(super) fn is_settable(&self) -> bool {
        !matches!(self.kind, Kind::Layout | Kind::ExperimentIds)
    }
}

/// Formats all settings as a Markdown table, which is also readable on a terminal.
pub(super) fn listed() -> String {
    let mut text =
        "| setting | applies to | what it does | values | default | a change costs |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for Setting { name, does, values, default, scope, cost, .. } in &SETTINGS {
        let scope: Vec<_> = scope.iter().map(|scope| scope.name()).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let _ = writeln!(text, "| `{name}` | {} | {does} | {values} | {default} | {cost} |", scope.join(", "));
    }
    text
}

/// Formats the settings for the help text of the command, one per line.
pub(super) fn help() -> String {
    let mut text = "Settings:\n".to_owned();
    for Setting { name, does, values, .. } in &SETTINGS {
        let _ = writeln!(text, "  {name:<18} {does}: {values}.");
    }
    text + "\nOptions of `serve` and parameters of a stack are not settings of a table: see `serve --help` and the operator guide."
}
