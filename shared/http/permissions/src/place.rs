//! The workspaces that roles and grants belong to.
//!
//! A workspace that is made after another one of its name was deleted is another workspace. So a
//! role or a grant says the id of its workspace besides the name, and counts only while the
//! workspace of that name has that id. What belongs to a workspace of 0.1.0 has no id, and never
//! belongs to one that was made later (`docs/adr/0064-identity-of-workspaces.md`).

use std::collections::HashMap;

use access::Read;
use entities::{WorkspaceIdentity, workspace_key};
use key_schema::attributes::{IN_WORKSPACE, WORKSPACE_ID};
use mlflow_api::Workspace;
use table::{Item, TableKey, text};

/// Separates the name of a workspace from its id. No name has it.
const ID: char = '@';

/// The workspace that a role or a grant belongs to, as it is stored with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The name of the workspace.
    pub workspace: Workspace,
    /// Its id. `None` in the default workspace, and in one that 0.1.0 made.
    pub id: Option<String>,
}

impl Place {
    /// The place of what is made in a workspace now. `identity` is `None` in the default workspace.
    #[must_use]
    pub fn new(workspace: &Workspace, identity: Option<&WorkspaceIdentity>) -> Self {
        let id = identity.and_then(WorkspaceIdentity::id).map(str::to_owned);
        Self { workspace: workspace.clone(), id }
    }

    /// The place of a role, from its item. `None` if it names no workspace that can exist.
    #[must_use]
    pub fn of_role(role: &Item) -> Option<Self> {
        let workspace = Workspace::stored(role.get(IN_WORKSPACE)?).ok()?;
        Some(Self { workspace, id: role.get(WORKSPACE_ID).map(str::to_owned) })
    }

    /// The item of a role in this place.
    #[must_use]
    pub fn with_role(&self, role: Item) -> Item {
        let role = role.with(IN_WORKSPACE, text(self.workspace.as_str()));
        match &self.id {
            Some(id) => role.with(WORKSPACE_ID, text(id)),
            None => role,
        }
    }

    /// Under what the names of roles in this place are claimed: no two workspaces share it.
    #[must_use]
    pub fn claim(&self) -> &str {
        self.id.as_deref().unwrap_or(self.workspace.as_str())
    }

    /// A text about a grant in this place, as attributes hold it. Neither types nor ids have a `/`.
    #[must_use]
    pub fn granted(&self, text: &str) -> String {
        match &self.id {
            Some(id) => format!("{}{ID}{id}/{text}", self.workspace),
            None if self.workspace == Workspace::default() => text.to_owned(),
            None => format!("{}/{text}", self.workspace),
        }
    }

    /// The place of such a text, and the text without it.
    #[must_use]
    pub fn of_granted(text: &str) -> Option<(Self, &str)> {
        let Some((place, text)) = text.split_once('/') else {
            return Some((Self { workspace: Workspace::default(), id: None }, text));
        };
        Some((Self::parse(place)?, text))
    }

    /// The place of its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (workspace, id) = match text.split_once(ID) {
            Some((workspace, id)) => (workspace, Some(id.to_owned())),
            None => (text, None),
        };
        Some(Self { workspace: Workspace::parse(workspace).ok()?, id })
    }

    /// The current place of a workspace, from the items that were read. `None` if there is no such workspace.
    pub(crate) fn current(workspace: &Workspace, read: &Read) -> Option<Self> {
        if *workspace == Workspace::default() {
            return Some(Self::new(workspace, None));
        }
        let item = read.get(&TableKey::here(workspace_key(workspace)))?;
        Some(Self::new(workspace, Some(&WorkspaceIdentity::of(item)?)))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.id {
            Some(id) => write!(formatter, "{}{ID}{id}", self.workspace),
            None => self.workspace.fmt(formatter),
        }
    }
}

/// The places that exist, of those that were asked for.
#[derive(Clone, Debug, Default)]
pub struct Places(HashMap<Workspace, Place>);

impl Places {
    /// The current places of workspaces, from the items that were read.
    pub(crate) fn current(workspaces: impl Iterator<Item = Workspace>, read: &Read) -> Self {
        let current = |workspace: Workspace| Some((workspace.clone(), Place::current(&workspace, read)?));
        Self(workspaces.filter_map(current).collect())
    }

    /// Whether a place exists: its workspace is there, and has its id.
    #[must_use]
    pub fn has(&self, place: &Place) -> bool {
        self.0.get(&place.workspace) == Some(place)
    }

    /// Whether there is a workspace of this name.
    #[must_use]
    pub fn has_named(&self, workspace: &Workspace) -> bool {
        self.0.contains_key(workspace)
    }
}

/// The key of the item of a workspace, if it has one.
pub(crate) fn item_key(workspace: &Workspace) -> Option<TableKey> {
    (*workspace != Workspace::default()).then(|| TableKey::here(workspace_key(workspace)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_read_as_written() {
        for (workspace, id) in [("default", None), ("team-a", None), ("team-a", Some("01J"))] {
            let place = Place { workspace: Workspace::parse(workspace).unwrap(), id: id.map(str::to_owned) };
            let text = place.granted("experiment");
            assert_eq!(Place::of_granted(&text), Some((place.clone(), "experiment")), "{text}");
            assert_eq!(Place::parse(&place.to_string()), Some(place));
        }
        assert_eq!(Place::of_granted("Team/x"), None);
    }
}
