//! The engine as an HTTP client for the AWS SDK, without HTTP.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use dynoxide::Database;

use crate::aws_json::{self, EngineResponse};
use crate::batch_import;
use crate::concurrent_reads::ConcurrentReaders;
use crate::log_sync::SyncedLog;
use crate::operations;
use crate::sqlite_connection::SqliteConnection;
use crate::stream_filter::Filters;
use crate::table_clustering;
use crate::threads::EngineThreads;
use crate::ttl_index;
use crate::{EngineError, keyless_storage};

#[derive(Clone)]
pub(crate) struct InProcessEngine {
    pub(crate) database: Database,
    pub(crate) side: Arc<SqliteConnection>,
    /// The log that writes wait for. `None` for a database in memory.
    pub(crate) log: Option<Arc<SyncedLog>>,
    /// Whether writes are answered only when they are on disk.
    pub(crate) waits_for_disk: bool,
    /// Engines for concurrent reads. `None` for a database in memory, where `database` also
    /// executes reads.
    pub(crate) readers: Option<Arc<ConcurrentReaders>>,
    pub(crate) filters: Arc<Filters>,
    pub(crate) threads: Arc<EngineThreads>,
}

impl fmt::Debug for InProcessEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InProcess")
    }
}

impl InProcessEngine {
    /// Runs a call on the engine's threads. Returns `None` if the engine has failed and the outcome
    /// of the call is unknown.
    pub(crate) async fn call(&self, operation: String, body: Vec<u8>) -> Option<EngineResponse> {
        let engine = self.clone();
        if ConcurrentReaders::run(&operation) {
            return self.threads.read(move || engine.carry_out(&operation, &body)).await;
        }
        let log = self.log.clone().filter(|_| self.waits_for_disk && operations::writes(&operation));
        self.threads.write(log, move || engine.carry_out(&operation, &body)).await
    }

    /// Runs an operation. When it returns, its writes may not be on disk yet.
    fn carry_out(&self, operation: &str, body: &[u8]) -> EngineResponse {
        if let Some(reader) = self.readers.as_ref().and_then(|readers| readers.for_operation(operation)) {
            return operations::run(&reader, operation, body);
        }
        if operations::changes_tables(operation) {
            self.change_tables(operation, body)
        } else {
            self.run_alone(operation, body)
        }
    }

    fn run_alone(&self, operation: &str, body: &[u8]) -> EngineResponse {
        if operation == "BatchWriteItem"
            && let Some(answer) = batch_import::import(&self.database, &self.filters, body)
        {
            return EngineResponse::ok(answer);
        }
        match self.log {
            Some(_) => operations::run_on_disk(&self.database, operation, body),
            None => operations::run(&self.database, operation, body),
        }
    }

    fn change_tables(&self, operation: &str, body: &[u8]) -> EngineResponse {
        let prepared = operations::deleted_table(operation, body).map_or(Ok(()), |table| self.give_back(&table));
        let answer = self.run_alone(operation, body);
        // Restores the layout even if the operation was refused, because the table that it should
        // have deleted then still exists.
        if let Err(error) = prepared.and_then(|()| self.bring_into_order()) {
            tracing::error!(%error, operation, "the layout of the engine's tables could not be updated");
            return EngineResponse::failed();
        }
        answer
    }

    /// Restores the table layout that the engine expects, so that the engine can drop the table.
    fn give_back(&self, table: &str) -> Result<(), EngineError> {
        keyless_storage::restore(&mut self.side.connection(), table)?;
        // A read makes the engine notice that the schema has changed. Dropping a table would not.
        self.database.table_count()?;
        Ok(())
    }

    fn bring_into_order(&self) -> Result<(), EngineError> {
        table_clustering::cluster_tables(&mut self.side.connection(), self.log.is_some())?;
        ttl_index::index(&mut self.side.connection())?;
        self.readers.as_ref().map_or(Ok(()), |readers| readers.renew())
    }
}

impl HttpConnector for InProcessEngine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(answer(self.clone(), request))
    }
}

async fn answer(engine: InProcessEngine, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let operation = aws_json::operation(&request).to_owned();
    let body = aws_json::whole(request.into_body()).await?;
    let answer = engine.call(operation, body).await.ok_or_else(failed)?;
    answer.into_sdk_response()
}

/// Returns the error for a failed engine, where the outcome of the request is unknown.
pub(crate) fn failed() -> ConnectorError {
    ConnectorError::other("the engine has failed".into(), None)
}
