//! Endpoints for workspaces. They exist even if users do not sign in. If users do sign in, each new
//! workspace gets default roles.

use access::{Action, AllowedActions, Needs, Resource, Restriction, Scope, Target};
use entities::workspaces::{WorkspaceChange, WorkspaceDeletionMode, WorkspaceDocument};
use http::StatusCode;
use mlflow_api::auth::PermissionLevel;
use mlflow_api::requests::workspaces as message;
use mlflow_api::{ArchivalRetention, Error, ErrorCode, Request, Result, Workspace, location};
use permissions::LEASE;
use serde::Serialize;
use serde_json::{Map, Value};
use service::{Endpoint, EndpointResponse, IntoEndpointResponse};

use crate::audit_log::changed;
use crate::store::{DefaultRoles, WorkspaceStore};

/// Maximum length of a description in bytes.
const MAX_DESCRIPTION_BYTES: usize = 5_000;

/// The roles of a new workspace (`_DEFAULT_WORKSPACE_ROLES`). MLflow's description of `user`
/// promises the right to read everything in the workspace. This server's description does not,
/// because the role's grant does not include that right.
const DEFAULT_ROLES: [(&str, PermissionLevel, &str); 2] = [
    ("admin", PermissionLevel::Manage, "Full MANAGE authority over the workspace."),
    (
        "user",
        PermissionLevel::Use,
        "Create new experiments and registered models. The creator of a resource gets MANAGE on it. Resources of other \
         users are visible only if they are granted.",
    ),
];

/// A workspace as the API represents it.
#[derive(Serialize)]
pub(crate) struct WorkspaceResponse {
    name: Workspace,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_artifact_root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_archival_config: Option<ArchivalConfig>,
}

#[derive(Serialize)]
struct ArchivalConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct WorkspaceEnvelope {
    workspace: WorkspaceResponse,
}

#[derive(Serialize)]
pub(crate) struct WorkspaceList {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workspaces: Vec<WorkspaceResponse>,
}

impl From<WorkspaceDocument> for WorkspaceResponse {
    fn from(document: WorkspaceDocument) -> Self {
        let WorkspaceDocument { name, description, artifact_root, archive, archive_after, .. } = document;
        let is_archived = archive.is_some() || archive_after.is_some();
        Self {
            name,
            description,
            default_artifact_root: artifact_root,
            trace_archival_config: is_archived
                .then_some(ArchivalConfig { location: archive, retention: archive_after }),
        }
    }
}

/// Returns a JSON answer with a status other than 200.
fn with_status(status: StatusCode, content: &impl Serialize) -> Result<EndpointResponse> {
    match EndpointResponse::json(content)? {
        EndpointResponse::Json(body) => {
            Ok(EndpointResponse::OtherProtocol { status, content_type: "application/json", body })
        }
        other => Ok(other),
    }
}

/// Parses the workspace name in the path. Accepts the default workspace, and names that MLflow's
/// grammar allows.
fn workspace_in_path(request: &Request) -> Result<Workspace> {
    Workspace::parse(request.path_part("workspace_name"))
}

/// Validates an artifact location and trims it. An empty location is treated as no location
/// (`_validate_optional_workspace_storage_location`).
fn artifact_root(sent: Option<String>) -> Result<Option<String>> {
    let Some(sent) = sent else { return Ok(None) };
    let trimmed = sent.trim();
    if !trimmed.is_empty() {
        location::check_as("default_artifact_root", trimmed, "")?;
        if !location::has_scheme(trimmed) && !trimmed.starts_with('/') {
            return Err(Error::invalid(format!(
                "Invalid value for 'default_artifact_root'. Expected a URI (for example 's3://bucket/prefix' or \
                 'mlflow-artifacts:/prefix') or an absolute path, got '{trimmed}'."
            )));
        }
    }
    Ok(Some(trimmed.to_owned()))
}

/// Validates a location for archived traces, and trims it. An empty location is treated as no
/// location (`_validate_workspace_trace_archival_location`).
fn archive_location(sent: Option<String>) -> Result<Option<String>> {
    const FIELD: &str = "trace_archival_config.location";
    let Some(sent) = sent else { return Ok(None) };
    let trimmed = sent.trim();
    if !trimmed.is_empty() {
        location::check_as(FIELD, trimmed, "")?;
        location::check_archive(FIELD, trimmed)?;
    }
    Ok(Some(trimmed.to_owned()))
}

