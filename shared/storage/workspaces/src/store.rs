//! Workspaces in the table.

use std::collections::BTreeMap;

use entities::now_ms;
use key_schema::attributes::{CREATED, ID};
use key_schema::{Key, rows};
use mlflow_api::{Error, ErrorCode, Result, Workspace, location};
use table::{Condition, Failure, Item, Query, Reason, Table, Update, Write, number, text};

use crate::document::{Change, Document, key_of};

/// The workspaces of a table. Cheap to clone.
#[derive(Clone)]
pub struct Workspaces {
    pub(crate) table: Table,
}

/// The row that lists a workspace.
pub(crate) fn listed_key(workspace: &Workspace) -> Key {
    rows::ListedWorkspace::key(&workspace.as_str().into())
}

impl Workspaces {
    /// Over a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Makes a workspace. One request; four write units.
    ///
    /// # Errors
    /// `RESOURCE_ALREADY_EXISTS`.
    pub async fn create(&self, name: &Workspace, new: &Change) -> Result<Document> {
        let item =
            Item::new(key_of(name)).with(ID, text(ulid::Ulid::generate().to_string())).with(CREATED, number(now_ms()));
        let said = new.attributes().filter(|(_, value)| !value.is_empty());
        let item = said.fold(item, |item, (attribute, value)| item.with(attribute, text(value)));
        // An empty description is one, too.
        let item = match new.description.as_deref() {
            Some("") => item.with(key_schema::attributes::DESCRIPTION, text("")),
            _ => item,
        };
        let listed = Write::Put(Item::new(listed_key(name)), Condition::Always);
        let document = Document::of(&item)?;
        match self.table.create(item, vec![listed]).await {
            Ok(()) => Ok(document),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(Reason::Refused(_))) => {
                Err(Error::new(ErrorCode::ResourceAlreadyExists, format!("Workspace '{name}' already exists.")))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// A workspace. One request, one read unit.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub async fn get(&self, name: &Workspace) -> Result<Document> {
        match self.table.get(&key_of(name)).await? {
            Some(item) => Document::of(&item),
            None if *name == Workspace::default() => Ok(Document::default_workspace()),
            None => Err(name.not_found()),
        }
    }

    /// All workspaces that requests can name, by their names. One request, and one for each hundred.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn list(&self) -> Result<Vec<Document>> {
        let named = self.listed().await?.into_iter().filter(|name| !name.is_for_removal());
        let keys: Vec<_> = named.chain([Workspace::default()]).map(|name| key_of(&name)).collect();
        let items = self.table.get_many(&keys).await?;
        let mut documents = BTreeMap::from([(Workspace::default(), Document::default_workspace())]);
        for item in items.values() {
            let document = Document::of(item)?;
            documents.insert(document.name.clone(), document);
        }
        Ok(documents.into_values().collect())
    }

    /// The names of all workspaces, the default one first, those included whose contents are to be removed. One request per MB of them.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn names(&self) -> Result<Vec<Workspace>> {
        Ok(std::iter::once(Workspace::default()).chain(self.listed().await?).collect())
    }

    /// The names of all workspaces but the default one, those included whose contents are to be removed. One request per MB of them.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn listed(&self) -> Result<Vec<Workspace>> {
        let rows = self.table.query(Query::of(rows::ListedWorkspace::all())).await?;
        let name = |item: &Item| Workspace::stored(&rows::ListedWorkspace::parse(&item.key()?)?.workspace.0).ok();
        entities::read_all(&rows, "the name of a workspace", name)
    }

    /// Changes a workspace. One request. The default one gets an item where there is none.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub async fn change(&self, name: &Workspace, change: &Change) -> Result<Document> {
        let mut update = Update::upsert(key_of(name));
        update = if *name == Workspace::default() {
            update.set(ID, text("default")).set(CREATED, number(0))
        } else {
            update.only_if(Condition::item_exists())
        };
        for (attribute, value) in change.attributes() {
            let is_taken_away = value.is_empty() && attribute.name() != key_schema::attributes::DESCRIPTION.name();
            update = if is_taken_away { update.remove(attribute) } else { update.set(attribute, text(value)) };
        }
        match self.table.update(&update).await {
            Ok(item) => Document::of(&item),
            Err(Failure::Refused { .. }) => Err(name.not_found()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The directory for the artifacts of a new experiment in a workspace, where the server's own
    /// place is `root`. It is below the workspace's own directory, if there is one. In the default
    /// workspace it is below that of the server, as without workspaces. One request, and none for
    /// the default one.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn artifact_root(&self, name: &Workspace, root: &str) -> Result<String> {
        if *name == Workspace::default() {
            return Ok(root.to_owned());
        }
        Ok(match self.get(name).await?.artifact_root {
            Some(own) => own,
            None => location::append(&location::append(root, "workspaces"), name.as_str()),
        })
    }
}
