//! Deleting a workspace.

use std::time::Duration;

use entities::read_all;
use key_schema::attributes::{GOES_TO, ID, NAME};
use key_schema::{Key, ModelKind, Name, rows};
use mlflow_api::{Error, ErrorCode, Result, Workspace};
use table::{Condition, Failure, Item, Query, Update, Write, text};

use crate::document::{Document, key_of};
use crate::store::{Workspaces, former_key, listed_key};

/// The treatment of a workspace's contents (`WorkspaceDeletionMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It must hold nothing.
    Restrict,
    /// It goes to the default workspace.
    SetDefault,
    /// It is removed.
    Cascade,
}

impl Mode {
    /// All, in MLflow's order.
    pub const ALL: [Self; 3] = [Self::SetDefault, Self::Cascade, Self::Restrict];

    /// MLflow's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restrict => "RESTRICT",
            Self::SetDefault => "SET_DEFAULT",
            Self::Cascade => "CASCADE",
        }
    }
}

/// The contents of a workspace, by the names of MLflow's tables.
struct Contents {
    table: &'static str,
    names: Vec<String>,
}

impl Workspaces {
    /// Begins to delete a workspace: checks that this is possible, and closes it for all writes. A
    /// second deletion goes on. It answers when no process relies on an earlier read of the
    /// workspace; `lease` is for how long they do. A few requests per thousand names.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, and `INVALID_STATE` where it has contents, or a name that the
    /// default workspace has, too: then nothing has changed.
    pub async fn begin_deletion(&self, name: &Workspace, mode: Mode, lease: Duration) -> Result<Document> {
        let found = self.get(name).await?;
        self.check(&found, mode).await?;
        let goes_to = match (mode, &found.goes_to) {
            // Contents that have gone there never come back.
            (_, Some(before)) if before.is_for_removal() => before.clone(),
            (Mode::Cascade, _) => Workspace::for_removal(&found.id),
            (Mode::SetDefault | Mode::Restrict, _) => Workspace::default(),
        };
        let is_it = || Condition::Equals(ID.into(), text(&found.id));
        let mark = Update::new(key_of(name)).only_if(is_it()).set(GOES_TO, text(goes_to.as_str()));
        let mut writes = vec![Write::Update(mark)];
        if goes_to.is_for_removal() {
            writes.push(Write::Put(Item::new(listed_key(&goes_to)), Condition::Always));
        }
        match self.table.transact(&writes).await {
            Ok(()) => {}
            Err(Failure::Cancelled(_)) => return Err(name.not_found()),
            Err(failure) => return Err(failure.into()),
        }
        clock::sleep(lease).await;
        if let Err(error) = self.check(&found, mode).await {
            if found.goes_to.is_none() {
                self.give_back(&found).await?;
            }
            return Err(error);
        }
        Ok(Document { goes_to: Some(goes_to), ..found })
    }