/// Validates the age at which traces are archived, and trims it. An empty text is treated as no
/// retention (`_validate_workspace_trace_archival_retention`).
fn archive_retention(sent: Option<String>) -> Result<Option<String>> {
    let Some(sent) = sent else { return Ok(None) };
    let trimmed = sent.trim();
    if !trimmed.is_empty() {
        ArchivalRetention::parse_field("trace_archival_config.retention", trimmed)?;
    }
    Ok(Some(trimmed.to_owned()))
}

/// Returns an optional string field of a message. The name has to match exactly, so the camel-case
/// form is not accepted.
fn text(message: &Map<String, Value>, field: &str) -> Result<Option<String>> {
    match message.get(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(message::wrong(field, other)),
    }
}

/// Returns the fields of a workspace in a request, except for its name.
fn read_change(request: &Request) -> Result<WorkspaceChange> {
    let sent = request.json_object()?;
    let (description, root) = (text(&sent, "description")?, text(&sent, "default_artifact_root")?);
    let config = match sent.get("trace_archival_config") {
        None | Some(Value::Null) => &Map::new(),
        Some(Value::Object(config)) => config,
        Some(other) => return Err(message::wrong("trace_archival_config", other)),
    };
    let (place, after) = (text(config, "location")?, text(config, "retention")?);
    Ok(WorkspaceChange {
        description: check_description(description)?,
        artifact_root: artifact_root(root)?,
        archive: archive_location(place)?,
        archive_after: archive_retention(after)?,
    })
}

fn check_description(description: Option<String>) -> Result<Option<String>> {
    match description {
        Some(long) if long.len() > MAX_DESCRIPTION_BYTES => {
            Err(Error::invalid(format!("The description of a workspace has at most {MAX_DESCRIPTION_BYTES} bytes.")))
        }
        other => Ok(other),
    }
}

pub(crate) struct List;

impl Endpoint for List {
    type Store = WorkspaceStore;
    type Answer = EndpointResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::Workspace)
    }

    /// Returns the workspaces in which the caller has a role, or all workspaces for administrators.
    /// Credentials that are limited to an experiment see only the experiment's workspace.
    /// Credentials for trace ingestion see no workspace, because they may not list anything.
    async fn act(self, scope: &Scope, store: &WorkspaceStore) -> Result<EndpointResponse> {
        let Some(workspaces) = store.enabled() else { return Ok(disabled("")) };
        let Restriction { experiment, actions: only } = scope.identity().restriction;
        if only == AllowedActions::Ingest {
            return WorkspaceList { workspaces: Vec::new() }.into_answer();
        }
        let mut all = workspaces.list().await?;
        if let Some(experiment) = experiment {
            let of = store.workspace_of(experiment).await?;
            all.retain(|one| Some(&one.name) == of.as_ref());
        }
        if let Some(of) = store.memberships(scope).await? {
            all.retain(|one| of.all.contains(one.name.as_str()));
        }
        WorkspaceList { workspaces: all.into_iter().map(WorkspaceResponse::from).collect() }.into_answer()
    }
}

pub(crate) struct Create {
    name: Workspace,
    new: WorkspaceChange,
}

impl Endpoint for Create {
    type Store = WorkspaceStore;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let sent: message::CreateWorkspace = request.read()?;
        let new = read_change(request)?;
        if sent.name == Workspace::default().as_str() {
            return Err(Error::invalid("The 'default' workspace is reserved and cannot be created"));
        }
        let name = Workspace::parse(&sent.name)?;
        // Camel-case field names are accepted when a workspace is created, but not when it is
        // updated.
        let (description, root) = (check_description(sent.description)?, artifact_root(sent.default_artifact_root)?);
        Ok(Self { name, new: WorkspaceChange { description, artifact_root: root, ..new } })
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::Workspace)
    }

    async fn act(self, scope: &Scope, store: &WorkspaceStore) -> Result<EndpointResponse> {
        let Some(workspaces) = store.enabled() else { return Ok(disabled("")) };
        let roles = match store.users() {
            Some(users) => users.default_roles(&DEFAULT_ROLES).await?,
            None => DefaultRoles::default(),
        };
        let workspace = workspaces.create_with(&self.name, &self.new, |identity| roles.writes(identity)).await?;
        changed(scope, "workspace created", format_args!("workspace {}", self.name));
        with_status(StatusCode::CREATED, &WorkspaceEnvelope { workspace: workspace.into() })
    }
}

pub(crate) struct Get(Workspace);

impl Endpoint for Get {
    type Store = WorkspaceStore;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        workspace_in_path(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Any(Resource::Workspace))
    }

    async fn act(self, scope: &Scope, store: &WorkspaceStore) -> Result<EndpointResponse> {
        let Some(workspaces) = store.enabled() else { return Ok(disabled("/<workspace_name>")) };
        if store.memberships(scope).await?.is_some_and(|of| !of.all.contains(self.0.as_str())) {
            return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied"));
        }
        WorkspaceEnvelope { workspace: workspaces.get(&self.0).await?.into() }.into_answer()
    }
}

