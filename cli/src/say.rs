//! What a command prints for its caller.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static FAILED: AtomicBool = AtomicBool::new(false);

/// Prints a line. Where nobody reads any more, such as after `| head -1`, the command goes on: what
/// it does is not to end half-way. Where the line cannot be written, the command goes on, and fails
/// at its end.
pub(crate) fn say(text: &str) {
    let printed = writeln!(io::stdout().lock(), "{text}");
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
        && !FAILED.swap(true, Ordering::Relaxed)
    {
        // Where this cannot be written either, the status says it alone.
        let _ = writeln!(io::stderr().lock(), "mlflow-serverless: cannot print: {error}");
    }
}

/// Whether a line could not be written, although somebody was to read it.
pub(crate) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}
