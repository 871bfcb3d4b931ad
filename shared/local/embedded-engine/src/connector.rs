//! The engine as an HTTP client of the AWS SDK, without HTTP.

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
    /// The log that a write waits for; `None` in memory.
    pub(crate) log: Option<Arc<Log>>,
    /// The readers; in memory, the database itself reads.
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
    /// Runs a call on the engine's threads. `None` if the engine has failed, and the outcome of the
    /// call is unknown.
    pub(crate) async fn call(&self, operation: String, body: Vec<u8>) -> Option<Answer> {
        let engine = self.clone();
        if Readers::run(&operation) {
            return self.threads.read(move || engine.carry_out(&operation, &body)).await;
        }
        let log = self.log.clone().filter(|_| operations::writes(&operation));
        self.threads.write(log, move || engine.carry_out(&operation, &body)).await
    }

    /// Runs an operation; its writes may not be on the disk yet.
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
        // Also if it was refused: a table that was to be deleted is there all the same.
        if let Err(error) = prepared.and_then(|()| self.bring_into_order()) {
            tracing::error!(%error, operation, "the engine's tables could not be brought into order");
            return Answer::failed();
        }
        answer
    }

    /// Restores the form of a table that the engine expects, so that it can drop it.
    fn give_back(&self, table: &str) -> Result<(), Error> {
        without_keys::restore(&mut self.side.connection(), table)?;
        // It reads something, and so notices that the schema has changed. Told to drop a table, it would not look.
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

/// The engine has failed, and the outcome of the request is unknown.
pub(crate) fn failed() -> ConnectorError {
    ConnectorError::other("the engine has failed".into(), None)
}
