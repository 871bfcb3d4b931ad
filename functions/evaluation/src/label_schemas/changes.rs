//! Creating, changing and deleting label schemas.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::label_schemas::{LabelSchemaResponse, LabelSchemaType, check_instruction, check_name};
use mlflow_api::requests::label_schemas as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{ExperimentId, Request, Result};
use service::Endpoint;

use crate::request_targets::LabelSchemaTarget;
use crate::store::{LabelSchemaChange, NewLabelSchema, Store};

pub(crate) struct Create {
    experiment: ExperimentId,
    new: NewLabelSchema,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = LabelSchemaResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateLabelSchema = request.read()?;
        let kind = LabelSchemaType::sent(message.r#type)?;
        let input = message::LabelSchemaInput::sent(message.input)?;
        check_name(&message.name)?;
        message.instruction.as_deref().map_or(Ok(()), check_instruction)?;
        input.check()?;
        let new = NewLabelSchema {
            name: message.name,
            kind,
            input,
            instruction: message.instruction,
            enable_comment: message.enable_comment,
        };
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(Target::Experiment(self.experiment), Resource::LabelSchema)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LabelSchemaResponse> {
        let experiment = scope.experiment(self.experiment)?;
        Ok(LabelSchemaResponse { label_schema: store.label_schema_create(&experiment, &self.new).await? })
    }
}

pub(crate) struct Modify {
    schema: LabelSchemaTarget,
    change: LabelSchemaChange,
}

impl Endpoint for Modify {
    type Store = Store;
    type Answer = LabelSchemaResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateLabelSchema = request.read()?;
        let change = LabelSchemaChange {
            name: message.name,
            instruction: message.instruction,
            enable_comment: message.enable_comment,
            input: message.input.map(|input| message::LabelSchemaInput::sent(Some(input))).transpose()?,
        };
        Ok(Self { schema: LabelSchemaTarget::of(message.schema_id), change })
    }

    fn needs(&self) -> Needs {
        self.schema.needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LabelSchemaResponse> {
        let (experiment, schema) = self.schema.granted(scope)?;
        Ok(LabelSchemaResponse { label_schema: store.label_schema_update(&experiment, &schema, &self.change).await? })
    }
}

pub(crate) struct Delete(LabelSchemaTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneLabelSchema = request.read()?;
        Ok(Self(LabelSchemaTarget::of(message.schema_id)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Delete)
    }

    /// Deleting a label schema that does not exist is a no-op.
    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        if let Some((experiment, schema)) = self.0.known(scope)? {
            store.label_schema_delete(&experiment, &schema).await?;
        }
        Ok(EmptyResponse {})
    }
}
