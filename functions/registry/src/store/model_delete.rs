//! Deleting models.

use access::{Granted, Guard};
use key_schema::{Key, ModelKey, Ordinal, key_parts, rows};
use mlflow_api::{RegisteredModelName, Result, Workspace};
use table::{ChangePlan, Condition, Failure, Item, Query, Update, Write, text};

use super::Store;
use super::attributes::{ID, NAME, RUN};
use super::model_home::home_key;
use super::model_item::{list_key, model_key};

/// Maximum number of deletions in one transaction, in addition to the check of the home.
const MAX_DELETIONS: usize = 98;
/// Maximum number of bytes of items that are put into one transaction. DynamoDB allows 4 MB.
const MAX_TRANSACTION_BYTES: usize = 3 << 20;

impl Store {
    /// Deletes a model. Once the second request has completed, the model is invisible to all
    /// clients, regardless of the number of its versions. After that, its rows are deleted, 100 per
    /// request. If the deletion is interrupted, the remaining rows are never shown, because a new
    /// model with this name gets another home. Repeating the call completes the deletion, unless
    /// the model had been renamed, in which case its home can no longer be found.
    pub async fn model_delete(&self, workspace: &Workspace, name: &Granted<RegisteredModelName>) -> Result<()> {
        let along =
            self.authorizer_writes.writes_of_deletion(&Guard::RegisteredModel(RegisteredModelName::clone(name)));
        let along = &along;
        let name = name.as_str();
        let model = self
            .table
            .change("a model", |refusal| async move {
                let model = match self.model_after_refusal(name, refusal).await {
                    Ok(model) => model,
                    Err(error) => {
                        self.home_clear_deserted(workspace, &self.key_of(name)).await?;
                        return Err(error);
                    }
                };
                let mut writes = vec![
                    Write::Delete(model_key(&model.key()), model.is_unchanged()),
                    Write::Delete(list_key(workspace, name, model.kind()), Condition::Always),
                    Write::Update(Update::new(home_key(&model.home())).only_if(model.is_same()).remove(NAME)),
                ];
                writes.extend(along.iter().cloned());
                Ok(ChangePlan::Write(writes, model))
            })
            .await?;
        self.home_clear(workspace, &model.home(), model.id()).await
    }

    /// Deletes the rows of a home whose model has been deleted. Does nothing if the model exists.
    async fn home_clear_deserted(&self, workspace: &Workspace, home: &ModelKey) -> Result<()> {
        let Some(item) = self.table.get(&home_key(home)).await? else { return Ok(()) };
        match item.get(ID) {
            Some(id) if !item.has(NAME) => self.home_clear(workspace, home, id).await,
            _ => Ok(()),
        }
    }

    /// Deletes all rows of a home whose model has been deleted, and finally the home's own row.
    /// Each step checks that the home still belongs to the deleted model.
    async fn home_clear(&self, workspace: &Workspace, home: &ModelKey, id: &str) -> Result<()> {
        let deserted = Condition::Equals(ID.into(), text(id)).and(Condition::Missing(NAME.into()));
        // The ranges contain versions with their tags, and tags of the model. The home's own row is
        // deleted last. The item of a new model with this name is kept.
        for range in [rows::ModelVersion::all(home).range(), rows::ModelTag::all(home).range()] {
            let query = Query::of(range);
            loop {
                let page = self.table.query_page(&query).await?;
                if page.items.is_empty() {
                    break;
                }
                for part in transactions(workspace, home, &page.items) {
                    let check = Write::Check(home_key(home), deserted.clone());
                    let deletions = part.into_iter().map(|key| Write::Delete(key, Condition::Always));
                    let writes: Vec<_> = std::iter::once(check).chain(deletions).collect();
                    match self.table.transact(&writes).await {
                        Ok(()) => {}
                        // Another request has completed the deletion.
                        Err(Failure::Cancelled(_)) => return Ok(()),
                        Err(failure) => return Err(failure.into()),
                    }
                }
            }
        }
        match self.table.transact(&[Write::Delete(home_key(home), deserted)]).await {
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Returns the keys of items, and of the rows that find versions by their runs, split into portions
/// that each fit into one transaction.
fn transactions(workspace: &Workspace, home: &ModelKey, items: &[Item]) -> Vec<Vec<Key>> {
    let mut parts: Vec<Vec<Key>> = Vec::new();
    let mut bytes = usize::MAX;
    for item in items {
        let Some(key) = item.key() else { continue };
        let of_run = item.get(RUN).filter(|run| !run.is_empty()).and_then(|run| {
            let version = Ordinal(key_parts::version_of_document(&key.sk)?);
            Some(rows::VersionOfRun::key(&ModelKey::of(workspace, run), home, &version))
        });
        let is_full = parts
            .last()
            .is_none_or(|part| part.len() + 2 > MAX_DELETIONS || bytes + item.size() > MAX_TRANSACTION_BYTES);
        if is_full {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += item.size();
        if let Some(part) = parts.last_mut() {
            part.extend(of_run);
            part.push(key);
        }
    }
    parts
}