    /// Lets a workspace be written to again.
    async fn give_back(&self, found: &Document) -> Result<()> {
        let is_it = Condition::Equals(ID.into(), text(&found.id));
        let update = Update::new(key_of(&found.name)).only_if(is_it).remove(GOES_TO);
        match self.table.transact(&[Write::Update(update)]).await {
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Moves the contents of a workspace, and deletes it. A request for each entity.
    ///
    /// # Errors
    /// Those of the table; then it may be done again. `INVALID_STATE`, where a name was taken
    /// meanwhile.
    pub async fn finish_deletion(&self, begun: &Document) -> Result<()> {
        let Some(to) = &begun.goes_to else { return Err(Error::internal("a deletion was not begun")) };
        self.move_all(&begun.name, to).await?;
        self.table.delete_range(rows::WorkspaceDay::all(&begun.name.as_str().into()).range()).await?;
        let is_it = Condition::Equals(ID.into(), text(&begun.id));
        let writes = [
            Write::Delete(key_of(&begun.name), is_it),
            Write::Delete(listed_key(&begun.name), Condition::Always),
            Write::Put(Item::new(former_key(&begun.name)), Condition::Always),
        ];
        match self.table.transact(&writes).await {
            // Somebody else was faster, and perhaps made another of the name.
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Refuses a deletion that cannot be done.
    async fn check(&self, found: &Document, mode: Mode) -> Result<()> {
        let name = &found.name;
        match mode {
            Mode::Cascade => Ok(()),
            _ if found.goes_to.as_ref().is_some_and(Workspace::is_for_removal) => Err(Error::new(
                ErrorCode::InvalidState,
                format!("Cannot delete workspace '{name}': it is being deleted in mode CASCADE. Repeat that."),
            )),
            Mode::Restrict => {
                for Contents { table, names } in self.contents(name).await? {
                    let count = names.len();
                    if count > 0 {
                        return Err(Error::new(
                            ErrorCode::InvalidState,
                            format!(
                                "Cannot delete workspace '{name}': table '{table}' still contains {count} resource(s). \
                                 Remove or reassign them before deleting the workspace."
                            ),
                        ));
                    }
                }
                Ok(())
            }
            Mode::SetDefault => {
                let conflicts = self.conflicts(name).await?;
                if conflicts.is_empty() {
                    return Ok(());
                }
                Err(conflict(name, &conflicts))
            }
        }
    }

    /// The contents of a workspace that keep it from being deleted.
    async fn contents(&self, workspace: &Workspace) -> Result<Vec<Contents>> {
        let here = Name::from(workspace.as_str());
        let models = [ModelKind::Model, ModelKind::Prompt].map(|kind| rows::ModelName::all(&here).kind(&kind).range());
        let mut names = Vec::new();
        for range in models {
            names.extend(self.listed_names(range).await?);
        }
        let experiments = self.listed_names(rows::ExperimentName::all(&here).range()).await?;
        // A dataset with long texts is listed without its name.
        let datasets = self.table.query(Query::of(rows::WorkspaceEvaluationDataset::all(&here))).await?;
        let datasets = datasets.iter().map(|row| row.get(NAME).unwrap_or_default().to_owned()).collect();
        Ok(vec![
            Contents { table: "registered_models", names },
            Contents { table: "experiments", names: experiments },
            Contents { table: "evaluation_datasets", names: datasets },
        ])
    }

    async fn listed_names(&self, range: key_schema::KeyRange) -> Result<Vec<String>> {
        let mut query = Query::of(range);
        let mut names = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            names.extend(read_all(&page.items, "a name", |row| row.get(NAME).map(str::to_owned))?);
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(names),
            }
        }
    }

    /// The names of a workspace that the default one has, too, by MLflow's names of tables.
    async fn conflicts(&self, workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
        let default = Name::from(Workspace::default().as_str());
        let mut conflicts = Vec::new();
        for Contents { table, names } in self.contents(workspace).await? {
            let key = |name: &String| -> Vec<Key> {
                let name = Name::from(name.as_str());
                match table {
                    "experiments" => vec![rows::ExperimentName::key(&default, &name)],
                    "registered_models" => [ModelKind::Model, ModelKind::Prompt]
                        .map(|kind| rows::ModelName::key(&default, &kind, &name))
                        .to_vec(),
                    // Names of datasets are nobody's own here.
                    _ => Vec::new(),
                }
            };
            let keys: Vec<_> = names.iter().flat_map(key).collect();
            if keys.is_empty() {
                continue;
            }
            let taken = self.table.get_many(&keys).await?;
            let mut taken: Vec<_> = taken.values().filter_map(|row| row.get(NAME).map(str::to_owned)).collect();
            taken.sort_unstable();
            conflicts.extend(taken.into_iter().map(|name| (table, name)));
        }
        Ok(conflicts)
    }
}

/// MLflow's refusal of names that are taken (`_check_set_default_conflicts`).
pub(crate) fn conflict(workspace: &Workspace, taken: &[(&'static str, String)]) -> Error {
    let line = |(table, name): &(&str, String)| format!("  - {table}: {}", mlflow_api::python::repr(name));
    let lines: Vec<_> = taken.iter().map(line).collect();
    Error::new(
        ErrorCode::InvalidState,
        format!(
            "Cannot reassign resources from workspace '{workspace}' to 'default': the following names already exist in the \
             default workspace and would cause conflicts:\n{}\nRename or remove the conflicting resources before retrying.",
            lines.join("\n")
        ),
    )
}
