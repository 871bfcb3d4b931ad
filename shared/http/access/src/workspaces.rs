//! Workspaces, where a server has more than the default one: which one a request is about, and whether it may be written to.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName};
use key_schema::attributes::{EXHAUSTED, GOES_TO};
use mlflow_api::{Error, ErrorCode, Result, Workspace};
use table::{Item, Table, TableKey, Write};

use crate::authorizer::{Authorizer, Event, Visible};
use crate::guard::{Ask, Guarded, Read, workspace_key};
use crate::identity::{Arrived, Identity};
use crate::kind::{Action, Resource};
use crate::needs::Needs;

/// The header by which clients name a workspace (`WORKSPACE_HEADER_NAME`).
pub const HEADER: HeaderName = HeaderName::from_static("x-mlflow-workspace");
/// Milliseconds of a UTC day.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// The workspace that a request names; the default one, if it names none. A blank name is none.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`, if it is no name, or several are named.
pub(crate) fn named(headers: &HeaderMap) -> Result<Workspace> {
    let mut named = None;
    for value in headers.get_all(HEADER) {
        // As Python reads headers: each byte is a character.
        let name: String = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        let name = name.trim().to_owned();
        if name.is_empty() {
            continue;
        }
        let workspace = Workspace::parse(&name)?;
        if named.replace(workspace.clone()).is_some_and(|before| before != workspace) {
            return Err(Error::invalid("A request names one workspace, and not several."));
        }
    }
    Ok(named.unwrap_or_default())
}

/// A quantity that is counted in a workspace, and may be bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Runs that were created.
    Runs,
    /// Traces that began.
    Traces,
    /// Bytes of spans that came.
    Bytes,
}

impl Counted {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Traces, Self::Bytes];

    /// As attributes and commands call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Traces => "traces",
            Self::Bytes => "bytes",
        }
    }

    /// The quantity of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counted| counted.name() == name)
    }

    /// Whether something that is created counts.
    fn is_made_by(self, kind: Resource) -> bool {
        match self {
            Self::Runs => kind == Resource::Run,
            // Spans make their trace, or come to it.
            Self::Traces | Self::Bytes => kind == Resource::Trace,
        }
    }
}

/// The number of the UTC day of a time in ms, counted from 1970.
#[must_use]
pub const fn day_of(ms: i64) -> i64 {
    ms.div_euclid(DAY)
}

/// Looks whether the workspace is there, and whether it may be written to where the needs ask for that.
///
/// # Errors
/// `RESOURCE_DOES_NOT_EXIST` for a workspace that is not there; a refusal where it is being deleted, or has had all that the day may bring.
pub(crate) fn check(workspace: &Workspace, read: &Read, needs: &Needs) -> Result<()> {
    if *workspace == Workspace::default() {
        return Ok(());
    }
    let item = read.get(&TableKey::here(workspace_key(workspace)));
    let item = item.ok_or_else(|| workspace.not_found())?;
    if item.has(GOES_TO) && needs.iter().any(|need| need.action.writes()) {
        // Clients do not repeat this.
        return Err(Error::new(ErrorCode::Aborted, format!("Workspace '{workspace}' is being deleted.")));
    }
    within_quotas(workspace, item, needs, day_of(entities::now_ms()))
}

/// # Errors
/// `BAD_REQUEST`, which clients do not repeat.
fn within_quotas(workspace: &Workspace, item: &Item, needs: &Needs, today: i64) -> Result<()> {
    let exhausted = item.map(EXHAUSTED).into_iter().flatten();
    let today = exhausted.filter(|(_, day)| day.as_n().is_ok_and(|day| day.parse() == Ok(today)));
    for counted in today.filter_map(|(name, _)| Counted::from_name(name)) {
        if needs.iter().any(|need| need.action == Action::Create && counted.is_made_by(need.kind)) {
            let message = format!(
                "Workspace '{workspace}' has had as many {} today as its quota allows. The next day of UTC has its own.",
                counted.name()
            );
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
    }
    Ok(())
}

/// The same authorizer where there are workspaces: a request says by a header which one it is about.
pub struct InWorkspaces(Arc<dyn Authorizer>);

impl InWorkspaces {
    /// As frames and scopes take it.
    #[must_use]
    pub fn over(authorizer: Arc<dyn Authorizer>) -> Arc<dyn Authorizer> {
        Arc::new(Self(authorizer))
    }
}

impl Authorizer for InWorkspaces {
    fn authenticate<'a>(&'a self, arrived: &'a Arrived) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            // Strangers are not told which names are right.
            let identity = self.0.authenticate(arrived).await?;
            Ok(Identity { workspace: named(&arrived.headers)?, has_workspaces: true, ..identity })
        })
    }

    fn has_workspaces(&self) -> bool {
        true
    }

    fn looks(&self) -> bool {
        true
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guarded],
    ) -> BoxFuture<'a, Result<(Identity, Read)>> {
        self.0.read(identity, table, guards)
    }

    fn confirm(&self, identity: Identity) -> BoxFuture<'_, Result<Identity>> {
        self.0.confirm(identity)
    }

    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [Ask],
        read: &'a Read,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        self.0.authorize(identity, asked, read)
    }

    fn visible<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visible>> {
        self.0.visible(identity)
    }

    fn writes(&self, identity: &Identity, event: Event<'_>) -> Vec<Write> {
        self.0.writes(identity, event)
    }
}

#[cfg(test)]
mod tests {
    use mlflow_api::ExperimentId;
    use table::{Map, map, number};

    use super::*;
    use crate::needs::Target;

    fn headers(values: &[&'static [u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, http::HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_request_names_one_workspace_or_none() {
        let team = Workspace::parse("team-a").unwrap();
        assert_eq!(named(&headers(&[])), Ok(Workspace::default()));
        assert_eq!(named(&headers(&[b"", b" \t"])), Ok(Workspace::default()));
        assert_eq!(named(&headers(&[b" team-a "])), Ok(team.clone()));
        assert_eq!(named(&headers(&[b"team-a", b"team-a"])), Ok(team));
        assert_eq!(named(&headers(&[b"default"])), Ok(Workspace::default()));
        for wrong in [&[&b"Team"[..]][..], &[&b"\xe9"[..]], &[&b"team-a"[..], &b"team-b"[..]], &[&b"a/b"[..]]] {
            assert!(named(&headers(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_quota_holds_for_what_it_counts_and_for_its_day() {
        let team = Workspace::parse("team-a").unwrap();
        let item = Item::new(workspace_key(&team)).with(EXHAUSTED, map(Map::from([("runs".to_owned(), number(7))])));
        let here = || Target::Experiment(ExperimentId::DEFAULT);
        let create = |kind| Needs::create_in(here(), kind);
        assert!(within_quotas(&team, &item, &create(Resource::Run), 7).is_err());
        assert_eq!(within_quotas(&team, &item, &create(Resource::Run), 8), Ok(()));
        assert_eq!(within_quotas(&team, &item, &create(Resource::Trace), 7), Ok(()));
        assert_eq!(within_quotas(&team, &item, &Needs::read(here()), 7), Ok(()));
    }
}
