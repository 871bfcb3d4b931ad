//! `mlflow-serverless engine`: serves the embedded engine over HTTP.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Args;
use embedded_engine::AccessKey;
use table::Table;

use crate::feed::{RemoteIndexer, StreamFeed, TICK_INTERVAL};
use crate::table_options::{StorageOptions, access_name, create, create_access, table_name};
use crate::{Failure, housekeeping, say_address, shutdown_signal};

/// Options of `engine`.
///
/// Standard output has the URL, followed by the access key that requests must be signed with, in
/// the form of environment variables.
#[derive(Args)]
pub(crate) struct Options {
    /// Port on 127.0.0.1; 0 picks a free port.
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Name of the table.
    #[arg(long, default_value = "mlflow", value_parser = table_name)]
    table: String,
    /// Send the table's changes to the function fts-indexer at this URL, for example one run by
    /// `cargo lambda watch`.
    #[arg(long, value_name = "URL")]
    indexer_url: Option<String>,
    #[command(flatten)]
    storage: StorageOptions,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let indexer = options.indexer_url.as_deref().map(RemoteIndexer::new).transpose()?;
    let engine = options.storage.open()?;
    let server = engine.serve((Ipv4Addr::LOCALHOST, options.port)).await?;
    let table = Table::new(engine.client(), &options.table);
    create(&table).await?;
    let access = table.beside(access_name(&options.table));
    create_access(&access).await?;
    entities::migration::migrate(&table, &access).await?;
    let housekeeping = tokio::spawn(housekeeping::run(engine.clone(), None));
    let feed = indexer.map(|indexer| StreamFeed::start(engine, options.table, indexer, Duration::ZERO, TICK_INTERVAL));
    say_address(&server.url());
    say_access_key(server.access_key());
    shutdown_signal::wait_for_shutdown().await;
    housekeeping.abort();
    if let Some(feed) = feed {
        feed.stop().await;
    }
    server.shutdown().await?;
    Ok(())
}

/// Prints the access key that requests must be signed with, for the user or for the program that
/// started this one. The key is valid until this process ends.
#[expect(clippy::print_stdout, reason = "the starter of the engine reads the access key here")]
fn say_access_key(key: &AccessKey) {
    println!("AWS_ACCESS_KEY_ID={}", key.id());
    println!("AWS_SECRET_ACCESS_KEY={}", key.secret());
}
