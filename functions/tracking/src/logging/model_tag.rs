//! Records models in a tag of the run, as clients did before logged models became entities.

use access::{Needs, Scope, Target};
use mlflow_api::json::read_value;
use mlflow_api::requests::logging as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, Request, Result, RunId};
use serde_json::{Map, Value};
use service::Endpoint;

use crate::store::Store;

/// Fields that the description of a model must contain.
const REQUIRED_FIELDS: [&str; 4] = ["artifact_path", "flavors", "run_id", "utc_time_created"];

pub(crate) struct LogModel {
    run: RunId,
    model: Map<String, Value>,
}

impl Endpoint for LogModel {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogModel = request.read()?;
        let json = &message.model_json;
        let model: Map<_, _> = match read_value(json.as_bytes()) {
            Ok(Value::Object(model)) => model,
            _ => return Err(Error::invalid(format!("Malformed model info. \n {json} \n is not a valid JSON."))),
        };
        let missing = REQUIRED_FIELDS.into_iter().filter(|field| !model.contains_key(*field));
        let missing: Vec<_> = missing.map(mlflow_api::python::repr).collect();
        if !missing.is_empty() {
            return Err(Error::invalid(format!("Model json is missing mandatory fields: {{{}}}", missing.join(", "))));
        }
        if !model.get("flavors").is_some_and(Value::is_object) {
            return Err(Error::invalid("The flavors of a model must be a JSON object."));
        }
        Ok(Self { run: RunId::named(&message.run_id)?, model })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_record_model(&scope.run(&self.run)?, &self.model).await?;
        Ok(EmptyResponse {})
    }
}
