//! What the function works on: the schema, and the endpoints of other functions.

use std::sync::Arc;

use apollo_compiler::Schema;
use apollo_compiler::validation::Valid;
use mlflow_api::{Error, Result};
use service::{Calls, Frame};
use table::Table;

/// The function's store. It keeps nothing itself. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    table: Table,
    pub(crate) calls: Arc<Calls>,
    pub(crate) schema: Arc<Valid<Schema>>,
}

impl Store {
    /// A store over the endpoints of the other functions, as their own frames guard them.
    ///
    /// # Errors
    /// An internal one, if the schema does not hold together.
    pub fn new(
        table: Table,
        tracking: &Frame<tracking::store::Store>,
        registry: &Frame<registry::store::Store>,
    ) -> Result<Self> {
        let schema = Schema::parse_and_validate(include_str!("schema.graphql"), "schema.graphql");
        let schema = schema.map_err(|error| Error::internal(error.errors.to_string()))?;
        let calls = Calls::default().with(tracking::routes(), tracking).with(registry::routes(), registry);
        Ok(Self { table, calls: Arc::new(calls), schema: Arc::new(schema) })
    }

    /// The same with the endpoints of artifacts.
    #[must_use]
    pub fn with_artifacts(self, artifacts: &Frame<artifacts::store::Store>) -> Self {
        let calls = Calls::clone(&self.calls).with(artifacts::routes(), artifacts);
        Self { calls: Arc::new(calls), ..self }
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
