//! `mlflow-serverless`: every function of the project in one process.

mod admin;
mod artifact_options;
mod config;
mod connect;
mod connections;
mod credentials;
mod doctor;
mod endpoint;
mod engine;
mod feed;
mod gc;
mod housekeeping;
mod metrics;
mod migrate;
mod proxy;
mod reindex;
mod say;
mod serve;
mod signals;
mod signing;
mod token;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

/// A page of runs is some ten thousand small allocations, in the engine and in the SDK: a third of its time with the allocator of libc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The failure of a command; its text is all the user sees.
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
    /// Serve MLflow's API from one process, over an embedded engine or any that speaks DynamoDB's protocol.
    Serve(serve::Options),
    /// Open the UI of a stack whose API takes signed requests: a server on this machine signs them.
    Proxy(proxy::Options),
    /// Make the first administrator, grant users access to everything, and lock users out. Servers
    /// may go on meanwhile.
    Admin(admin::Options),
    /// Make, list and revoke tokens of users and of services. Servers may go on meanwhile.
    Token(token::Options),
    /// Show the usage of workspaces, and set their quotas. Servers may go on meanwhile.
    Workspace(workspace::Options),
    /// Show the settings of a table, and change them. A change says first what it costs. Servers
    /// may go on meanwhile.
    Config(config::Options),
    /// Look at a deployed stack: say what is wrong, and what to do. It changes nothing.
    Doctor(doctor::Options),
    /// Serve the embedded engine alone, with the table made, for functions that run next to it.
    Engine(engine::Options),
    /// Build the index of searches again. Servers may go on meanwhile.
    Reindex(reindex::Options),
    /// Remove deleted runs, logged models and experiments for good, with their artifacts, and
    /// traces that are kept no longer. Servers may go on meanwhile.
    Gc(gc::Options),
    /// Bring the table of an earlier version to this one's layout. Servers may go on meanwhile.
    Migrate(migrate::Options),
}

/// Threads that wait for the disk, at most. Under load tokio starts ever more of them, and for each the allocator keeps memory: with eight uploads
/// at once there were 130. More than 16 are needed: each GraphQL query keeps one, and there are 16 at a time.
const BLOCKING_THREADS: usize = 32;

/// The filter of the log, such as `info`.
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
    let runtime = Builder::new_multi_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(run(arguments.command)));
    match outcome {
        Ok(()) if say::has_failed() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say_failed(&*failure);
            ExitCode::FAILURE
        }
    }
}

/// The filter of the log: that of the variable, or warnings and audited events.
fn log_filter(variable: Option<String>) -> Result<EnvFilter, Failure> {
    let filter = variable.filter(|filter| !filter.is_empty()).unwrap_or_else(|| "warn,audit=info".to_owned());
    EnvFilter::try_new(&filter).map_err(|error| format!("{LOG_VARIABLE}={filter} makes no sense: {error}").into())
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(options) => serve::run(options).await,
        Command::Proxy(options) => proxy::run(options).await,
        Command::Admin(options) => admin::run(options).await,
        Command::Token(options) => token::run(options).await,
        Command::Workspace(options) => workspace::run(options).await,
        Command::Config(options) => config::run(options).await,
        Command::Doctor(options) => doctor::run(options).await,
        Command::Engine(options) => engine::run(options).await,
        Command::Reindex(options) => reindex::run(options).await,
        Command::Gc(options) => gc::run(options).await,
        Command::Migrate(options) => migrate::run(options).await,
    }
}

#[expect(clippy::print_stderr, reason = "the user started it by hand and looks at the terminal")]
fn say_failed(failure: &dyn Error) {
    eprintln!("mlflow-serverless: {failure}");
}

/// Tells the user, or the program that started this one, where it answers.
#[expect(clippy::print_stdout, reason = "whoever starts a server on port 0 reads its address here")]
fn say_address(url: &str) {
    println!("{url}");
}
