//! `mlflow-serverless doctor`: diagnoses a deployed stack, and reports problems and how to fix
//! them.
//!
//! `reading.rs` reads the facts (`facts.rs`) by a few signed requests (`requests.rs`), without
//! changing anything. `checks.rs` derives problems from the facts.

mod checks;
mod facts;
mod reading;
mod requests;
mod rights;
mod xml;

use clap::Args;

use self::checks::Finding;
use self::requests::Requests;
use crate::Failure;
use crate::say::say;

/// Options of `doctor`.
#[derive(Args)]
pub(crate) struct Options {
    /// Name of the stack.
    #[arg(long, value_name = "NAME", default_value = "mlflow")]
    stack: String,
    /// Region of the stack [default: the region of the AWS configuration].
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let stack = &options.stack;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if stack.is_empty() || !is_name(stack) {
        return Err(format!("{stack} is not a valid stack name: use letters, digits and hyphens").into());
    }
    let requests = Requests::new(options.region).await?;
    let found = look(&requests, stack).await?;
    if found.is_empty() {
        say("No problems found.");
        return Ok(());
    }
    for Finding { what, remedy } in &found {
        say(&format!("{what}\n  {remedy}"));
    }
    Err(format!("{} problems found", found.len()).into())
}

async fn look(requests: &Requests, stack: &str) -> Result<Vec<Finding>, Failure> {
    let ahead = requests.ahead().await?;
    let description = reading::description(requests, stack).await.map_err(|unread| unread.to_string())?;
    let Some(description) = description else {
        let uri = std::env::var("MLFLOW_TRACKING_URI").ok();
        return Ok(vec![checks::no_stack(stack, &requests.region, uri.as_deref())]);
    };
    let facts = reading::facts(requests, stack, ahead, description).await;
    Ok(checks::findings(&facts))
}
