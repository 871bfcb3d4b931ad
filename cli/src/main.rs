//! `mlflow-serverless`: all functions of the project in a single process, and the commands of its
//! operators.

mod admin;
mod artifact_options;
mod config;
mod connections;
mod credentials;
mod doctor;
mod dynamodb_endpoint;
mod engine;
mod feed;
mod gc;
mod housekeeping;
mod metrics;
mod migrate;
mod output;
mod proxy;
mod reindex;
mod serve;
mod shutdown_signal;
mod sign_on_options;
mod signing;
mod table_options;
mod token;
mod transfer;
mod webhook_options;
mod webhooks;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

/// Replaces libc's allocator. For a page of runs, the engine and the SDK make some 10,000 small
/// allocations, which take a third of the request's time with libc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The failure of a command. Its text is the only thing that the user sees.
type Failure = Box<dyn Error + Send + Sync>;

/// An MLflow tracking server over DynamoDB.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MLflow's API from a single process, over the embedded engine or any server that
    /// implements DynamoDB's protocol.
    Serve(serve::Options),
    /// Open the UI of a stack whose API requires signed requests, through a local server that signs
    /// them.
    Proxy(proxy::Options),
    /// Create the first administrator, grant users access to everything, and disable users. Servers
    /// can keep running.
    Admin(admin::Options),
    /// Create, list and revoke tokens of users and services. Servers can keep running.
    Token(token::Options),
    /// List deliveries to webhooks that have failed for good, and deliver them again. Servers can keep
    /// running.
    Webhooks(webhooks::Options),
    /// Show the usage of workspaces, and set their quotas. Servers can keep running.
    Workspace(workspace::Options),
    /// Show and change the settings of a table. The cost of a change is shown before it is applied.
    /// Servers can keep running.
    Config(config::Options),
    /// Diagnose a deployed stack: report problems and how to fix them. Changes nothing.
    Doctor(doctor::Options),
    /// Serve only the embedded engine, with its tables created, for functions that run next to it.
    Engine(engine::Options),
    /// Rebuild the search index. Servers can keep running.
    Reindex(reindex::Options),
    /// Permanently remove deleted runs, logged models and experiments with their artifacts, and
    /// traces past their retention. Servers can keep running.
    Gc(gc::Options),
    /// Migrate the table of an earlier version to the layout of this version. Servers can keep
    /// running.
    Migrate(migrate::Options),
    /// Import the database of an MLflow tracking server, with all ids and times. Servers can keep
    /// running.
    Import(transfer::import::Options),
    /// Export the table into a SQLite database that an MLflow tracking server can use.
    Export(transfer::export::Options),
    /// Copy a whole table into an empty one: from a data directory, or from an export of a table in
    /// AWS. No server may use either table in the meantime.
    Copy(transfer::copy::Options),
}

/// Maximum number of threads for blocking work such as disk access. Without a limit, tokio starts
/// more and more of them under load (130 with eight concurrent uploads), and the allocator retains
/// memory for each. More than 16 are needed, because each of up to 16 concurrent GraphQL queries
/// occupies one.
const MAX_BLOCKING_THREADS: usize = 32;

/// Log filter that applies if the variable is not set. It suppresses a misleading message: the SDK
/// reports each failure of the embedded engine as a failed connection, although no connection
/// exists.
const DEFAULT_LOG_FILTER: &str = "warn,audit=info,aws_smithy_runtime::client::http::connection_poisoning=off";

/// Environment variable with the log filter, such as `info`.
const LOG_VARIABLE: &str = "RUST_LOG";

fn main() -> ExitCode {
    let filter = match log_filter(std::env::var(LOG_VARIABLE).ok()) {
        Ok(filter) => filter,
        Err(failure) => {
            say_failed(&*failure);
            return ExitCode::FAILURE;
        }
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let runtime = Builder::new_multi_thread().enable_all().max_blocking_threads(MAX_BLOCKING_THREADS).build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(run(arguments.command)));
    match outcome {
        Ok(()) if output::has_failed() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say_failed(&*failure);
            ExitCode::FAILURE
        }
    }
}

/// Returns the log filter: the value of the variable, or warnings and audit events by default.
fn log_filter(variable: Option<String>) -> Result<EnvFilter, Failure> {
    let filter = variable.filter(|filter| !filter.is_empty()).unwrap_or_else(|| DEFAULT_LOG_FILTER.to_owned());
    EnvFilter::try_new(&filter)
        .map_err(|error| format!("{LOG_VARIABLE}={filter} is not a valid log filter: {error}").into())
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        // Boxed, because it is by far the largest of these futures.
        Command::Serve(options) => Box::pin(serve::run(options)).await,
        Command::Proxy(options) => proxy::run(options).await,
        Command::Admin(options) => Box::pin(admin::run(options)).await,
        Command::Token(options) => token::run(options).await,
        Command::Webhooks(options) => webhooks::run(options).await,
        Command::Workspace(options) => workspace::run(options).await,
        Command::Config(options) => config::run(options).await,
        Command::Doctor(options) => doctor::run(options).await,
        Command::Engine(options) => engine::run(options).await,
        Command::Reindex(options) => reindex::run(options).await,
        Command::Gc(options) => gc::run(options).await,
        Command::Migrate(options) => migrate::run(options).await,
        Command::Import(options) => Box::pin(transfer::import::run(options)).await,
        Command::Export(options) => Box::pin(transfer::export::run(options)).await,
        Command::Copy(options) => Box::pin(transfer::copy::run(options)).await,
    }
}

#[expect(clippy::print_stderr, reason = "commands report to the user's terminal")]
fn say_failed(failure: &dyn Error) {
    eprintln!("mlflow-serverless: {failure}");
}

/// Prints the URL of the server for the user, or for the program that started this one.
#[expect(clippy::print_stdout, reason = "the starter of a server on port 0 reads the address here")]
fn say_address(url: &str) {
    println!("{url}");
}
