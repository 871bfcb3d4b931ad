//! Reading label schemas.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::label_schemas::{LabelSchemaResponse, LabelSchemasResponse};
use mlflow_api::requests::label_schemas as message;
use mlflow_api::{ExperimentId, Request, Result};
use search::check_page_token;
use service::Endpoint;

use crate::request_targets::LabelSchemaTarget;
use crate::store::Store;

/// Page size for requests without `max_results`.
const DEFAULT_PAGE: usize = 100;

fn needs_in(experiment: ExperimentId) -> Needs {
    Needs::of_in(Action::Read, Resource::LabelSchema, Target::Experiment(experiment))
}

pub(crate) struct Get(LabelSchemaTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = LabelSchemaResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneLabelSchema = request.read()?;
        Ok(Self(LabelSchemaTarget::of(message.schema_id)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LabelSchemaResponse> {
        let (experiment, schema) = self.0.granted(scope)?;
        Ok(LabelSchemaResponse { label_schema: store.label_schema_get(&experiment, &schema).await? })
    }
}

pub(crate) struct GetByName {
    experiment: ExperimentId,
    name: String,
}

impl Endpoint for GetByName {
    type Store = Store;
    type Answer = LabelSchemaResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetLabelSchemaByName = request.read()?;
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, name: message.name })
    }

    fn needs(&self) -> Needs {
        needs_in(self.experiment)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LabelSchemaResponse> {
        let experiment = scope.experiment(self.experiment)?;
        Ok(LabelSchemaResponse { label_schema: store.label_schema_get_by_name(&experiment, &self.name).await? })
    }
}

pub(crate) struct List {
    experiment: ExperimentId,
    max_results: usize,
    page_token: String,
}

impl Endpoint for List {
    type Store = Store;
    type Answer = LabelSchemasResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListLabelSchemas = request.read()?;
        check_page_token(&message.page_token)?;
        let max_results = message.max_results.and_then(|results| usize::try_from(results).ok());
        Ok(Self {
            experiment: ExperimentId::parse(&message.experiment_id)?,
            max_results: max_results.unwrap_or(DEFAULT_PAGE),
            page_token: message.page_token,
        })
    }

    fn needs(&self) -> Needs {
        needs_in(self.experiment)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LabelSchemasResponse> {
        store.label_schema_list(&scope.experiment(self.experiment)?, self.max_results, &self.page_token).await
    }
}
