use std::io;

/// Failures of the engine itself. Errors of a client's request are in the answer to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory or the socket could not be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// SQLite refused a statement other than the engine's: the indexes on the stream's table,
    /// trimming.
    #[error("the engine's database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The engine refused to open or to copy itself.
    #[error("the engine: {0}")]
    Engine(#[from] dynoxide::DynoxideError),
    /// The answer to [`Engine::call`](crate::Engine::call) is an error: DynamoDB's JSON.
    #[error("refused: {0}")]
    Refused(String),
    /// The server on the loopback port stopped by itself.
    #[error("the engine's server: {0}")]
    Server(String),
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Io(io::Error::other(error))
    }
}
