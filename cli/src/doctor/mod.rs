//! `mlflow-serverless doctor`: diagnoses a deployed stack, and reports problems and how to fix
//! them.
//!
//! `fact_reader.rs` reads the facts (`stack_facts.rs`) by a few signed requests (`aws_requests.rs`), without
//! changing anything. `checks.rs` derives problems from the facts. On request, `archive_check.rs` compares
//! the archive with the table.

mod archive_check;
mod aws_requests;
mod checks;
mod fact_reader;
mod function_rights;
mod stack_facts;
mod xml;

use clap::Args;

use self::aws_requests::AwsRequests;
use self::checks::Finding;
use crate::Failure;
use crate::output::print_line;

/// Options of `doctor`.
#[derive(Args)]
pub(crate) struct Options {
    /// Name of the stack.
    #[arg(long, value_name = "NAME", default_value = "mlflow")]
    stack: String,
    /// Region of the stack [default: the region of the AWS configuration].
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Also compare the archive of old traces and metric histories with the table. Reads all blocks of
    /// traces, and sends a request for each run. The stack must be in the region of the AWS
    /// configuration.
    #[arg(long, conflicts_with = "region")]
    archive: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let stack = &options.stack;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if stack.is_empty() || !is_name(stack) {
        return Err(format!("{stack} is not a valid stack name: use letters, digits and hyphens").into());
    }
    let requests = AwsRequests::new(options.region).await?;
    let found = diagnose(&requests, stack, options.archive).await?;
    if found.is_empty() {
        print_line("No problems found.");
        return Ok(());
    }
    for Finding { what, remedy } in &found {
        print_line(&format!("{what}\n  {remedy}"));
    }
    Err(format!("{} problems found", found.len()).into())
}

async fn diagnose(requests: &AwsRequests, stack: &str, checks_archive: bool) -> Result<Vec<Finding>, Failure> {
    let ahead = requests.ahead().await?;
    let description = fact_reader::description(requests, stack).await.map_err(|unread| unread.to_string())?;
    let Some(description) = description else {
        let uri = std::env::var("MLFLOW_TRACKING_URI").ok();
        return Ok(vec![checks::missing_stack(stack, &requests.region, uri.as_deref())]);
    };
    let facts = fact_reader::facts(requests, stack, ahead, description).await;
    let mut found = checks::findings(&facts);
    if checks_archive {
        found.extend(archive_check::findings(&requests.region, &facts.description).await);
    }
    Ok(found)
}
