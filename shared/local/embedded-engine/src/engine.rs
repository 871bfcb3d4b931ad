use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{SharedHttpClient, SharedHttpConnector, http_client_fn};
use dynoxide::Database;
use futures::future::join_all;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::aws_json::EngineResponse;
use crate::concurrent_reads::ConcurrentReaders;
use crate::connector::InProcessEngine;
use crate::log_sync::SyncedLog;
use crate::sqlite_connection::SqliteConnection;
use crate::stream_filter::{self, Filters, StreamFilter};
use crate::table_clustering;
use crate::threads::EngineThreads;
use crate::ttl_index;
use crate::{EngineError, Server, client_over};

/// File of the database in the engine's directory.
const FILE: &str = "dynamodb.sqlite";
/// SQLite's write-ahead log of the database.
const LOG: &str = "dynamodb.sqlite-wal";
/// File that is locked by a process while it opens the database.
const OPENING_LOCK: &str = "opening.lock";
/// File that is locked by the process that reads the streams.
const STREAM_LOCK: &str = "stream.lock";

/// Number of items that are read at once. An item may have 400 KB.
const ITEMS_PAGE_SIZE: usize = 200;

/// A lock that is held by the one process that reads the streams. Dropping it releases the lock.
pub(crate) struct StreamLock {
    _file: Option<File>,
}

/// An embedded DynamoDB. Clones share the same engine.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    side: Arc<SqliteConnection>,
    /// Directory of the database. `None` for an engine in memory, which has no log either.
    directory: Option<PathBuf>,
    log: Option<Arc<SyncedLog>>,
    readers: Option<Arc<ConcurrentReaders>>,
    filters: Arc<Filters>,
    threads: Arc<EngineThreads>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Engine")
    }
}

impl Engine {
    /// Checks whether a directory contains an engine's data.
    #[must_use]
    pub fn is_in(directory: &Path) -> bool {
        directory.join(FILE).is_file()
    }

    /// Opens the engine in a directory. If the directory is missing, it is created with permissions
    /// for its owner only.
    ///
    /// A write is acknowledged when it is on disk. Several processes may have the same directory
    /// open at the same time. While another process is opening the directory, this call waits.
    pub fn open(directory: &Path) -> Result<Self, EngineError> {
        Self::open_as(directory, |log| {
            // The file handle stays valid, because SQLite neither replaces nor deletes the log
            // while the database has an open connection.
            let file = open_private(log)?;
            Ok(SyncedLog::new(move || file.sync_data()))
        })
    }

    /// Opens the engine in a directory with a custom `sync`, for tests of power cuts. `sync` gets
    /// the log's path and returns when the log is on disk.
    pub fn open_syncing(
        directory: &Path,
        sync: impl Fn(&Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        Self::open_as(directory, |log| {
            let log = log.to_owned();
            Ok(SyncedLog::new(move || sync(&log)))
        })
    }

    fn open_as(directory: &Path, log: impl FnOnce(&Path) -> io::Result<SyncedLog>) -> Result<Self, EngineError> {
        let made = make_private(directory)?;
        // An absolute path, so that SQLite does not parse it as a URI.
        let directory = directory.canonicalize()?;
        // Only one process at a time opens the database; other processes wait for the lock. Without
        // it, SQLite would fail in the waiting processes while the first one creates the file.
        let opening = open_private(&directory.join(OPENING_LOCK))?;
        if let Err(TryLockError::WouldBlock) = opening.try_lock() {
            tracing::info!("another process is opening the data; waiting for it");
        }
        opening.lock()?;
        let file = directory.join(FILE);
        // Creates the database file with private permissions, which SQLite also gives to its
        // journals.
        open_private(&file)?;
        // SQLite syncs its files, and their directory when it creates journals. It does not ensure
        // that the directory itself, which may be new, is on disk.
        for directory in directory.ancestors().take(made + 1) {
            File::open(directory)?.sync_all()?;
        }
        let Some(path) = file.to_str() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the directory's path is not UTF-8").into());
        };
        let side = SqliteConnection::open(path)?;
        table_clustering::set_page_size(&side.connection())?;
        let engine = Self::at(path, side, true)?;
        let readers = ConcurrentReaders::open(path)?;
        let log = log(&directory.join(LOG))?;
        // Makes the changes durable that were made while opening.
        log.wait()?;
        Ok(Self { directory: Some(directory), log: Some(Arc::new(log)), readers: Some(Arc::new(readers)), ..engine })
    }

    /// Creates an engine with a new database in memory. The database is gone when the engine's last
    /// clone is dropped.
    pub fn memory() -> Result<Self, EngineError> {
        let location = place_in_memory();
        let side = SqliteConnection::open(&location)?;
        Self::at(&location, side, false)
    }

