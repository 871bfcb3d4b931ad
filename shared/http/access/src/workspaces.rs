//! Workspaces: which one a request addresses, and whether it may be written to.

use std::sync::Arc;

use entities::quota::{QuotaKind, day_of};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName};
use key_schema::attributes::{EXHAUSTED, GOES_TO};
use mlflow_api::{Error, ErrorCode, Result, UserName, Workspace};
use table::{Item, Table, TableKey, Write};

use crate::action::{Action, Resource};
use crate::authorizer::{Authorizer, EntityEvent, Visibility};
use crate::guard::{AccessCheck, AuthorizerItems, Guard, workspace_key};
use crate::identity::{Identity, RequestHead};
use crate::needs::Needs;

/// The header in which clients name a workspace (`WORKSPACE_HEADER_NAME`).
pub const HEADER: HeaderName = HeaderName::from_static("x-mlflow-workspace");

/// Returns the workspace that a request names, or the default one if it names none. A blank name
/// counts as none.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` if the name is invalid, or if the request names several workspaces.
pub(crate) fn requested_workspace(headers: &HeaderMap) -> Result<Workspace> {
    let mut named = None;
    for value in headers.get_all(HEADER) {
        // Decoded like in Python, which maps each byte to a character.
        let name: String = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        let name = name.trim().to_owned();
        if name.is_empty() {
            continue;
        }
        let workspace = Workspace::parse(&name)?;
        if named.replace(workspace.clone()).is_some_and(|before| before != workspace) {
            return Err(Error::invalid("A request can name only one workspace."));
        }
    }
    Ok(named.unwrap_or_default())
}

/// Checks whether creating an entity of this kind counts towards the quota of a quantity.
fn counts_towards(kind: Resource, quantity: QuotaKind) -> bool {
    match quantity {
        QuotaKind::Runs => kind == Resource::Run,
        // Sending spans creates a trace or adds to one, and requires the permission to create
        // traces in both cases.
        QuotaKind::Traces | QuotaKind::Bytes => kind == Resource::Trace,
    }
}

/// Checks that the workspace exists, and that the writes among the needs are possible in it.
///
/// # Errors
/// `RESOURCE_DOES_NOT_EXIST` if the workspace does not exist. `ABORTED` if it is being deleted, and
/// `BAD_REQUEST` if its daily quota is exhausted; both apply only to requests that write.
pub(crate) fn check(workspace: &Workspace, read: &AuthorizerItems, needs: &Needs) -> Result<()> {
    if *workspace == Workspace::default() {
        return Ok(());
    }
    let item = read.get(&TableKey::here(workspace_key(workspace)));
    let item = item.ok_or_else(|| workspace.not_found())?;
    if item.has(GOES_TO) && needs.iter().any(|need| need.action.writes()) {
        // Clients do not retry this error.
        return Err(Error::new(ErrorCode::Aborted, format!("Workspace '{workspace}' is being deleted.")));
    }
    check_quotas(workspace, item, needs, day_of(entities::now_ms()))
}

/// Checks the daily quotas of a workspace.
///
/// # Errors
/// `BAD_REQUEST`, which clients do not retry.
fn check_quotas(workspace: &Workspace, item: &Item, needs: &Needs, today: i64) -> Result<()> {
    let exhausted = item.map(EXHAUSTED).into_iter().flatten();
    let today = exhausted.filter(|(_, day)| day.as_n().is_ok_and(|day| day.parse() == Ok(today)));
    for counted in today.filter_map(|(name, _)| QuotaKind::from_name(name)) {
        if needs.iter().any(|need| need.action == Action::Create && counts_towards(need.kind, counted)) {
            let message = format!(
                "Workspace '{workspace}' has reached its daily quota of {}. The quota resets at midnight UTC.",
                counted.name()
            );
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
    }
    Ok(())
}

/// An authorizer for servers with workspaces, wrapped around another one. A request names its
/// workspace in a header.
pub struct WorkspaceAuthorizer(Arc<dyn Authorizer>);

impl WorkspaceAuthorizer {
    /// Wraps an authorizer in a shared instance, as routers and scopes expect it.
    #[must_use]
    pub fn wrap(authorizer: Arc<dyn Authorizer>) -> Arc<dyn Authorizer> {
        Arc::new(Self(authorizer))
    }
}

impl Authorizer for WorkspaceAuthorizer {
    fn authenticate<'a>(&'a self, arrived: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            // Authenticates first, so that unauthenticated callers cannot probe workspace names.
            let identity = self.0.authenticate(arrived).await?;
            Ok(Identity { workspace: requested_workspace(&arrived.headers)?, has_workspaces: true, ..identity })
        })
    }

    fn has_workspaces(&self) -> bool {
        true
    }

    fn checks_guards(&self) -> bool {
        true
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        table: &'a Table,
        guards: &'a [Guard],
    ) -> BoxFuture<'a, Result<(Identity, AuthorizerItems)>> {
        self.0.read(identity, table, guards)
    }

    fn confirm(&self, identity: Identity) -> BoxFuture<'_, Result<Identity>> {
        self.0.confirm(identity)
    }

    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        self.0.authorize(identity, asked, read)
    }

    fn visibility<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        self.0.visibility(identity)
    }

    fn is_user_name<'a>(&'a self, name: &'a UserName) -> BoxFuture<'a, Result<bool>> {
        self.0.is_user_name(name)
    }

    fn writes(&self, identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
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
        assert_eq!(requested_workspace(&headers(&[])), Ok(Workspace::default()));
        assert_eq!(requested_workspace(&headers(&[b"", b" \t"])), Ok(Workspace::default()));
        assert_eq!(requested_workspace(&headers(&[b" team-a "])), Ok(team.clone()));
        assert_eq!(requested_workspace(&headers(&[b"team-a", b"team-a"])), Ok(team));
        assert_eq!(requested_workspace(&headers(&[b"default"])), Ok(Workspace::default()));
        for wrong in [&[&b"Team"[..]][..], &[&b"\xe9"[..]], &[&b"team-a"[..], &b"team-b"[..]], &[&b"a/b"[..]]] {
            assert!(requested_workspace(&headers(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_quota_holds_for_what_it_counts_and_for_its_day() {
        let team = Workspace::parse("team-a").unwrap();
        let item = Item::new(workspace_key(&team)).with(EXHAUSTED, map(Map::from([("runs".to_owned(), number(7))])));
        let here = || Target::Experiment(ExperimentId::DEFAULT);
        let create = |kind| Needs::create_in(here(), kind);
        assert!(check_quotas(&team, &item, &create(Resource::Run), 7).is_err());
        assert_eq!(check_quotas(&team, &item, &create(Resource::Run), 8), Ok(()));
        assert_eq!(check_quotas(&team, &item, &create(Resource::Trace), 7), Ok(()));
        assert_eq!(check_quotas(&team, &item, &Needs::read(here()), 7), Ok(()));
    }
}
