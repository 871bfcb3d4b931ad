//! The store of the function: the schema, and the endpoints of other functions.

use access::Scope;
use std::sync::Arc;

use apollo_compiler::Schema;
use apollo_compiler::validation::Valid;
use mlflow_api::{Error, Result};
use service::InternalCalls;
use table::Table;

use crate::root_endpoints::ROOTS;

/// The store of the function. It stores nothing itself. Cheap to clone. Each process has one.
#[derive(Clone)]
pub struct Store {
    table: Table,
    pub(crate) calls: Arc<InternalCalls>,
    pub(crate) schema: Arc<Valid<Schema>>,
}

impl Store {
    /// Returns a store over the endpoints of other domains, which authorize their calls themselves.
    ///
    /// # Errors
    /// An internal error if the schema is invalid, or if the endpoint of a root field is missing.
    pub fn new(table: Table, calls: InternalCalls) -> Result<Self> {
        let schema = Schema::parse_and_validate(include_str!("schema.graphql"), "schema.graphql");
        let schema = schema.map_err(|error| Error::internal(error.errors.to_string()))?;
        if let Some((root, endpoint)) = ROOTS.iter().find(|(_, endpoint)| calls.get(endpoint).is_none()) {
            return Err(Error::internal(format!("{root} needs {endpoint}, which no domain has")));
        }
        Ok(Self { table, calls: Arc::new(calls), schema: Arc::new(schema) })
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