    /// Returns an engine in memory with a copy of the current tables and items.
    pub fn snapshot(&self) -> Result<Self, EngineError> {
        let location = place_in_memory();
        // This connection is opened first, because a database in memory only exists while it has
        // connections.
        let side = SqliteConnection::open(&location)?;
        self.database.vacuum_into(&location)?;
        Self::at(&location, side, false)
    }

    fn at(location: &str, side: SqliteConnection, on_disk: bool) -> Result<Self, EngineError> {
        let database = Database::new(location)?;
        side.index_streams()?;
        ttl_index::index(&mut side.connection())?;
        let threads = Arc::new(EngineThreads::start(on_disk)?);
        let (side, filters) = (Arc::new(side), Arc::default());
        Ok(Self { database, side, directory: None, log: None, readers: None, filters, threads })
    }

    /// Returns an AWS SDK client that calls the engine without a socket, does not sign requests and
    /// never retries.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// Returns a client like [`client`](Self::client) whose writes are answered before they are on
    /// disk. It is meant for work that is repeated after a power cut. Writes of all clients and
    /// processes reach the disk in the order in which they were made, so if a write survives a
    /// power cut, all earlier writes have survived as well. The work must therefore begin with
    /// something on disk that starts it again, such as records of the stream or a mark, and must
    /// end with the removal of that.
    #[must_use]
    pub fn client_ahead_of_disk(&self) -> Client {
        let engine = InProcessEngine { waits_for_disk: false, ..self.in_process() };
        let connector = SharedHttpConnector::new(engine);
        client_over(http_client_fn(move |_, _| connector.clone()))
    }

