//! The document of a workspace.

use entities::unreadable;
use key_schema::attributes::{ARCHIVE, ARCHIVE_AFTER, Attribute, DESCRIPTION, DIRECTORY, GOES_TO, ID, LOCATION, Text};
use key_schema::{Key, rows};
use mlflow_api::{Result, Workspace};
use table::Item;

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Name.
    pub name: Workspace,
    /// Description.
    pub description: Option<String>,
    /// Where new experiments keep their artifacts, if not below the server's own place.
    pub artifact_root: Option<String>,
    /// Where MLflow's archive of traces would be.
    pub archive: Option<String>,
    /// After what time MLflow would archive traces.
    pub archive_after: Option<String>,
    /// Tells it from every other workspace. It is empty for the default one without a document.
    pub id: String,
    /// Its directory of artifacts below `workspaces/`, if that is not its name.
    pub directory: Option<String>,
    /// Where its contents go, if it is being deleted.
    pub goes_to: Option<Workspace>,
}

/// A change of a workspace: fields that are `None` stay as they are. An empty text removes a field,
/// except the description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Description.
    pub description: Option<String>,
    /// Where new experiments keep their artifacts.
    pub artifact_root: Option<String>,
    /// Where MLflow's archive of traces would be.
    pub archive: Option<String>,
    /// After what time MLflow would archive traces.
    pub archive_after: Option<String>,
}

impl Change {
    /// The attributes that it is about.
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

/// The key of the item of a workspace.
#[must_use]
pub(crate) fn key_of(workspace: &Workspace) -> Key {
    rows::Workspace::key(&workspace.as_str().into())
}

impl Document {
    /// The default workspace without a document, with MLflow's description.
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

    /// The workspace of an item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
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
