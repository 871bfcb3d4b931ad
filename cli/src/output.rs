//! Output of commands on standard output.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints a line. If the reader has closed the pipe, as `| head -1` does, the command continues,
/// because stopping would leave its work half done. After any other write error, the command
/// continues and exits with a failure at the end.
pub(crate) fn print_line(text: &str) {
    let printed = writeln!(io::stdout().lock(), "{text}");
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
        && !HAS_FAILED.swap(true, Ordering::Relaxed)
    {
        // If standard error cannot be written either, only the exit status reports the failure.
        let _ = writeln!(io::stderr().lock(), "mlflow-serverless: cannot print: {error}");
    }
}

/// Prints a text for the user at the terminal to standard error, so that it does not mix with the
/// output of the command.
pub(crate) fn print_note(text: &str) {
    // There is no other place to report that standard error cannot be written.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Returns whether writing a line has failed. A pipe that the reader has closed is not a failure.
pub(crate) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}
