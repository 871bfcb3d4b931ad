//! `mlflow-serverless migrate`: migrates a table to the layout of this version while it is in use.

use clap::Args;
use entities::migration::MigrationResult;

use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `migrate`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: TableOptions,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (table, _engine) = options.place.connect().await?;
    let access = options.place.access_table(&table);
    let migrated = entities::migration::migrate(&table.in_background(), &access.in_background()).await?;
    print_line(&match migrated {
        None => "The table is empty: there is nothing to migrate.".to_owned(),
        Some(MigrationResult { from, to }) if from == to => {
            format!("The table already has layout {to}: there is nothing to migrate.")
        }
        Some(MigrationResult { from, to }) => format!("Migrated the table from layout {from} to layout {to}."),
    });
    Ok(())
}
