use std::io;

/// Failures of the engine itself. Errors of a client's request are in its response instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The directory or the socket could not be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// SQLite rejected a statement that does not come from dynoxide, for example when this crate
    /// creates indexes on the stream's table or trims it.
    #[error("the engine's database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The engine could not be opened or copied.
    #[error("the engine: {0}")]
    Engine(#[from] dynoxide::DynoxideError),
    /// The response to [`Engine::call`](crate::Engine::call) is an error, given as DynamoDB's JSON.
    #[error("refused: {0}")]
    Refused(String),
    /// The server on the loopback port stopped because of an error.
    #[error("the engine's server: {0}")]
    Server(String),
}

impl From<tokio::task::JoinError> for EngineError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Io(io::Error::other(error))
    }
}
