//! Creating, changing and deleting label schemas.

use access::Granted;
use entities::attributes::{CHANGES, COMMENTS, INPUT, INSTRUCTION, NAME, UPDATED};
use entities::now_ms;
use mlflow_api::label_schemas::{LabelInput, LabelSchema, check_instruction, check_name};
use mlflow_api::{Error, ExperimentId, LabelSchemaId, Result};
use rand::RngExt;
use table::{ChangePlan, Condition, Failure, Item, Update, Write, number, text};

use super::items::{NewLabelSchema, input_text, name_key, name_row, schema_key, schema_of, taken};
use crate::store::Store;

/// A change of a label schema. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct LabelSchemaChange {
    /// New name.
    pub name: Option<String>,
    /// New instruction.
    pub instruction: Option<String>,
    /// Whether reviewers can add a comment.
    pub enable_comment: Option<bool>,
    /// New input.
    pub input: Option<LabelInput>,
}

impl LabelSchemaChange {
    /// Checks the change (`validate_schema_for_update`).
    fn check(&self, current: &LabelSchema) -> Result<()> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        if let Some(instruction) = &self.instruction {
            check_instruction(instruction)?;
        }
        if let Some(input) = &self.input {
            input.check()?;
            current.input.check_replacement(input)?;
        }
        Ok(())
    }

    fn apply(&self, schema: LabelSchema, now: i64) -> LabelSchema {
        LabelSchema {
            name: self.name.clone().unwrap_or(schema.name),
            instruction: self.instruction.clone().or(schema.instruction),
            enable_comment: self.enable_comment.unwrap_or(schema.enable_comment),
            input: self.input.clone().unwrap_or(schema.input),
            last_updated_at: now,
            ..schema
        }
    }

    fn update(&self, item: &Item, schema: &LabelSchemaId, now: i64) -> Result<Update> {
        let update = Update::new(schema_key(schema))
            .set(UPDATED, number(now))
            .add(CHANGES, number(1))
            .only_if(Condition::unchanged(item, CHANGES));
        let update = self.name.iter().fold(update, |update, name| update.set(NAME, text(name)));
        let update =
            self.instruction.iter().fold(update, |update, instruction| update.set(INSTRUCTION, text(instruction)));
        let update = match self.enable_comment {
            None => update,
            Some(true) => update.set(COMMENTS, number(1)),
            Some(false) => update.remove(COMMENTS),
        };
        match &self.input {
            None => Ok(update),
            Some(input) => Ok(update.set(INPUT, text(input_text(input)?))),
        }
    }
}

impl Store {
    /// Creates a label schema. Takes one request, and one more if the lease on the experiment has
    /// expired.
    pub async fn label_schema_create(
        &self,
        experiment: &Granted<ExperimentId>,
        new: &NewLabelSchema,
    ) -> Result<LabelSchema> {
        let experiment = self.reviewed_experiment(**experiment).await?;
        self.table
            .change("a label schema", |refused| async move {
                if refused.is_of(1) {
                    return Err(taken(&new.name, experiment));
                }
                let schema = LabelSchemaId::new(now_ms(), experiment, rand::rng().random());
                let item = new.item(&schema, schema.created())?;
                let created = schema_of(&item)?;
                let claim = Write::Put(name_row(&schema, &new.name), Condition::item_missing());
                Ok::<_, Error>(ChangePlan::Create(item, vec![claim], created))
            })
            .await
    }

    /// Changes a label schema. Takes two requests.
    pub async fn label_schema_update(
        &self,
        experiment: &Granted<ExperimentId>,
        schema: &LabelSchemaId,
        change: &LabelSchemaChange,
    ) -> Result<LabelSchema> {
        if schema.experiment() != **experiment {
            return Err(LabelSchemaId::not_found(schema.as_str()));
        }
        if schema.is_default() {
            return Err(Error::invalid("The experiment's default question cannot be edited."));
        }
        let now = now_ms();
        self.table
            .change("a label schema", |refused| async move {
                let Some(item) = self.table.get(&schema_key(schema)).await? else {
                    return Err(LabelSchemaId::not_found(schema.as_str()));
                };
                let current = schema_of(&item)?;
                change.check(&current)?;
                let mut writes = vec![Write::Update(change.update(&item, schema, now)?)];
                if let Some(name) = change.name.as_ref().filter(|name| **name != current.name) {
                    if refused.is_of(1) {
                        return Err(taken(name, **experiment));
                    }
                    writes.push(Write::Put(name_row(schema, name), Condition::item_missing()));
                    writes.push(Write::Delete(name_key(**experiment, &current.name), Condition::Always));
                }
                Ok(ChangePlan::Write(writes, change.apply(current, now)))
            })
            .await
    }

    /// Deletes a label schema, if it exists. Queues with the schema keep its id. Takes two
    /// requests.
    pub async fn label_schema_delete(&self, experiment: &Granted<ExperimentId>, schema: &LabelSchemaId) -> Result<()> {
        if schema.experiment() != **experiment {
            return Ok(());
        }
        if schema.is_default() {
            return Err(Error::invalid("The experiment's default question cannot be deleted."));
        }
        let mut attempts = self.table.attempts("a label schema");
        loop {
            attempts.next().await?;
            let Some(item) = self.table.get(&schema_key(schema)).await? else { return Ok(()) };
            let name = item.get(NAME).unwrap_or_default();
            let writes = [
                Write::Delete(schema_key(schema), Condition::unchanged(&item, CHANGES)),
                Write::Delete(name_key(**experiment, name), Condition::Always),
            ];
            match self.table.transact(&writes).await {
                Ok(()) => return Ok(()),
                // Another request has changed or deleted the schema concurrently.
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
