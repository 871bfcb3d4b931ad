//! Options of `copy`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::table_options::{TableOptions, table_name};

/// Options of `copy`.
#[derive(Args)]
#[command(group = ArgGroup::new("source").required(true).args(["from", "from_export"]))]
pub(crate) struct Options {
    /// Copy the table in this data directory. Stop the server that uses it first.
    #[arg(long, value_name = "DIR")]
    pub(super) from: Option<PathBuf>,
    /// Name of the table in the data directory.
    #[arg(long, value_name = "TABLE", default_value = "mlflow", value_parser = table_name)]
    pub(super) from_table: String,
    /// Copy a table in AWS from its export to S3: a full export in `DYNAMODB_JSON`, downloaded into this
    /// directory. It has manifest-summary.json, manifest-files.json and data/.
    #[arg(long, value_name = "DIR")]
    pub(super) from_export: Option<PathBuf>,
    /// Copy users, with their passwords, roles and grants. Sessions, tokens and secrets are never
    /// copied. Without this option, grants that were given to users directly are left out, too.
    #[arg(long, requires = "from")]
    pub(super) users: bool,
    /// Like --users, from an export of the access table.
    #[arg(long, value_name = "DIR", requires = "from_export")]
    pub(super) users_from_export: Option<PathBuf>,
    /// Continue a copy that was interrupted, from the same source.
    #[arg(long)]
    pub(super) resume: bool,
    /// Write at most this many capacity units per second [default: as fast as possible].
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) write_units: Option<u64>,
    /// Create the table if it is missing on another machine.
    #[arg(long)]
    pub(super) create_table: bool,
    #[command(flatten)]
    pub(super) place: TableOptions,
}
