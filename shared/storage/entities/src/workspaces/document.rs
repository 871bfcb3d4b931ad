//! The document of a workspace.

use crate::unreadable;
use key_schema::attributes::{ARCHIVE, ARCHIVE_AFTER, Attribute, DESCRIPTION, DIRECTORY, GOES_TO, ID, LOCATION, Text};
use key_schema::{Key, rows};
use mlflow_api::{Result, Workspace};
use table::Item;

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceDocument {
    /// Name.
    pub name: Workspace,
    /// Description.
    pub description: Option<String>,
    /// Artifact root of new experiments, if it is not below the server's own.
    pub artifact_root: Option<String>,
    /// Location of the files of archived traces, if it is not the server's.
    pub archive: Option<String>,
    /// Age at which traces are archived, if it is not the server's.
    pub archive_after: Option<String>,
    /// Unique id. Empty for a default workspace without a document.
    pub id: String,
    /// Name of the workspace's artifact directory below `workspaces/`, if it differs from the
    /// workspace's name.
    pub directory: Option<String>,
    /// Destination that the contents are moved to, if the workspace is being deleted.
    pub goes_to: Option<Workspace>,
}

/// A change to a workspace. Fields that are `None` stay as they are. An empty text removes a field,
/// except the description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Description.
    pub description: Option<String>,
    /// Artifact root of new experiments.
    pub artifact_root: Option<String>,
    /// Location of the files of archived traces.
    pub archive: Option<String>,
    /// Age at which traces are archived.
    pub archive_after: Option<String>,
}

impl WorkspaceChange {
    /// Returns the attributes to be changed, with their new values.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (Attribute<Text>, &str)> {
        let all = [
            (DESCRIPTION, &self.description),
            (LOCATION, &self.artifact_root),
            (ARCHIVE, &self.archive),
            (ARCHIVE_AFTER, &self.archive_after),
        ];
        all.into_iter().filter_map(|(attribute, value)| Some((attribute, value.as_deref()?)))
    }
}

/// Returns the key of a workspace's item.
#[must_use]
pub(crate) fn key_of(workspace: &Workspace) -> Key {
    rows::Workspace::key(&workspace.as_str().into())
}

impl WorkspaceDocument {
    /// Returns the default workspace without a document, with MLflow's description.
    pub(crate) fn default_workspace() -> Self {
        Self {
            name: Workspace::default(),
            description: Some("Default workspace for legacy resources".to_owned()),
            artifact_root: None,
            archive: None,
            archive_after: None,
            id: String::new(),
            directory: None,
            goes_to: None,
        }
    }

    /// Parses the item of a workspace.
    ///
    /// # Errors
    /// An internal error if the item is malformed.
    pub(crate) fn of(item: &Item) -> Result<Self> {
        let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let read = || {
            let row = rows::Workspace::parse(&item.key()?)?;
            let name = Workspace::stored(&row.workspace.0).ok()?;
            let goes_to = item.get(GOES_TO).map(Workspace::stored).transpose().ok()?;
            Some((name, text(ID)?, goes_to))
        };
        let (name, id, goes_to) = read().ok_or_else(|| unreadable(item, "a workspace"))?;
        Ok(Self {
            name,
            description: text(DESCRIPTION),
            artifact_root: text(LOCATION),
            archive: text(ARCHIVE),
            archive_after: text(ARCHIVE_AFTER),
            id,
            directory: text(DIRECTORY),
            goes_to,
        })
    }
}
