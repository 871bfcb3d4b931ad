//! Resolves the settings for the archival of traces (`_resolve_effective_trace_archival_retention`
//! and `_resolve_scheduler_trace_archival_config` in MLflow).

use mlflow_api::{ArchivalRetention, ExperimentId, Workspace, location};

use crate::trace_archival::{ArchivalAge, TraceArchivalSetting};
use crate::workspaces::WorkspaceDocument;

/// The settings of a workspace for the archival of traces. The default applies to workspaces without
/// settings of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceArchival {
    /// Location of the files `traces.pb`.
    pub location: Option<String>,
    /// Age at which traces are archived.
    pub age: Option<ArchivalAge>,
    /// Name of the workspace's directory below `workspaces/` in the server's location. `None` for the
    /// default workspace, whose directory is the server's location itself, as for its artifacts.
    pub directory: Option<String>,
}

impl WorkspaceArchival {
    /// Reads the settings from the document of a workspace. An age that cannot be parsed is logged
    /// and ignored.
    #[must_use]
    pub fn of(document: &WorkspaceDocument) -> Self {
        let age = document.archive_after.as_deref().filter(|age| !age.is_empty()).and_then(|age| {
            let parsed = ArchivalAge::parse(age);
            if parsed.is_err() {
                tracing::warn!(workspace = %document.name, age, "the archival retention of a workspace is invalid: the server's applies");
            }
            parsed.ok()
        });
        let location = document.archive.clone().filter(|location| !location.is_empty());
        let directory = document
            .directory
            .clone()
            .or_else(|| (document.name != Workspace::default()).then(|| document.name.as_str().to_owned()));
        Self { location, age, directory }
    }
}

/// How the traces of an experiment are archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceArchival {
    /// Age at which traces are archived. `None` if traces are archived only on request.
    pub retention: Option<ArchivalRetention>,
    /// Directory of the files `traces.pb`. `None` if the spans of traces move to objects that only
    /// this server reads. The artifact store of a process may not support the location; such a
    /// location has no effect.
    pub location: Option<String>,
}

impl TraceArchival {
    /// Returns the latest start time, in ms, of traces that are to be archived at the time `now`.
    /// `None` if traces are archived only on request.
    #[must_use]
    pub fn until(&self, now: i64) -> Option<i64> {
        self.retention.as_ref().map(|retention| now.saturating_sub(retention.ms()))
    }
}

/// The settings of the server and of one workspace for the archival of traces.
#[derive(Clone, Copy, Debug)]
pub struct TraceArchivalPolicy<'a> {
    /// The server's setting.
    pub server: &'a TraceArchivalSetting,
    /// The settings of the workspace.
    pub workspace: &'a WorkspaceArchival,
}

impl TraceArchivalPolicy<'_> {
    /// Returns the age at which traces are archived in experiments without a valid tag.
    #[must_use]
    pub fn age(&self) -> &ArchivalAge {
        self.workspace.age.as_ref().unwrap_or(&self.server.age)
    }

    /// Returns the age at which the traces of an experiment are archived. `tag` is the value of the
    /// experiment's tag `mlflow.trace.archivalRetention`. An invalid tag is logged and ignored.
    #[must_use]
    pub fn retention(&self, experiment: ExperimentId, tag: Option<&str>) -> Option<ArchivalRetention> {
        let broader = self.age().retention();
        let Some(own) = tag.and_then(|tag| tag_retention(experiment, tag)) else { return broader.cloned() };
        let is_shorter = broader.is_none_or(|broader| own.ms() <= broader.ms());
        // Like MLflow, a server whose archival is off ignores the tags of experiments.
        if broader.is_some() && (is_shorter || self.server.allowlist.contains(&experiment)) {
            return Some(own);
        }
        broader.cloned()
    }

    /// Returns the directory of the files `traces.pb` of this workspace: its own location, or its
    /// directory below the server's location.
    #[must_use]
    pub fn location(&self) -> Option<String> {
        let of_server = || Some(self.directory_below(self.server.location.as_ref()?));
        self.workspace.location.clone().or_else(of_server)
    }

    fn directory_below(&self, root: &str) -> String {
        match &self.workspace.directory {
            Some(directory) => location::append(&location::append(root, "workspaces"), directory),
            None => root.to_owned(),
        }
    }

    /// Returns the directory of the files `traces.pb` of this workspace, like
    /// [`TraceArchivalPolicy::location`], for a server that archives below `root` if no location is
    /// configured.
    #[must_use]
    pub fn location_below(&self, root: &str) -> String {
        self.location().unwrap_or_else(|| self.directory_below(root))
    }

    /// Returns how the traces of an experiment are archived. Parameters are those of
    /// [`TraceArchivalPolicy::retention`].
    #[must_use]
    pub fn of(&self, experiment: ExperimentId, tag: Option<&str>) -> TraceArchival {
        TraceArchival { retention: self.retention(experiment, tag), location: self.location() }
    }
}

