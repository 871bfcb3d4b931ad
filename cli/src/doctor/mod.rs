//! `mlflow-serverless doctor`: looks at a deployed stack, and says what is wrong and what to do.
//!
//! `reading.rs` reads the facts (`facts.rs`) by a few signed requests (`requests.rs`), and changes
//! nothing. `checks.rs` finds faults in them.

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
    /// Region of the stack [default: that of the AWS configuration].
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let stack = &options.stack;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if stack.is_empty() || !is_name(stack) {
        return Err(format!("{stack} is no name of a stack: letters, digits and hyphens").into());
    }
    let requests = Requests::new(options.region).await?;
    let found = look(&requests, stack).await?;
    if found.is_empty() {
        say("nothing found");
        return Ok(());
    }
    for Finding { what, remedy } in &found {
        say(&format!("{what}\n  {remedy}"));
    }
    Err(format!("{} faults were found", found.len()).into())
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
