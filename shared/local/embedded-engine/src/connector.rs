//! The engine as an HTTP client for the AWS SDK, without HTTP.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use dynoxide::Database;

use crate::bulk;
use crate::clustered;
use crate::expiry;
use crate::log::Log;
use crate::operations;
use crate::readers::Readers;
use crate::side::SideConnection;
use crate::stream_filter::Filters;
use crate::threads::Threads;
use crate::wire::{self, Answer};
use crate::{Error, without_keys};

#[derive(Clone)]
pub(crate) struct InProcess {
    pub(crate) database: Database,
    pub(crate) side: Arc<SideConnection>,
    /// The log that writes wait for. `None` in memory.
    pub(crate) log: Option<Arc<Log>>,
    /// Engines for concurrent reads. `None` in memory, where the database itself reads.
    pub(crate) readers: Option<Arc<Readers>>,
    pub(crate) filters: Arc<Filters>,
    pub(crate) threads: Arc<Threads>,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InProcess")
    }
}

impl InProcess {
    /// Runs a call on the engine's threads. Returns `None` if the engine has failed and the outcome
    /// of the call is unknown.
    pub(crate) async fn call(&self, operation: String, body: Vec<u8>) -> Option<Answer> {
        let engine = self.clone();
        if Readers::run(&operation) {
            return self.threads.read(move || engine.carry_out(&operation, &body)).await;
        }
        let log = self.log.clone().filter(|_| operations::writes(&operation));
        self.threads.write(log, move || engine.carry_out(&operation, &body)).await
    }

    /// Runs an operation. When it returns, its writes may not be on disk yet.
    fn carry_out(&self, operation: &str, body: &[u8]) -> Answer {
        if let Some(reader) = self.readers.as_ref().and_then(|readers| readers.for_operation(operation)) {
            return operations::run(&reader, operation, body);
        }
        if operations::changes_tables(operation) {
            self.change_tables(operation, body)
        } else {
            self.run_alone(operation, body)
        }
    }

    fn run_alone(&self, operation: &str, body: &[u8]) -> Answer {
        if operation == "BatchWriteItem"
            && let Some(answer) = bulk::import(&self.database, &self.filters, body)
        {
            return Answer::ok(answer);
        }
        match self.log {
            Some(_) => operations::run_on_disk(&self.database, operation, body),
            None => operations::run(&self.database, operation, body),
        }
    }

    fn change_tables(&self, operation: &str, body: &[u8]) -> Answer {
        let prepared = operations::deleted_table(operation, body).map_or(Ok(()), |table| self.give_back(&table));
        let answer = self.run_alone(operation, body);
        // Even if the operation was refused, because a table that was to be deleted then still
        // exists.
        if let Err(error) = prepared.and_then(|()| self.bring_into_order()) {
            tracing::error!(%error, operation, "the layout of the engine's tables could not be updated");
            return Answer::failed();
        }
        answer
    }

    /// Restores the table layout that the engine expects, so that it can drop the table.
    fn give_back(&self, table: &str) -> Result<(), Error> {
        without_keys::restore(&mut self.side.connection(), table)?;
        // A read makes the engine notice that the schema has changed. Dropping a table would not.
        self.database.table_count()?;
        Ok(())
    }

    fn bring_into_order(&self) -> Result<(), Error> {
        clustered::cluster_tables(&mut self.side.connection(), self.log.is_some())?;
        expiry::index(&mut self.side.connection())?;
        self.readers.as_ref().map_or(Ok(()), |readers| readers.renew())
    }
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(answer(self.clone(), request))
    }
}

async fn answer(engine: InProcess, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let operation = wire::operation(&request).to_owned();
    let body = wire::whole(request.into_body()).await?;
    let answer = engine.call(operation, body).await.ok_or_else(failed)?;
    answer.into_sdk_response()
}

/// Returns the error for a failed engine, where the outcome of the request is unknown.
pub(crate) fn failed() -> ConnectorError {
    ConnectorError::other("the engine has failed".into(), None)
}
