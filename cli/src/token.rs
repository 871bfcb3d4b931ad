//! `mlflow-serverless token`: manages the tokens of users and services. For operators with access
//! to the tables.

use auth::store::Store;
use clap::{Args, Subcommand};
use mlflow_api::{Error, ErrorCode};

use crate::Failure;
use crate::admin::{store, user_name, wait_for_lease};
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `token`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a token, and print it to standard output. It is not shown again.
    Create {
        /// Name of the user.
        #[arg(value_name = "USER")]
        user: String,
        /// Name of the token.
        #[arg(value_name = "NAME")]
        called: String,
        /// Scope of the token: everything that the user may do, read, or ingest (sending traces).
        #[arg(long, default_value = "everything")]
        only: String,
        /// Limit the token to the experiment with this ID.
        #[arg(long, value_name = "ID")]
        experiment: Option<String>,
        /// Expire the token after this many days [default: it does not expire].
        #[arg(long)]
        days: Option<String>,
        /// Create the user if it does not exist, as a service, which has no password.
        #[arg(long)]
        service: bool,
        #[command(flatten)]
        place: TableOptions,
    },
    /// List the tokens of a user.
    List {
        /// Name of the user.
        #[arg(value_name = "USER")]
        user: String,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Revoke a token.
    Revoke {
        /// Name of the user.
        #[arg(value_name = "USER")]
        user: String,
        /// ID of the token, as listed.
        #[arg(value_name = "ID")]
        id: u32,
        #[command(flatten)]
        place: TableOptions,
    },
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::Create { user, called, only, experiment, days, service, place } => {
            let user = user_name(&user)?;
            let new = auth::new_token(&called, &only, &experiment.unwrap_or_default(), &days.unwrap_or_default())
                .map_err(failure)?;
            let store = store(&place).await?;
            if service {
                match store.service_create(&user).await {
                    Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {}
                    made => drop(made.map_err(failure)?),
                }
            }
            let (secret, _) = store.token_create(&user, new).await.map_err(failure)?;
            wait_for_lease().await;
            print_line(&secret.token());
        }
        Command::List { user, place } => list(&store(&place).await?, &user).await?,
        Command::Revoke { user, id, place } => {
            store(&place).await?.token_revoke(&user_name(&user)?, id).await.map_err(failure)?;
            wait_for_lease().await;
            print_line("Revoked the token.");
        }
    }
    Ok(())
}

async fn list(store: &Store, user: &str) -> Result<(), Failure> {
    for token in store.tokens(&user_name(user)?).await.map_err(failure)? {
        let end = token.expires.map_or_else(|| "never".to_owned(), auth::format_date);
        let made = auth::format_date(token.creation_time / 1_000);
        print_line(&format!(
            "{}\t{}\t{}\tcreated {made}\texpires {end}",
            token.id,
            token.name,
            auth::scope_text(&token.restriction)
        ));
    }
    Ok(())
}

fn failure(error: Error) -> Failure {
    error.cause.unwrap_or(error.message).into()
}