pub(crate) struct Update {
    name: Workspace,
    change: WorkspaceChange,
}

impl Endpoint for Update {
    type Store = WorkspaceStore;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let name = workspace_in_path(request)?;
        let _: message::UpdateWorkspace = request.read()?;
        let change = read_change(request)?;
        if change == WorkspaceChange::default() {
            return Err(Error::invalid("Workspace update must have at least one key"));
        }
        Ok(Self { name, change })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Any(Resource::Workspace))
    }

    async fn act(self, scope: &Scope, store: &WorkspaceStore) -> Result<EndpointResponse> {
        let Some(workspaces) = store.enabled() else { return Ok(disabled("/<workspace_name>")) };
        let workspace = workspaces.change(&self.name, &self.change).await?;
        changed(scope, "workspace changed", format_args!("workspace {}", self.name));
        WorkspaceEnvelope { workspace: workspace.into() }.into_answer()
    }
}

pub(crate) struct Delete {
    name: Workspace,
    mode: WorkspaceDeletionMode,
}

impl Endpoint for Delete {
    type Store = WorkspaceStore;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let name = request.path_part("workspace_name");
        if name == Workspace::default().as_str() {
            return Err(Error::invalid("The 'default' workspace is reserved and cannot be deleted"));
        }
        let name = Workspace::parse(name)?;
        let sent = request.argument("mode").unwrap_or(WorkspaceDeletionMode::Restrict.name());
        let mode = WorkspaceDeletionMode::ALL.into_iter().find(|mode| mode.name() == sent).ok_or_else(|| {
            let all: Vec<_> = WorkspaceDeletionMode::ALL.into_iter().map(WorkspaceDeletionMode::name).collect();
            Error::invalid(format!("Invalid deletion mode '{sent}'. Must be one of: {}", all.join(", ")))
        })?;
        Ok(Self { name, mode })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Delete, [Target::Any(Resource::Workspace)])
    }

    async fn act(self, scope: &Scope, store: &WorkspaceStore) -> Result<EndpointResponse> {
        let Some(workspaces) = store.enabled() else { return Ok(disabled("/<workspace_name>")) };
        let begun = workspaces.begin_deletion(&self.name, self.mode, LEASE).await?;
        if let Some(users) = store.users() {
            users.roles_delete_of(&self.name).await?;
            users.grants_revoke_in(&self.name).await?;
        }
        workspaces.finish_deletion(&begun).await?;
        changed(scope, "workspace deleted", format_args!("workspace {} ({})", self.name, self.mode.name()));
        Ok(EndpointResponse::OtherProtocol {
            status: StatusCode::NO_CONTENT,
            content_type: "text/html; charset=utf-8",
            body: Vec::new(),
        })
    }
}

/// Returns the error for a server without workspaces. Its status differs from MLflow's 503, because
/// clients retry a 503 seven times.
fn disabled(path: &str) -> EndpointResponse {
    let body = format!(
        "Endpoint: /api/3.0/mlflow/workspaces{path} disabled because the server is running without workspaces support. To \
         enable workspace, run `mlflow server` with `--enable-workspaces`"
    );
    let status = StatusCode::NOT_IMPLEMENTED;
    EndpointResponse::OtherProtocol { status, content_type: "text/html; charset=utf-8", body: body.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_places_are_mlflows() {
        let after = |text: &str| archive_retention(Some(text.to_owned()));
        assert_eq!(after(" 30d "), Ok(Some("30d".to_owned())));
        assert_eq!(after(""), Ok(Some(String::new())));
        for wrong in ["30", "d", "30s", "0d", "-1d", &"1".repeat(40)] {
            assert!(after(wrong).is_err(), "{wrong}");
        }
        let root = |text: &str| artifact_root(Some(text.to_owned()));
        for right in ["s3://bucket/team", "/mnt/team", "mlflow-artifacts:/team", ""] {
            assert_eq!(root(right), Ok(Some(right.to_owned())), "{right}");
        }
        for wrong in ["team", "./team", "s3://bucket/team#x", "http://elsewhere/x"] {
            assert!(root(wrong).is_err(), "{wrong}");
        }
        assert!(archive_location(Some("mlflow-artifacts:/x".to_owned())).is_err());
        assert!(archive_location(Some("s3://bucket/x".to_owned())).is_ok());
    }
}
