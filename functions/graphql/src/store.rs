//! The function's store: the schema, and the endpoints of other functions.

use access::Scope;
use std::sync::Arc;

use apollo_compiler::Schema;
use apollo_compiler::validation::Valid;
use mlflow_api::{Error, Result};
use service::Calls;
use table::Table;

use crate::roots::ROOTS;

/// The function's store. It keeps nothing itself. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    table: Table,
    pub(crate) calls: Arc<Calls>,
    pub(crate) schema: Arc<Valid<Schema>>,
}

impl Store {
    /// A store over the endpoints of other domains, as their own frames guard them.
    ///
    /// # Errors
    /// An internal one, if the schema does not hold together, or an endpoint is missing that a root needs.
    pub fn new(table: Table, calls: Calls) -> Result<Self> {
        let schema = Schema::parse_and_validate(include_str!("schema.graphql"), "schema.graphql");
        let schema = schema.map_err(|error| Error::internal(error.errors.to_string()))?;
        if let Some((root, endpoint)) = ROOTS.iter().find(|(_, endpoint)| calls.get(endpoint).is_none()) {
            return Err(Error::internal(format!("{root} needs {endpoint}, which no domain has")));
        }
        Ok(Self { table, calls: Arc::new(calls), schema: Arc::new(schema) })
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