    /// Returns the HTTP client of [`client`](Self::client), for clients with another configuration.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = self.connector();
        http_client_fn(move |_, _| connector.clone())
    }

    pub(crate) fn connector(&self) -> SharedHttpConnector {
        SharedHttpConnector::new(self.in_process())
    }

    /// Serves the engine on a loopback address, with a new access key. Port 0 picks a free port.
    pub async fn serve(&self, address: impl Into<SocketAddr>) -> Result<Server, EngineError> {
        Server::start(self.in_process(), address.into()).await
    }

    pub(crate) fn in_process(&self) -> InProcessEngine {
        InProcessEngine {
            database: self.database.clone(),
            side: Arc::clone(&self.side),
            log: self.log.clone(),
            waits_for_disk: true,
            readers: self.readers.clone(),
            filters: Arc::clone(&self.filters),
            threads: Arc::clone(&self.threads),
        }
    }

    /// Runs one operation by its name, with DynamoDB's JSON. Operations on streams need this
    /// method, because the SDK has them in a different client.
    pub async fn call(&self, operation: &'static str, request: Value) -> Result<Value, EngineError> {
        let answer = self.in_process().call(operation.to_owned(), request.to_string().into_bytes()).await;
        let EngineResponse { status, body } = answer.ok_or_else(|| io::Error::other("the engine has failed"))?;
        if status != 200 {
            return Err(EngineError::Refused(body));
        }
        serde_json::from_str(&body).map_err(|error| io::Error::from(error).into())
    }

    /// Acquires the lock of the stream reader. Returns `None` if another process holds it. An
    /// engine in memory belongs to a single process and needs no lock.
    pub(crate) fn lock_streams(&self) -> Result<Option<StreamLock>, EngineError> {
        let Some(directory) = &self.directory else { return Ok(Some(StreamLock { _file: None })) };
        let file = open_private(&directory.join(STREAM_LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(StreamLock { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Deletes the records of a table's stream up to and including the given sequence number, and
    /// returns the number of deleted records.
    pub async fn trim_stream_through(&self, table: &str, sequence_number: &str) -> Result<usize, EngineError> {
        let (side, log) = (Arc::clone(&self.side), self.log.clone());
        let (table, number) = (table.to_owned(), sequence_number.to_owned());
        tokio::task::spawn_blocking(move || {
            let trimmed = side.trim_stream_through(&table, &number)?;
            log.map_or(Ok(()), |log| log.wait())?;
            Ok(trimmed)
        })
        .await?
    }

    /// Sets a [`StreamFilter`] that from now on keeps records out of a table's stream if the reader
    /// does not need them.
    pub async fn filter_stream(&self, table: &str, filter: StreamFilter) -> Result<(), EngineError> {
        let (side, filters, table) = (Arc::clone(&self.side), Arc::clone(&self.filters), table.to_owned());
        tokio::task::spawn_blocking(move || {
            stream_filter::set(&side.connection(), &table, filter)?;
            filters.remember(&table, filter);
            Ok(())
        })
        .await?
    }

    /// Disables a table's stream, so that changes are no longer recorded. Tests that do not read
    /// the stream use this to save time, because each write records both images of an item.
    pub async fn end_stream(&self, table: &str) -> Result<(), EngineError> {
        let end = json!({ "TableName": table, "StreamSpecification": { "StreamEnabled": false } });
        self.call("UpdateTable", end).await.map(|_| ())
    }

    /// Returns all items of a table, as DynamoDB's JSON and in the order of their keys. Only for
    /// tests.
    pub async fn items(&self, table: &str) -> Result<Vec<Value>, EngineError> {
        let (mut items, mut start) = (Vec::new(), Value::Null);
        loop {
            let (page, next) = self.items_page(table, start).await?;
            items.extend(page);
            match next {
                Some(next) => start = next,
                None => return Ok(items),
            }
        }
    }

    /// Returns some items of a table, as DynamoDB's JSON and in the order of their keys, and the
    /// position at which to continue, unless these are the last items. `start` is such a position,
    /// or null for the first items. Only for copying a table as a whole: nothing else scans a
    /// table.
    pub async fn items_page(&self, table: &str, start: Value) -> Result<(Vec<Value>, Option<Value>), EngineError> {
        // Without a limit, the engine would read all items to return the first MB of them.
        let mut request = json!({ "TableName": table, "Limit": ITEMS_PAGE_SIZE });
        if !start.is_null() {
            request["ExclusiveStartKey"] = start;
        }
        let mut page = self.call("Scan", request).await?;
        let next = Some(page["LastEvaluatedKey"].take()).filter(|next| !next.is_null());
        let Value::Array(items) = page["Items"].take() else { return Ok((Vec::new(), next)) };
        Ok((items, next))
    }

    /// Deletes the stream records that are older than `older_than`, and returns their number.
    /// DynamoDB keeps records for a day. The engine keeps them until they are deleted with this
    /// method.
    pub async fn trim_stream(&self, older_than: Duration) -> Result<usize, EngineError> {
        let side = Arc::clone(&self.side);
        tokio::task::spawn_blocking(move || side.trim_stream(older_than)).await?
    }

    /// Deletes the items whose time to live has passed, and returns their number. DynamoDB does
    /// this in the background, within days, but the engine only does it in this method. Unlike
    /// DynamoDB, it also deletes items that expired more than five years ago, and the stream record
    /// does not show that expiry was the reason for the deletion.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn sweep_ttl(&self) -> Result<usize, EngineError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // A process of an earlier version may have created a table without the index in the
        // meantime.
        self.with_side(ttl_index::index).await?;
        let mut deleted = 0;
        for table in self.with_side(|connection| ttl_index::expiring(connection)).await? {
            let table = Arc::new(table);
            loop {
                let found = self.with_side({
                    let table = Arc::clone(&table);
                    move |connection| table.expired(connection, now)
                });
                let (keys, is_more) = found.await?;
                // The deletions are concurrent, so that they share the waits for the disk.
                let deletions = keys.iter().map(|key| self.call("DeleteItem", table.deletion(key, now)));
                let before = deleted;
                for outcome in join_all(deletions).await {
                    match outcome {
                        Ok(_) => deleted += 1,
                        // The item's expiry was postponed, or the item was already deleted.
                        Err(EngineError::Refused(answer)) if answer.contains("ConditionalCheckFailed") => {}
                        Err(error) => return Err(error),
                    }
                }
                if !is_more || deleted == before {
                    break;
                }
            }
        }
        Ok(deleted)
    }

    /// Runs a closure with the second connection, on a thread for blocking work.
    async fn with_side<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Connection) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let side = Arc::clone(&self.side);
        tokio::task::spawn_blocking(move || run(&mut side.connection())).await?
    }

    #[cfg(test)]
    pub(crate) fn side(&self) -> &SqliteConnection {
        &self.side
    }
}

/// Creates a directory, and its missing parents, with permissions for the owner only. Returns the
/// number of directories that were missing.
fn make_private(directory: &Path) -> io::Result<usize> {
    let missing = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    Ok(missing)
}

/// Opens a file with permissions for the owner only, and creates it if it is missing.
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Returns a new name for a database in memory.
///
/// SQLite's `memdb` shares a database by name between all connections of the process, with the same
/// locks as a file. (A shared cache would also do this, but returns an error immediately instead of
/// waiting while another connection holds a lock.)
fn place_in_memory() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("file:/engine-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed))
}
