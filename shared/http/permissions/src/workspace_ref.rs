//! The workspaces that roles and grants belong to.
//!
//! A workspace that is created after another one with the same name was deleted is a different
//! workspace. Roles and grants therefore store the id of their workspace in addition to its name,
//! and apply only while the workspace with that name has that id. Entities of a workspace that was
//! created by version 0.1.0 have no workspace id, and never belong to a workspace that was created
//! later (`docs/adr/0064-identity-of-workspaces.md`).

use std::collections::HashMap;

use access::AuthorizerItems;
use entities::{WorkspaceIdentity, workspace_key};
use key_schema::attributes::{IN_WORKSPACE, WORKSPACE_ID};
use mlflow_api::Workspace;
use table::{Item, TableKey, text};

/// Separator between the name of a workspace and its id. Names cannot contain it.
const ID_SEPARATOR: char = '@';

/// The workspace that a role or a grant belongs to, as stored with the role or grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceRef {
    /// Name of the workspace.
    pub workspace: Workspace,
    /// Id of the workspace. `None` for the default workspace, and for one that version 0.1.0
    /// created.
    pub id: Option<String>,
}

impl WorkspaceRef {
    /// Returns the reference to a workspace as it exists now. `identity` is `None` for the default
    /// workspace.
    #[must_use]
    pub fn new(workspace: &Workspace, identity: Option<&WorkspaceIdentity>) -> Self {
        let id = identity.and_then(WorkspaceIdentity::id).map(str::to_owned);
        Self { workspace: workspace.clone(), id }
    }

    /// Reads the workspace that a role belongs to from the role's item. Returns `None` if the item
    /// names no valid workspace.
    #[must_use]
    pub fn of_role(role: &Item) -> Option<Self> {
        let workspace = Workspace::stored(role.get(IN_WORKSPACE)?).ok()?;
        Some(Self { workspace, id: role.get(WORKSPACE_ID).map(str::to_owned) })
    }

    /// Adds this reference to the item of a role that belongs to the workspace.
    #[must_use]
    pub fn with_role(&self, role: Item) -> Item {
        let role = role.with(IN_WORKSPACE, text(self.workspace.as_str()));
        match &self.id {
            Some(id) => role.with(WORKSPACE_ID, text(id)),
            None => role,
        }
    }

    /// Returns the prefix under which the names of the workspace's roles are claimed. It is unique
    /// to the workspace.
    #[must_use]
    pub fn claim_prefix(&self) -> &str {
        self.id.as_deref().unwrap_or(self.workspace.as_str())
    }

    /// Returns `text`, which describes a grant in this workspace, in its stored form: with the
    /// workspace and a `/` before it. Without a `/`, it belongs to the default workspace, because
    /// neither types nor ids contain one.
    #[must_use]
    pub fn grant_text(&self, text: &str) -> String {
        match &self.id {
            Some(id) => format!("{}{ID_SEPARATOR}{id}/{text}", self.workspace),
            None if self.workspace == Workspace::default() => text.to_owned(),
            None => format!("{}/{text}", self.workspace),
        }
    }

    /// Splits the stored text of a grant into the workspace that it belongs to and the text without
    /// it.
    #[must_use]
    pub fn split_grant_text(text: &str) -> Option<(Self, &str)> {
        let Some((place, text)) = text.split_once('/') else {
            return Some((Self { workspace: Workspace::default(), id: None }, text));
        };
        Some((Self::parse(place)?, text))
    }

    /// Parses a reference from its text, which [`Display`](std::fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (workspace, id) = match text.split_once(ID_SEPARATOR) {
            Some((workspace, id)) => (workspace, Some(id.to_owned())),
            None => (text, None),
        };
        Some(Self { workspace: Workspace::parse(workspace).ok()?, id })
    }

    /// Returns the current reference to a workspace, from the items that were read. Returns `None`
    /// if the workspace does not exist.
    pub(crate) fn current(workspace: &Workspace, read: &AuthorizerItems) -> Option<Self> {
        if *workspace == Workspace::default() {
            return Some(Self::new(workspace, None));
        }
        let item = read.get(&TableKey::here(workspace_key(workspace)))?;
        Some(Self::new(workspace, Some(&WorkspaceIdentity::of(item)?)))
    }
}

impl std::fmt::Display for WorkspaceRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.id {
            Some(id) => write!(formatter, "{}{ID_SEPARATOR}{id}", self.workspace),
            None => self.workspace.fmt(formatter),
        }
    }
}

/// References to the existing workspaces among those that were looked up.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceRefs(HashMap<Workspace, WorkspaceRef>);

impl WorkspaceRefs {
    /// Returns the current references to workspaces, from the items that were read.
    pub(crate) fn current(workspaces: impl Iterator<Item = Workspace>, read: &AuthorizerItems) -> Self {
        let current = |workspace: Workspace| Some((workspace.clone(), WorkspaceRef::current(&workspace, read)?));
        Self(workspaces.filter_map(current).collect())
    }

    /// Checks whether the referenced workspace exists, with both its name and its id.
    #[must_use]
    pub fn has(&self, place: &WorkspaceRef) -> bool {
        self.0.get(&place.workspace) == Some(place)
    }

    /// Returns the reference to the workspace with this name, if it exists.
    #[must_use]
    pub fn get(&self, workspace: &Workspace) -> Option<&WorkspaceRef> {
        self.0.get(workspace)
    }

    /// Checks whether there is a workspace with this name.
    #[must_use]
    pub fn has_named(&self, workspace: &Workspace) -> bool {
        self.0.contains_key(workspace)
    }
}

/// Returns the key of a workspace's item. The default workspace has none.
pub(crate) fn item_key(workspace: &Workspace) -> Option<TableKey> {
    (*workspace != Workspace::default()).then(|| TableKey::here(workspace_key(workspace)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_read_as_written() {
        for (workspace, id) in [("default", None), ("team-a", None), ("team-a", Some("01J"))] {
            let place = WorkspaceRef { workspace: Workspace::parse(workspace).unwrap(), id: id.map(str::to_owned) };
            let text = place.grant_text("experiment");
            assert_eq!(WorkspaceRef::split_grant_text(&text), Some((place.clone(), "experiment")), "{text}");
            assert_eq!(WorkspaceRef::parse(&place.to_string()), Some(place));
        }
        assert_eq!(WorkspaceRef::split_grant_text("Team/x"), None);
    }
}