fn tag_retention(experiment: ExperimentId, tag: &str) -> Option<ArchivalRetention> {
    let parsed = ArchivalRetention::of_tag(tag);
    if parsed.is_err() {
        tracing::warn!(%experiment, tag, "ignoring an invalid trace archival retention tag");
    }
    parsed.ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn server(age: &str, allowlist: &[u64]) -> TraceArchivalSetting {
        let allowlist = allowlist.iter().filter_map(|id| ExperimentId::from_number(*id)).collect::<BTreeSet<_>>();
        TraceArchivalSetting { age: ArchivalAge::parse(age).unwrap(), allowlist, ..TraceArchivalSetting::default() }
    }

    #[test]
    fn a_tag_is_shorter_or_allowed() {
        let id = ExperimentId::from_number(7).unwrap();
        let tag = |value: &str| ArchivalRetention::parse(value).unwrap().to_tag();
        for (age, own, tag, allowed, expected) in [
            ("30d", None, None, &[][..], Some("30d")),
            ("30d", None, Some(tag("1d")), &[], Some("1d")),
            ("30d", None, Some(tag("720h")), &[], Some("720h")),
            ("30d", None, Some(tag("31d")), &[], Some("30d")),
            ("30d", None, Some(tag("31d")), &[8], Some("30d")),
            ("30d", None, Some(tag("31d")), &[7], Some("31d")),
            ("30d", None, Some("soon".to_owned()), &[7], Some("30d")),
            ("30d", Some("60d"), Some(tag("31d")), &[], Some("31d")),
            ("30d", Some("2d"), Some(tag("3d")), &[], Some("2d")),
            ("30d", Some("60d"), None, &[], Some("60d")),
            ("30d", Some("off"), None, &[], None),
            ("30d", Some("off"), Some(tag("1d")), &[7], None),
            ("off", None, Some(tag("1d")), &[7], None),
            ("off", Some("1d"), None, &[], Some("1d")),
        ] {
            let age_of_workspace = own.map(|own| ArchivalAge::parse(own).unwrap());
            let workspace = WorkspaceArchival { age: age_of_workspace, ..WorkspaceArchival::default() };
            let server = server(age, allowed);
            let policy = TraceArchivalPolicy { server: &server, workspace: &workspace };
            let found = policy.retention(id, tag.as_deref());
            let found = found.as_ref().map(ArchivalRetention::as_str);
            assert_eq!(found, expected, "{age} {own:?} {tag:?} {allowed:?}");
        }
    }

    #[test]
    fn a_workspace_has_a_directory_of_its_own() {
        let shared = |location: &str| TraceArchivalSetting { location: Some(location.to_owned()), ..server("1d", &[]) };
        let team = WorkspaceArchival { directory: Some("team".to_owned()), ..WorkspaceArchival::default() };
        let own = WorkspaceArchival { location: Some("s3://b/team".to_owned()), ..team.clone() };
        let default = WorkspaceArchival::default();
        for (server, workspace, expected) in [
            (server("1d", &[]), &default, None),
            (server("1d", &[]), &team, None),
            (server("1d", &[]), &own, Some("s3://b/team")),
            (shared("s3://b/x"), &default, Some("s3://b/x")),
            (shared("s3://b/x/"), &team, Some("s3://b/x/workspaces/team")),
            (shared("s3://b/x"), &own, Some("s3://b/team")),
        ] {
            let policy = TraceArchivalPolicy { server: &server, workspace };
            assert_eq!(policy.location().as_deref(), expected);
            let below = policy.location_below("file:///r");
            let of_root = if *workspace == default { "file:///r" } else { "file:///r/workspaces/team" };
            assert_eq!(below, expected.unwrap_or(of_root));
        }
    }

    #[test]
    fn traces_are_archived_from_a_time_on() {
        let archival = |text: Option<&str>| TraceArchival {
            retention: text.map(|text| ArchivalRetention::parse(text).unwrap()),
            location: None,
        };
        assert_eq!(archival(Some("1m")).until(100_000), Some(40_000));
        assert_eq!(archival(None).until(100_000), None);
    }
}
