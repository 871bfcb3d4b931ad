//! The settings, in one table. The command, its help and a section of the operator guide follow
//! from it.

use std::fmt::Write;

use access::Counted;

/// What a setting is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// How long deleted entities are kept.
    DeletedRetention,
    /// How long histories of metrics are kept.
    HistoryRetention,
    /// How long traces are kept.
    TraceRetention,
    /// The fields that are indexed by their values.
    IndexedValues,
    /// The fields that are indexed by parts of their texts.
    IndexedTexts,
    /// How much a UTC day may bring to a workspace.
    Quota(Counted),
    /// The number of the table's layout. The server keeps it.
    Layout,
    /// How many ids of experiments were given out. The server keeps it.
    ExperimentIds,
}

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) does: &'static str,
    /// The values that it takes.
    pub(super) values: &'static str,
    pub(super) default: &'static str,
    /// For what it holds.
    pub(super) scope: &'static [Scope],
    /// The cost of a change, and when it counts.
    pub(super) cost: &'static str,
}

/// For what a setting holds.
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
                       has finished, searches use no index for fields of these two settings";
const QUOTA: &str =
    "Nothing. It holds within a minute; from then on, the indexer reads three items more for each batch";

/// All settings of a table.
pub(super) const SETTINGS: [Setting; 10] = [
    Setting {
        name: "deleted-retention",
        kind: Kind::DeletedRetention,
        does: "For how long deleted runs, logged models and experiments are kept. With `off`, `serve` and a stack remove none of \
               them, and `gc` without an age removes all",
        values: "a time such as `30d` or `1d12h`, or `off`",
        default: "off",
        scope: &[Scope::Server],
        cost: "About 35 write units per removed run of 10 metrics, 5 params and 3 tags. `serve` and a stack remove them within an \
               hour; a stack with `Housekeeping=off` leaves that to `gc` without an age",
    },
    Setting {
        name: "metric-retention",
        kind: Kind::HistoryRetention,
        does: "For how long histories of metrics are kept after the end of their run; `off` is for ever. The latest point of each \
               metric stays, and so do charts of more than some 11,000 points",
        values: "a time such as `365d` or `12h`, or `off`",
        default: "off",
        scope: &[Scope::Server],
        cost: "A write unit for each KB that is removed: 2,000 points of a metric have 3 to 30. `serve` removes histories within an \
               hour, a stack within a day. To look for more takes a read unit for each older run, once a month",
    },
    Setting {
        name: "trace-retention",
        kind: Kind::TraceRetention,
        does: "For how long traces are kept after they began; `off` is for ever. An experiment's own value is its tag \
               `mlflow.trace.retention`",
        values: "a time such as `30d`, `12h` or `90m`, or `off`",
        default: "off",
        scope: &[Scope::Server, Scope::Experiment],
        cost: "Older traces are hidden within a minute. To remove one costs a write unit and more for its document, and for each part \
               of its spans",
    },
    Setting {
        name: "indexed-values",
        kind: Kind::IndexedValues,
        does: "The fields whose whole values are indexed, for `=`, `LIKE 'x%'` and `ORDER BY`. A search through several experiments uses \
               the index where all of them have the field",
        values: "patterns such as `tags.*` and `!tags.mlflow.*`, the last match counts; or `none`",
        default: "tags.* !tags.mlflow.* tags.mlflow.parentRunId tags.mlflow.runType",
        scope: &[Scope::Server, Scope::Experiment],
        cost: REINDEX,
    },
    Setting {
        name: "indexed-texts",
        kind: Kind::IndexedTexts,
        does: "The fields whose trigrams are indexed, for `LIKE '%x%'`. Names of runs always are. An entry per character",
        values: "the same",
        default: "attributes.run_name",
        scope: &[Scope::Server, Scope::Experiment],
        cost: REINDEX,
    },
    Setting {
        name: "daily-runs",
        kind: Kind::Quota(Counted::Runs),
        does: "The runs that a UTC day may bring to a workspace",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "daily-traces",
        kind: Kind::Quota(Counted::Traces),
        does: "The traces that it may bring",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "daily-bytes",
        kind: Kind::Quota(Counted::Bytes),
        does: "The bytes of spans that it may bring, as they are kept",
        values: "a number, or `off`",
        default: "off",
        scope: &[Scope::Workspace],
        cost: QUOTA,
    },
    Setting {
        name: "layout",
        kind: Kind::Layout,
        does: "The generation of keys and attributes in the table. `migrate` raises it",
        values: "shown only",
        default: "",
        scope: &[Scope::Server],
        cost: "",
    },
    Setting {
        name: "experiment-ids",
        kind: Kind::ExperimentIds,
        does: "The last number that an experiment got as its id",
        values: "shown only",
        default: "",
        scope: &[Scope::Server],
        cost: "",
    },
];

impl Setting {
    /// The setting of a kind.
    #[cfg(test)]
    pub(super) fn of(kind: Kind) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.kind == kind)
    }

    /// The setting of a name that an operator gave.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            format!("there is no setting {name}. Settings are {}", names.join(", "))
        })
    }

    /// Whether somebody can set it.
    pub(super) fn is_settable(&self) -> bool {
        !matches!(self.kind, Kind::Layout | Kind::ExperimentIds)
    }
}

/// All settings as a table in Markdown, which a person can read, too.
pub(super) fn listed() -> String {
    let mut text =
        "| setting | holds for | what it does | values | default | a change costs |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for Setting { name, does, values, default, scope, cost, .. } in &SETTINGS {
        let scope: Vec<_> = scope.iter().map(|scope| scope.name()).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let _ = writeln!(text, "| `{name}` | {} | {does} | {values} | {default} | {cost} |", scope.join(", "));
    }
    text
}

/// The settings for the help of the command: a line for each.
pub(super) fn help() -> String {
    let mut text = "Settings:\n".to_owned();
    for Setting { name, does, values, .. } in &SETTINGS {
        let _ = writeln!(text, "  {name:<18} {does}: {values}.");
    }
    text + "\nOptions of `serve` and parameters of a stack are no settings of the table: `serve --help` and the operator guide have them."
}
