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

use crate::clustered;
use crate::connector::InProcess;
use crate::expiry;
use crate::log::Log;
use crate::readers::Readers;
use crate::side::SideConnection;
use crate::stream_filter::{self, Filters, StreamFilter};
use crate::threads::Threads;
use crate::wire::Answer;
use crate::{Error, Server, client_over};

/// The database's file in the engine's directory.
const FILE: &str = "dynamodb.sqlite";
/// SQLite's log of it.
const LOG: &str = "dynamodb.sqlite-wal";
/// Locked by the process that opens the file.
const OPENING_LOCK: &str = "opening.lock";
/// Locked by the process that reads the stream.
const STREAM_LOCK: &str = "stream.lock";

/// Held by the one process that reads the streams, as long as this lives.
pub(crate) struct StreamLock {
    _file: Option<File>,
}

/// An embedded DynamoDB. A clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    side: Arc<SideConnection>,
    /// Nothing for an engine in memory, as the log.
    directory: Option<PathBuf>,
    log: Option<Arc<Log>>,
    readers: Option<Arc<Readers>>,
    filters: Arc<Filters>,
    threads: Arc<Threads>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Engine")
    }
}

impl Engine {
    /// Opens the engine in a directory, which is made if missing, for its owner only.
    ///
    /// A write is answered when it is on the disk. Several processes may have the same directory
    /// open; they open it one after the other.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Self::open_as(directory, |log| {
            // As long as a connection has the database open, SQLite keeps the log's file.
            let file = open_private(log)?;
            Ok(Log::new(move || file.sync_data()))
        })
    }

    /// The same. `sync` gets the log's path, and returns once the log is on the disk. It is for
    /// tests of power cuts.
    pub fn open_syncing(
        directory: &Path,
        sync: impl Fn(&Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::open_as(directory, |log| {
            let log = log.to_owned();
            Ok(Log::new(move || sync(&log)))
        })
    }

    fn open_as(directory: &Path, log: impl FnOnce(&Path) -> io::Result<Log>) -> Result<Self, Error> {
        let made = make_private(directory)?;
        // Absolute, so that SQLite takes no part of it for a URI.
        let directory = directory.canonicalize()?;
        // One process opens it at a time, and others wait. SQLite would fail them at once while one
        // makes the file.
        let opening = open_private(&directory.join(OPENING_LOCK))?;
        if let Err(TryLockError::WouldBlock) = opening.try_lock() {
            tracing::info!("another process opens the data; waiting for it");
        }
        opening.lock()?;
        let file = directory.join(FILE);
        // SQLite gives its journals the permissions of the database.
        open_private(&file)?;
        // SQLite syncs its files, and the directory for its journals; that the directory itself is there is left to its maker.
        for directory in directory.ancestors().take(made + 1) {
            File::open(directory)?.sync_all()?;
        }
        let Some(path) = file.to_str() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the directory's path is not UTF-8").into());
        };
        let side = SideConnection::open(path)?;
        clustered::set_page_size(&side.connection())?;
        let engine = Self::at(path, side, true)?;
        let readers = Readers::open(path)?;
        let log = log(&directory.join(LOG))?;
        // The changes of the database so far.
        log.wait()?;
        Ok(Self { directory: Some(directory), log: Some(Arc::new(log)), readers: Some(Arc::new(readers)), ..engine })
    }

    /// An engine of its own in memory, gone when its last clone is.
    pub fn memory() -> Result<Self, Error> {
        let location = place_in_memory();
        let side = SideConnection::open(&location)?;
        Self::at(&location, side, false)
    }

    /// A copy of this engine as it is now, in memory.
    pub fn snapshot(&self) -> Result<Self, Error> {
        let location = place_in_memory();
        // Opened first: a place in memory lasts as long as it has connections.
        let side = SideConnection::open(&location)?;
        self.database.vacuum_into(&location)?;
        Self::at(&location, side, false)
    }

    fn at(location: &str, side: SideConnection, on_disk: bool) -> Result<Self, Error> {
        let database = Database::new(location)?;
        side.index_streams()?;
        expiry::index(&mut side.connection())?;
        let threads = Arc::new(Threads::start(on_disk)?);
        let (side, filters) = (Arc::new(side), Arc::default());
        Ok(Self { database, side, directory: None, log: None, readers: None, filters, threads })
    }

    /// A client of the AWS SDK that calls the engine without a socket, signs with no one's credentials and never retries.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// The HTTP client of [`client`](Self::client), for a client that is configured otherwise.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = self.connector();
        http_client_fn(move |_, _| connector.clone())
    }

    pub(crate) fn connector(&self) -> SharedHttpConnector {
        SharedHttpConnector::new(self.in_process())
    }

    /// Serves the engine on a loopback address, with an access key of its own; port 0 takes a free one.
    pub async fn serve(&self, address: impl Into<SocketAddr>) -> Result<Server, Error> {
        Server::start(self.in_process(), address.into()).await
    }

    pub(crate) fn in_process(&self) -> InProcess {
        InProcess {
            database: self.database.clone(),
            side: Arc::clone(&self.side),
            log: self.log.clone(),
            readers: self.readers.clone(),
            filters: Arc::clone(&self.filters),
            threads: Arc::clone(&self.threads),
        }
    }

    /// Runs one operation on DynamoDB's own JSON, by its name: for the operations on streams, which belong to another client
    /// of the SDK.
    pub async fn call(&self, operation: &'static str, request: Value) -> Result<Value, Error> {
        let answer = self.in_process().call(operation.to_owned(), request.to_string().into_bytes()).await;
        let Answer { status, body } = answer.ok_or_else(|| io::Error::other("the engine has failed"))?;
        if status != 200 {
            return Err(Error::Refused(body));
        }
        serde_json::from_str(&body).map_err(|error| io::Error::from(error).into())
    }

    /// The lock that the reader of streams holds; nothing, while another process holds it. An engine in memory has one process.
    pub(crate) fn lock_streams(&self) -> Result<Option<StreamLock>, Error> {
        let Some(directory) = &self.directory else { return Ok(Some(StreamLock { _file: None })) };
        let file = open_private(&directory.join(STREAM_LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(StreamLock { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Deletes the records of a table's stream up to this one, and says how many there were.
    pub async fn trim_stream_through(&self, table: &str, sequence_number: &str) -> Result<usize, Error> {
        let (side, log) = (Arc::clone(&self.side), self.log.clone());
        let (table, number) = (table.to_owned(), sequence_number.to_owned());
        tokio::task::spawn_blocking(move || {
            let trimmed = side.trim_stream_through(&table, &number)?;
            log.map_or(Ok(()), |log| log.wait())?;
            Ok(trimmed)
        })
        .await?
    }

    /// Keeps records that the reader does not want out of a table's stream, from now on, as
    /// [`StreamFilter`] says.
    pub async fn filter_stream(&self, table: &str, filter: StreamFilter) -> Result<(), Error> {
        let (side, filters, table) = (Arc::clone(&self.side), Arc::clone(&self.filters), table.to_owned());
        tokio::task::spawn_blocking(move || {
            stream_filter::set(&side.connection(), &table, filter)?;
            filters.remember(&table, filter);
            Ok(())
        })
        .await?
    }

    /// Ends a table's stream: from now on no record is made of its changes. For tests that do not read it, as each write makes one of both
    /// images.
    pub async fn end_stream(&self, table: &str) -> Result<(), Error> {
        let end = json!({ "TableName": table, "StreamSpecification": { "StreamEnabled": false } });
        self.call("UpdateTable", end).await.map(|_| ())
    }

    /// Every item of a table, in DynamoDB's JSON and in no order. For tests: nothing else looks at a table so.
    pub async fn items(&self, table: &str) -> Result<Vec<Value>, Error> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut request = json!({ "TableName": table });
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let mut page = self.call("Scan", request).await?;
            if let Value::Array(found) = page["Items"].take() {
                items.extend(found);
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(items);
            }
        }
    }

    /// Deletes the stream records older than that and says how many there were. DynamoDB keeps them for a day, the engine
    /// for ever.
    pub async fn trim_stream(&self, older_than: Duration) -> Result<usize, Error> {
        let side = Arc::clone(&self.side);
        tokio::task::spawn_blocking(move || side.trim_stream(older_than)).await?
    }

    /// Deletes the items whose time to live has passed, and returns their number. DynamoDB does so
    /// by itself, some time within days; the engine only when told. Unlike DynamoDB it also deletes
    /// items that expired more than five years ago, and its stream does not say who deleted them.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn sweep_ttl(&self) -> Result<usize, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // A process of an earlier version may have made a table meanwhile, without the index.
        self.with_side(expiry::index).await?;
        let mut deleted = 0;
        for table in self.with_side(|connection| expiry::expiring(connection)).await? {
            let table = Arc::new(table);
            loop {
                let found = self.with_side({
                    let table = Arc::clone(&table);
                    move |connection| table.expired(connection, now)
                });
                let (keys, is_more) = found.await?;
                // Together, so that they share the waits for the disk.
                let deletions = keys.iter().map(|key| self.call("DeleteItem", table.deletion(key, now)));
                let before = deleted;
                for outcome in join_all(deletions).await {
                    match outcome {
                        Ok(_) => deleted += 1,
                        // It has got more time, or somebody else has deleted it.
                        Err(Error::Refused(answer)) if answer.contains("ConditionalCheckFailed") => {}
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

    /// Does something with the second connection, on a thread that may block.
    async fn with_side<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let side = Arc::clone(&self.side);
        tokio::task::spawn_blocking(move || run(&mut side.connection())).await?
    }

    #[cfg(test)]
    pub(crate) fn side(&self) -> &SideConnection {
        &self.side
    }
}

/// Makes a directory for its owner only, and those above it that are missing; says how many there were to make.
fn make_private(directory: &Path) -> io::Result<usize> {
    let missing = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    Ok(missing)
}

/// Opens a file for its owner only, and makes it if missing.
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// A new name for a database in memory.
///
/// SQLite's `memdb` keeps a database by name for all connections of the process, with the same locks as a file. (A shared
/// cache would do so too, but fails a connection at once where the other holds a lock instead of letting it wait.)
fn place_in_memory() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("file:/engine-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed))
}
