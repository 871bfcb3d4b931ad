//! What a command prints for whoever called it.

use std::io::{self, Write};

/// Prints a line. Where nobody reads any more, such as after `| head -1`, the command goes on: what
/// it does is not to end half-way.
#[expect(clippy::print_stderr, reason = "it says why the outcome of a command cannot be read")]
pub(crate) fn say(text: &str) {
    let printed = writeln!(io::stdout().lock(), "{text}");
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("mlflow-serverless: cannot print: {error}");
    }
}
