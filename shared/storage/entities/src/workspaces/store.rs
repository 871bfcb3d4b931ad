//! Storage of workspaces.

use std::collections::BTreeMap;

use crate::{WorkspaceIdentity, now_ms, unreadable};
use key_schema::attributes::{BY_ID, CREATED, DESCRIPTION, DIRECTORY, ID};
use key_schema::{Key, rows};
use mlflow_api::{Error, ErrorCode, Result, Workspace, location};
use table::{ChangePlan, Condition, Failure, Item, Query, RefusedWrites, Table, Update, Write, number, text};

use crate::workspaces::document::{WorkspaceChange, WorkspaceDocument, key_of};

/// The workspaces of a table. Cheap to clone.
#[derive(Clone)]
pub struct Workspaces {
    pub(crate) table: Table,
}

/// Returns the key of the row that lists a workspace.
pub(crate) fn listed_key(workspace: &Workspace) -> Key {
    rows::ListedWorkspace::key(&workspace.as_str().into())
}

/// Returns the key of the row that records that a workspace of this name has been deleted.
pub(crate) fn former_key(workspace: &Workspace) -> Key {
    rows::FormerWorkspace::key(&workspace.as_str().into())
}

/// Returns the item of a new workspace.
fn new_item(name: &Workspace, new: &WorkspaceChange, is_former: bool) -> Item {
    let id = ulid::Ulid::generate().to_string();
    let item = Item::new(key_of(name)).with(ID, text(&id)).with(CREATED, number(now_ms())).with(BY_ID, number(1));
    let said = new.attributes().filter(|(_, value)| !value.is_empty());
    let item = said.fold(item, |item, (attribute, value)| item.with(attribute, text(value)));
    // Unlike other empty texts, which stand for missing values, an empty description is stored.
    let item = match new.description.as_deref() {
        Some("") => item.with(DESCRIPTION, text("")),
        _ => item,
    };
    // The name of the new directory contains a dot and a unique id. It cannot be the directory of
    // another workspace, because names of workspaces contain no dot.
    if is_former { item.with(DIRECTORY, text(format!("{name}.{id}"))) } else { item }
}

impl Workspaces {
    /// Returns the workspaces of a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Creates a workspace. Takes two requests and six write units.
    ///
    /// # Errors
    /// `RESOURCE_ALREADY_EXISTS`.
    pub async fn create(&self, name: &Workspace, new: &WorkspaceChange) -> Result<WorkspaceDocument> {
        self.create_with(name, new, |_| Vec::new()).await
    }

    /// Creates a workspace, and executes the writes that `with` returns in the same transaction. If
    /// an earlier workspace had the name, the new one gets another artifact directory. Takes two
    /// requests. The cost is six write units, in addition to the writes of `with`.
    ///
    /// # Errors
    /// `RESOURCE_ALREADY_EXISTS`.
    pub async fn create_with(
        &self,
        name: &Workspace,
        new: &WorkspaceChange,
        with: impl Fn(&WorkspaceIdentity) -> Vec<Write>,
    ) -> Result<WorkspaceDocument> {
        let former = former_key(name);
        self.table
            .change("a workspace", async |refusal: RefusedWrites| {
                if refusal.is_of(0) {
                    let message = format!("Workspace '{name}' already exists.");
                    return Err(Error::new(ErrorCode::ResourceAlreadyExists, message));
                }
                let is_former = self.table.get(&former).await?.is_some();
                let item = new_item(name, new, is_former);
                let document = WorkspaceDocument::of(&item)?;
                let identity = WorkspaceIdentity::of(&item).ok_or_else(|| unreadable(&item, "a workspace"))?;
                let mut others = vec![Write::Put(Item::new(listed_key(name)), Condition::Always)];
                // A workspace of this name may be deleted between the read and this transaction,
                // which the check detects.
                others.extend((!is_former).then(|| Write::Check(former.clone(), Condition::item_missing())));
                others.extend(with(&identity));
                Ok(ChangePlan::Create(item, others, document))
            })
            .await
    }

    /// Returns a workspace. Takes one request and one read unit.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub async fn get(&self, name: &Workspace) -> Result<WorkspaceDocument> {
        match self.table.get(&key_of(name)).await? {
            Some(item) => WorkspaceDocument::of(&item),
            None if *name == Workspace::default() => Ok(WorkspaceDocument::default_workspace()),
            None => Err(name.not_found()),
        }
    }

    /// Returns all workspaces that requests can name, ordered by name. Takes one request, and one
    /// more per hundred workspaces.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn list(&self) -> Result<Vec<WorkspaceDocument>> {
        let named = self.listed().await?.into_iter().filter(|name| !name.is_for_removal());
        let keys: Vec<_> = named.chain([Workspace::default()]).map(|name| key_of(&name)).collect();
        let items = self.table.get_many(&keys).await?;
        let mut documents = BTreeMap::from([(Workspace::default(), WorkspaceDocument::default_workspace())]);
        for item in items.values() {
            let document = WorkspaceDocument::of(item)?;
            documents.insert(document.name.clone(), document);
        }
        Ok(documents.into_values().collect())
    }

    /// Returns the names of all workspaces, the default one first, including those whose contents
    /// are to be removed. Takes one request per MB of names.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn names(&self) -> Result<Vec<Workspace>> {
        Ok(std::iter::once(Workspace::default()).chain(self.listed().await?).collect())
    }

    /// Returns the names of all workspaces except the default one, including those whose contents
    /// are to be removed. Takes one request per MB of names.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn listed(&self) -> Result<Vec<Workspace>> {
        let rows = self.table.query(Query::of(rows::ListedWorkspace::all())).await?;
        let name = |item: &Item| Workspace::stored(&rows::ListedWorkspace::parse(&item.key()?)?.workspace.0).ok();
        crate::read_all(&rows, "the name of a workspace", name)
    }

    /// Changes a workspace. Takes one request. If the default workspace has no item, one is
    /// created.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub async fn change(&self, name: &Workspace, change: &WorkspaceChange) -> Result<WorkspaceDocument> {
        let mut update = Update::upsert(key_of(name));
        update = if *name == Workspace::default() {
            update.set(ID, text("default")).set(CREATED, number(0))
        } else {
            update.only_if(Condition::item_exists())
        };
        for (attribute, value) in change.attributes() {
            let is_taken_away = value.is_empty() && attribute.name() != DESCRIPTION.name();
            update = if is_taken_away { update.remove(attribute) } else { update.set(attribute, text(value)) };
        }
        match self.table.update(&update).await {
            Ok(item) => WorkspaceDocument::of(&item),
            Err(Failure::Refused { .. }) => Err(name.not_found()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the artifact root of new experiments in a workspace, given the server's root. This
    /// is the workspace's own root, if it has one. Otherwise, it is the workspace's directory below
    /// the server's root, or, for the default workspace, the server's root itself. Takes one
    /// request, and none for the default workspace.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn artifact_root(&self, name: &Workspace, root: &str) -> Result<String> {
        if *name == Workspace::default() {
            return Ok(root.to_owned());
        }
        let WorkspaceDocument { artifact_root, directory, .. } = self.get(name).await?;
        Ok(artifact_root.unwrap_or_else(|| {
            let directory = directory.as_deref().unwrap_or(name.as_str());
            location::append(&location::append(root, "workspaces"), directory)
        }))
    }
}
